"""A program in a real pseudo terminal, seen as a person sees it: as a screen, not as bytes."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pexpect
import pyte

_PATIENCE = 15.0


class Terminal:
    """Starts a program and keeps its screen. Every wait ends as soon as the screen shows what is waited for."""

    def __init__(
        self,
        arguments: list[str],
        *,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        columns: int = 80,
        rows: int = 24,
    ) -> None:
        self.screen = pyte.HistoryScreen(columns, rows, history=5000, ratio=0.5)
        self._stream = pyte.ByteStream(self.screen)
        world = {**os.environ, "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", "LC_ALL": "C.UTF-8"}
        world |= env or {}
        world.pop("COLUMNS", None)
        world.pop("LINES", None)
        self.raw = b""
        self.child = pexpect.spawn(
            arguments[0], arguments[1:], cwd=str(cwd) if cwd else None, env=world, dimensions=(rows, columns), timeout=5
        )
        self.child.delaybeforesend = None
        self.before = self.modes()

    @classmethod
    def python(cls, *arguments: str, **options: object) -> "Terminal":
        """A Python program with this interpreter."""
        return cls([sys.executable, *arguments], **options)  # type: ignore[arg-type]  # passed on as they came

    def modes(self) -> list[object]:
        """The settings of the terminal line, as `stty` would show them."""
        import termios

        return list(termios.tcgetattr(self.child.child_fd))

    @property
    def lines(self) -> list[str]:
        """What stands on the screen, without blanks at line ends."""
        return [line.rstrip() for line in self.screen.display]

    @property
    def everything(self) -> str:
        """The scrollback and the screen."""
        above = ["".join(line[x].data for x in range(self.screen.columns)).rstrip() for line in self.screen.history.top]
        return "\n".join([*above, *self.lines])

    @property
    def picture(self) -> str:
        """What stands on the screen with its colours, as terminal text (for `mycode.render.screen.picture`)."""
        rows = []
        for y in range(self.screen.lines):
            row = self.screen.buffer[y]
            rows.append("".join(_colored(row[x]) for x in range(self.screen.columns)).rstrip())
        return "\n".join(rows).rstrip() + "\n"

    def send(self, keys: str) -> None:
        self.child.send(keys)

    def paste(self, text: str) -> None:
        """As a terminal pastes: between marks."""
        self.child.send(f"\x1b[200~{text}\x1b[201~")

    def resize(self, columns: int, rows: int) -> None:
        """Gives it another size; rows that no longer fit go from its top to the scrollback, as terminals do."""
        for y in range(self.screen.lines - rows):
            self.screen.history.top.append(self.screen.buffer[y])
        self.screen.resize(rows, columns)
        self.child.setwinsize(rows, columns)

    def wait(self, seen: Callable[["Terminal"], bool], what: str = "") -> None:
        """Reads until the screen satisfies `seen`; fails with the screen as it stands."""
        end = time.monotonic() + _PATIENCE
        while not seen(self):
            if time.monotonic() > end:
                message = f"waited in vain for {what or seen}\n{self.shown()}"
                raise AssertionError(message)
            self._read()

    def wait_for(self, text: str) -> None:
        """Until this text stands anywhere, on the screen or above it."""
        self.wait(lambda terminal: text in terminal.everything, repr(text))

    def wait_gone(self, text: str) -> None:
        """Until this text stands nowhere on the screen."""
        self.wait(lambda terminal: all(text not in line for line in terminal.lines), f"{text!r} to go")

    def wait_end(self) -> int:
        """Until the program has ended; gives its exit code."""
        end = time.monotonic() + _PATIENCE
        while self.child.isalive() and time.monotonic() < end:
            self._read()
        assert not self.child.isalive(), f"it did not end\n{self.shown()}"
        return self.child.exitstatus if self.child.exitstatus is not None else -1

    def close(self) -> None:
        try:
            self.child.close(force=True)
        except pexpect.ExceptionPexpect:  # it was killed, and takes its time on a busy machine
            self.child.wait()

    def shown(self) -> str:
        return "\n".join(["┌" + "─" * self.screen.columns, *("│" + line for line in self.everything.split("\n")), "└"])

    def _read(self) -> None:
        try:
            data = self.child.read_nonblocking(65_536, timeout=0.05)
        except (pexpect.TIMEOUT, pexpect.EOF):
            return
        self.raw += data
        self._stream.feed(data)


_COLORS = ("black", "red", "green", "brown", "blue", "magenta", "cyan", "white")


def _colored(cell: pyte.screens.Char) -> str:
    """One cell with the codes of its look."""
    looks = {"1": cell.bold, "3": cell.italics, "4": cell.underscore, "7": cell.reverse}
    codes = [code for code, on in looks.items() if on]
    if cell.fg in _COLORS:
        codes.append(str(30 + _COLORS.index(cell.fg)))
    return f"\x1b[{';'.join(codes)}m{cell.data}\x1b[0m" if codes else cell.data
