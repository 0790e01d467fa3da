"""What the terminal of this run can show."""

import os
import shutil
import sys

from mycode.render.screen import Canvas


def canvas(*, plain: bool = False) -> Canvas:
    """The width and abilities of standard output; NO_COLOR, dumb terminals and pipes are respected."""
    term = os.environ.get("TERM", "")
    tty = sys.stdout.isatty()
    return Canvas(
        width=shutil.get_terminal_size((100, 24)).columns if tty else 100,
        color=tty and "NO_COLOR" not in os.environ and term not in ("", "dumb"),
        plain=plain or term == "dumb",
    )
