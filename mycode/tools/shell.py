"""The tools that run shell commands: `execute_bash`, and `shell_job` for those in the background."""

from __future__ import annotations

import asyncio
from typing import Annotated

from msgspec import Meta, Struct

from mycode.core.tools import Action, CommandDisplay, Report, TextDisplay, ToolOutput
from mycode.tools.processes import Ended, Processes

LONGEST = 600.0
_JOB_TAIL = 20_000


class ExecuteBashArgs(Struct, frozen=True, forbid_unknown_fields=True):
    command: Annotated[str, Meta(min_length=1)]
    timeout: Annotated[float, Meta(gt=0, le=LONGEST, description="Seconds")] | None = None
    background: bool = False


class ExecuteBash:
    """`execute_bash`: the output, then a last line `exit code: N` (or how long it ran before it was stopped)."""

    name = "execute_bash"
    description = (
        "Run a bash command in the project folder; no input, no terminal. Every call starts afresh: cd does not last. "
        "With background it goes on and gets an id for shell_job."
    )
    Args = ExecuteBashArgs

    def __init__(self, processes: Processes, timeout: float = 120.0) -> None:
        self._processes = processes
        self._timeout = timeout

    def plan(self, args: ExecuteBashArgs) -> Action:
        first, _, more = args.command.strip().partition("\n")
        title = f"{self.name} {first}{' …' if more else ''}"
        return Action(self.name, "execute", title, command=args.command)

    async def run(self, args: ExecuteBashArgs, report: Report) -> ToolOutput:
        if args.background:
            job = self._processes.start_job(args.command)
            text = f"Started as job {job.id}. shell_job shows its output and stops it."
            return ToolOutput(text, CommandDisplay(args.command, "", None, 0.0, f"runs as {job.id}"))
        timeout = args.timeout or self._timeout
        ended = await self._processes.run(args.command, timeout, report)
        note = f"stopped after {timeout:g} s; nothing of it runs any more" if ended.exit_code is None else ""
        body = ended.output.rstrip("\n")
        text = f"{body}\n{_ending(ended, note)}" if body else _ending(ended, note)
        return ToolOutput(text, CommandDisplay(args.command, ended.output, ended.exit_code, ended.seconds, note))


class ShellJobArgs(Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    stop: bool = False


class ShellJob:
    """`shell_job`: the newest output of a background command and whether it still runs."""

    name = "shell_job"
    description = "Show the newest output of a background command, or stop it."
    Args = ShellJobArgs

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    def plan(self, args: ShellJobArgs) -> Action:
        return Action(self.name, "none", f"{self.name} {'stop ' if args.stop else ''}{args.id}")

    async def run(self, args: ShellJobArgs, _report: Report) -> ToolOutput:
        job = self._processes.job(args.id)
        if args.stop and job.alive:
            await asyncio.to_thread(self._processes.stop, job)
        output = job.kept.newest(_JOB_TAIL)
        code = job.process.poll()
        state = f"{job.id} still runs" if code is None else f"exit code: {code}"
        text = f"{output.rstrip(chr(10))}\n{state}" if output.strip() else state
        return ToolOutput(text, TextDisplay(f"{job.id}: {job.command} · {state}", output))


def _ending(ended: Ended, note: str) -> str:
    return note if ended.exit_code is None else f"exit code: {ended.exit_code}"
