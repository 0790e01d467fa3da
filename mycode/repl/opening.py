"""The prompt before there is a prompt: drawn at once, so that what is typed while the program loads is seen and kept.

Only the standard library's terminal calls are imported here. Every way out puts the terminal back as it was.
"""

from __future__ import annotations

import atexit
import os
import select
import sys
import termios
from typing import Any

PROMPT = "> "


class Opening:
    """A drawn bare prompt on `fd`; typed keys are echoed by the terminal and stay in its buffer until `take`."""

    def __init__(self, fd: int, saved: list[Any]) -> None:
        self._fd = fd
        self._saved = saved
        self._open = True

    def take(self, width: int) -> str:
        """Ends the bare prompt: wipes it, puts the terminal back, and gives what was typed meanwhile."""
        typed = bytearray()
        while self._open and select.select([self._fd], [], [], 0)[0]:
            if not (piece := os.read(self._fd, 4096)):
                break
            typed += piece
        # A line end that was typed before the terminal was ours had been translated already.
        text = typed.decode("utf-8", "replace").replace("\n", "\r")
        rows = (len(PROMPT) + len(text)) // max(1, width)
        if self._open and rows:
            sys.stdout.write(f"\x1b[{rows}A")
        self.close()
        return text

    def close(self) -> None:
        """Wipes the bare prompt and puts the terminal back; may be called again."""
        if self._open:
            self._open = False
            sys.stdout.write("\r\x1b[J")
            sys.stdout.flush()
            atexit.unregister(self.close)
            termios.tcsetattr(self._fd, termios.TCSANOW, self._saved)


def open_prompt() -> Opening | None:
    """Draws the bare prompt if a person sits at a terminal that can show one, else does nothing."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM", "dumb") in {"dumb", "unknown", ""}:
        return None
    fd = sys.stdin.fileno()
    saved = termios.tcgetattr(fd)
    mode = termios.tcgetattr(fd)
    # Keys are delivered as they come, echoed by the terminal itself; Enter stays a carriage return, as it is later.
    mode[0] &= ~termios.ICRNL
    mode[3] &= ~termios.ICANON
    opening = Opening(fd, saved)
    atexit.register(opening.close)
    termios.tcsetattr(fd, termios.TCSANOW, mode)
    sys.stdout.write(PROMPT)
    sys.stdout.flush()
    return opening
