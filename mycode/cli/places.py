"""Where this run works."""

import os
from pathlib import Path

from mycode.core.errors import InputError


def enter(directory: Path) -> None:
    """Makes `directory` the working folder; raises InputError when that cannot be."""
    try:
        os.chdir(directory.expanduser())
    except OSError as error:
        message = f"{directory} cannot be entered: {error.strerror or error}."
        raise InputError(message) from error
