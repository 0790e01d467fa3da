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


class Ran(Struct, frozen=True):
    """How the command ended and what it wrote (output and errors together)."""

    command: str
    output: str
    exit_code: int | None
    seconds: float

    @property
    def display(self) -> CommandDisplay:
        note = "" if self.exit_code is not None else "stopped"
        return CommandDisplay(self.command, self.output, self.exit_code, self.seconds, note)

    @property
    def told(self) -> str:
        """The words in which the model hears of it."""
        output = self.output
        if len(output) > _TOLD_CHARS:
            half = _TOLD_CHARS // 2
            output = f"{output[:half]}\n[... {len(output) - _TOLD_CHARS} characters left out ...]\n{output[-half:]}"
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
