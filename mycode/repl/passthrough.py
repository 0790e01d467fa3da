"""`!command`: the person's own shell, run by the person; what it said can be told to the model with the next prompt."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from mycode.core.errors import InputError
from mycode.core.tools import CommandDisplay

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
    """Runs it in the person's shell without standard input; cancelling stops all of its processes.

    Raises `InputError` when the shell itself cannot be started.
    """
    loop = asyncio.get_running_loop()
    started = loop.time()
    shell = os.environ.get("SHELL") or "/bin/sh"
    try:
        process = await asyncio.create_subprocess_exec(
            shell,
            "-c",
            command,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        message = f"Your shell {shell} cannot be started: {error.strerror or error}. Set $SHELL."
        raise InputError(message) from error
    assert process.stdout is not None
    pieces: list[str] = []
    exit_code: int | None = None
    try:
        while piece := await process.stdout.read(65_536):
            text = piece.decode("utf-8", "replace")
            pieces.append(text)
            report(text)
        exit_code = await process.wait()
    except asyncio.CancelledError:
        _stop(process.pid)
        await process.wait()
        raise
    return Ran(command, "".join(pieces), exit_code, loop.time() - started)


def _stop(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass
