"""Draws docs/terminal.svg, the picture in the README: a part of what `mycode demo` really shows.

`python docs/picture.py` runs the demo in a pseudo terminal of 100 columns and keeps its text and colours.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pexpect

from mycode.render.screen import picture

PICTURE = Path(__file__).parent / "terminal.svg"
COLUMNS = 100
FIRST, LAST = "More of them, to be sure.", "╰"
# The picture carries no font of its own: who looks at it has one, and nothing is fetched.
_NOT_NEEDED = re.compile(r"@font-face\s*\{[^}]*\}\s*|<!--.*?-->\s*")


def demo() -> str:
    """Everything the demo writes to a terminal, colours included; machine paths are left out."""
    python = sys.executable
    program = [python, "-P", "-m", "mycode", "demo"]
    world = {"PATH": os.environ.get("PATH", os.defpath), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    child = pexpect.spawn(program[0], program[1:], env=world, dimensions=(50, COLUMNS), timeout=60, encoding="utf-8")
    text = child.read()
    child.close()
    if child.exitstatus != 0:
        message = f"The demo ended with exit code {child.exitstatus}:\n{text}"
        raise SystemExit(message)
    return str(text).replace("\r\n", "\n").replace(python, "python")


def excerpt(text: str) -> str:
    """From the agent's last look at the tickets to the end of the first panel: summary, edit, tests, /context."""
    lines = text.split("\n")
    first = next(number for number, line in enumerate(lines) if FIRST in line)
    last = next(number for number, line in enumerate(lines) if number > first and LAST in line)
    return "\n".join(lines[first : last + 1]) + "\n"


def main() -> int:
    drawn = _NOT_NEEDED.sub("", picture(excerpt(demo()), title="mycode demo", width=COLUMNS))
    # Not every viewer keeps no-break spaces at the ends of a text.
    drawn = drawn.replace("<svg ", '<svg xml:space="preserve" ', 1).replace("&#160;", " ")
    PICTURE.write_text(drawn.rstrip() + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
