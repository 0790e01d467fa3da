"""Runs shell commands in process groups of their own, and sees to it that nothing outlives what it was started for."""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from mycode.core.errors import ToolError

HEAD_BYTES = 4_000_000
TAIL_BYTES = 500_000
KILL_AFTER = 2.0
_GRACE = 0.3
_MARK = "MYCODE_CALL"
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|PRIVATE)(?:_|$)|_AUTH$", re.IGNORECASE
)
_CALM = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "TERM": "dumb"}


Wrap = Callable[[tuple[str, ...], str], tuple[str, ...]]


class Ended(Struct, frozen=True):
    """How a command ended. `exit_code` None: killed for time. `output` is decoded; `dropped` bytes were not kept."""

    output: str
    exit_code: int | None
    seconds: float
    dropped: int = 0


class Job(Struct, frozen=True):
    """A command in the background; its output goes to `file`."""

    id: str
    command: str
    file: Path
    process: subprocess.Popen[bytes]
    started: float


def child_environment(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command: no keys, tokens or passwords, no pager, no questions from git."""
    kept = {name: value for name, value in env.items() if not _SECRET_NAME.search(name) or name in _HARMLESS}
    return {**kept, **_CALM}


_HARMLESS = frozenset({"SSH_AUTH_SOCK", "XDG_SESSION_ID"})


class Processes:
    """The commands of one session, in front and in the background."""

    def __init__(
        self, folder: Path, env: Mapping[str, str], wrap: Callable[[tuple[str, ...], str], tuple[str, ...]]
    ) -> None:
        self._folder = folder
        self._env = child_environment(env)
        self._wrap = wrap
        self._shell = shutil.which("bash", path=env.get("PATH")) or "/bin/sh"
        self._jobs: dict[str, Job] = {}

    async def run(self, command: str, timeout: float, report: Callable[[str], None]) -> Ended:
        """Runs one command to its end, its time or its cancellation; then its whole process group is gone.

        Output is kept up to 4.5 MB (head and tail) and drained beyond, so that a child never blocks.
        """
        loop = asyncio.get_running_loop()
        mark = secrets.token_hex(8)
        started = time.monotonic()
        process = self._start(command, subprocess.PIPE, mark)
        assert process.stdout is not None
        pipe = process.stdout.fileno()
        os.set_blocking(pipe, False)
        kept = _Kept()
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        closed = asyncio.Event()

        def take() -> None:
            try:
                data = os.read(pipe, 1 << 16)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                loop.remove_reader(pipe)
                closed.set()
                return
            kept.add(data)
            report(decoder.decode(data))

        loop.add_reader(pipe, take)
        ended = asyncio.ensure_future(asyncio.to_thread(process.wait))
        exit_code: int | None = None
        try:
            done, _ = await asyncio.wait([ended], timeout=timeout)
            if done:
                exit_code = ended.result()
                await _within(closed, _GRACE)
        finally:
            await _kill(process, mark, ended)
            await _within(closed, _GRACE)
            loop.remove_reader(pipe)
            process.stdout.close()
        return Ended(kept.text(), exit_code, time.monotonic() - started, kept.dropped)

    def start_job(self, command: str) -> Job:
        """Starts a command that may outlive its turn; its output can be looked at by its id."""
        number = len(self._jobs) + 1
        handle, name = tempfile.mkstemp(prefix=f"job-{number}-", suffix=".log")
        with os.fdopen(handle, "wb") as out:
            process = self._start(command, out.fileno(), f"job{secrets.token_hex(8)}")
        job = Job(f"b{number}", command, Path(name), process, time.monotonic())
        self._jobs[job.id] = job
        return job

    def job(self, job_id: str) -> Job:
        if job_id not in self._jobs:
            known = ", ".join(self._jobs) or "none"
            message = f"There is no job {job_id}. Jobs of this session: {known}."
            raise ToolError(message)
        return self._jobs[job_id]

    def running(self) -> list[Job]:
        return [job for job in self._jobs.values() if job.process.poll() is None]

    def stop(self, job: Job) -> None:
        """Ends a job and what it started: politely, then for good."""
        _signal(job.process.pid, signal.SIGTERM)
        try:
            job.process.wait(KILL_AFTER)
        except subprocess.TimeoutExpired:
            pass
        _signal(job.process.pid, signal.SIGKILL)
        job.process.wait()

    def stop_all(self) -> None:
        """Ends every job that still runs and removes their output; for the end of the session."""
        for job in self._jobs.values():
            if job.process.poll() is None:
                self.stop(job)
            job.file.unlink(missing_ok=True)
        self._jobs.clear()

    def _start(self, command: str, out: int, mark: str) -> subprocess.Popen[bytes]:
        argv = self._wrap((self._shell, "-c", command), str(self._folder))
        try:
            return subprocess.Popen(
                argv,
                cwd=self._folder,
                env={**self._env, _MARK: mark},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            message = f"The command cannot be started: {error}."
            raise ToolError(message) from error


class _Kept:
    """The head and the tail of an output, and how much lay between them."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self.dropped = 0

    def add(self, data: bytes) -> None:
        room = HEAD_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * TAIL_BYTES:
            self.dropped += len(self._tail) - TAIL_BYTES
            del self._tail[:-TAIL_BYTES]

    def text(self) -> str:
        head = self._head.decode("utf-8", "replace")
        if not self._tail:
            return head
        gap = f"\n[{self.dropped:,} bytes were not kept]\n" if self.dropped else ""
        return head + gap + self._tail.decode("utf-8", "replace")


async def _kill(process: subprocess.Popen[bytes], mark: str, ended: asyncio.Future[int]) -> None:
    """Nothing of the command is left: its group first, then whoever left the group but carries the mark."""
    _signal(process.pid, signal.SIGTERM)
    if not ended.done():
        await asyncio.wait([ended], timeout=KILL_AFTER)
    _signal(process.pid, signal.SIGKILL)
    for pid in _marked(mark):
        _signal(pid, signal.SIGKILL, group=False)
    if not ended.done():
        await asyncio.wait([ended])


def _signal(pid: int, number: int, *, group: bool = True) -> None:
    try:
        (os.killpg if group else os.kill)(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def _marked(mark: str) -> list[int]:
    """Processes that inherited the mark, where the system can tell (Linux)."""
    wanted = f"{_MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


async def _within(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        pass
