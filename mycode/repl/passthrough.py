"""`!command`: the person's own shell, run by the person; what it said can be told to the model with the next prompt."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from mycode.core.errors import InputError, ToolError
from mycode.core.tools import CommandDisplay
from mycode.tools.processes import Processes

_TOLD_CHARS = 10_000
_SHOWN_CHARS = 100_000


class Ran(Struct, frozen=True):
    """How the command ended and what it wrote (output and errors together)."""

    command: str
    output: str
    exit_code: int | None
    seconds: float

    @property
    def display(self) -> CommandDisplay:
        note = "" if self.exit_code is not None else "stopped"
        return CommandDisplay(self.command, _ends(self.output, _SHOWN_CHARS), self.exit_code, self.seconds, note)

    @property
    def told(self) -> str:
        """The words in which the model hears of it."""
        output = _ends(self.output, _TOLD_CHARS)
        ending = "was stopped" if self.exit_code is None else f"ended with exit code {self.exit_code}"
        return f"I ran `{self.command}` in my shell; it {ending}. Its output:\n{output.rstrip() or '(none)'}"


async def run_command(command: str, folder: Path, report: Callable[[str], None]) -> Ran:
    """Runs it in the person's shell without standard input; nothing that it started outlives it.

    Of long output the head and the tail are kept. Raises `InputError` when the shell itself cannot be started.
    """
    processes = Processes(folder, os.environ, lambda argv, _: argv, own=True)
    try:
        ended = await processes.run(command, None, report)
    except ToolError as error:
        message = f"Your shell {os.environ.get('SHELL', '/bin/sh')} cannot be started: {error} Set $SHELL."
        raise InputError(message) from error
    finally:
        processes.stop_all()
    return Ran(command, ended.output, ended.exit_code, ended.seconds)


def _ends(text: str, most: int) -> str:
    """The text, or its beginning and its end when it has more characters than that."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[... {len(text) - most} characters left out ...]\n{text[-half:]}"
