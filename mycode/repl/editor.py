"""Writes a draft in the person's own editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

from mycode.core.errors import InputError

_LAST_RESORT = "vi"


def edit(text: str, editor: str | None = None) -> str:
    """The text as the editor left it. Blocks, and the terminal belongs to the editor meanwhile.

    `editor` (else $VISUAL, else $EDITOR, else vi) may have arguments. Raises `InputError` when it cannot run.
    """
    chosen = editor or os.environ.get("VISUAL") or os.environ.get("EDITOR") or _LAST_RESORT
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="mycode-"))
            file = Path(folder) / "prompt.md"
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            message = f"The draft cannot be handed to an editor: {error.strerror or error}. It is as it was."
            raise InputError(message) from error
        try:
            ended = subprocess.run([*shlex.split(chosen), str(file)], check=False)
        except (OSError, ValueError) as error:
            message = f"The editor {chosen!r} cannot be started ({error}). Set $EDITOR, or repl.editor."
            raise InputError(message) from error
        if ended.returncode != 0:
            message = f"The editor {chosen!r} ended with exit code {ended.returncode}; the draft is as it was."
            raise InputError(message)
        return file.read_text(encoding="utf-8", errors="replace").removesuffix("\n")
