"""Runs shell commands in process groups of their own, and sees to it that nothing outlives what it was started for."""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from mycode.core.errors import ToolError
from mycode.core.patterns import pattern
from mycode.core.redact import redact
from mycode.tools.seclusion import seclude
from mycode.tools.watchdog import Watchdog

HEAD_BYTES = 4_000_000
TAIL_BYTES = 500_000
KILL_AFTER = 2.0
_GRACE = 0.3
_MARK = "MYCODE_CALL"
_SECRET_NAME = pattern(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|CREDENTIALS?|PRIVATE)(?:_|$)|_(?:KEYS|TOKENS|SECRETS)$"
    r"|PASSWORD|PASSWD|PASSPHRASE|_PWD$|_AUTH$|_AUTH_CONFIG$|APIKEY|(?:^|_)(?:PAT|PASS|USERPASS|JWT|BEARER|COOKIE)(?:_|$)|_DSN$"
    r"|^OP_SESSION_",
    re.IGNORECASE,
)
_CALM = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "TERM": "dumb"}


Wrap = Callable[[tuple[str, ...], str], tuple[str, ...]]


class Ended(Struct, frozen=True):
    """How a command ended. `exit_code` None: killed for time. `output` is decoded; `dropped` bytes were not kept."""

    output: str
    exit_code: int | None
    seconds: float
    dropped: int = 0


class Kept:
    """The head and the tail of an output, and how much lay between them. Safe to add to and read from two threads."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._lock = threading.Lock()
        self.dropped = 0

    def add(self, data: bytes) -> None:
        with self._lock:
            room = HEAD_BYTES - len(self._head)
            self._head += data[:room]
            self._tail += data[room:]
            if len(self._tail) > 2 * TAIL_BYTES:
                self.dropped += len(self._tail) - TAIL_BYTES
                del self._tail[:-TAIL_BYTES]

    def text(self) -> str:
        with self._lock:
            head, tail = self._head.decode("utf-8", "replace"), self._tail.decode("utf-8", "replace")
        gap = f"\n[{self.dropped:,} bytes were not kept]\n" if self.dropped else ""
        return head + gap + tail

    def newest(self, count: int) -> str:
        """About the last `count` bytes."""
        with self._lock:
            data = bytes(self._tail[-count:])
            if len(data) < count:
                data = bytes(self._head[-(count - len(data)) :]) + data
        return data.decode("utf-8", "replace")


class Job(Struct, frozen=True):
    """A command in the background. Its output is drained all the time, its ends are kept in `kept`."""

    id: str
    command: str
    kept: Kept
    process: subprocess.Popen[bytes]
    mark: str
    drain: threading.Thread

    @property
    def alive(self) -> bool:
        """Whether the command, or something it started that still holds its output, runs."""
        return self.process.poll() is None or self.drain.is_alive()


def child_environment(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command: no keys, tokens or passwords by name or shape, no pager, no questions from git.

    PATH loses its relative parts: what is judged as `git` must not be a file of that name in the folder.
    """
    kept = {name: value for name, value in env.items() if not _SECRET_NAME.search(name) and not _is_key(value)}
    places = [place for place in env.get("PATH", os.defpath).split(os.pathsep) if place.startswith("/")]
    return {**kept, **_CALM, "PATH": os.pathsep.join(places)}


def _is_key(value: str) -> bool:
    """Whether a value is of the known shape of a key; an address with a login in it is what programs work with."""
    return redact(value) != value and re.match(r"[\w+.-]+://[^/@\s]*@", value) is None


class Processes:
    """The commands of one session, in front and in the background.

    With `own` they are the person's: in the person's shell, with the whole environment. `wrap` puts a command into its
    box; `unwrapped` is told when the command has ended.
    """

    def __init__(
        self,
        folder: Path,
        env: Mapping[str, str],
        wrap: Wrap,
        unwrapped: Callable[[], None] = lambda: None,
        *,
        own: bool = False,
    ) -> None:
        self._unwrapped = unwrapped
        self._folder = folder
        self._env = dict(env) if own else child_environment(env)
        self._wrap = wrap
        self._shell = (own and env.get("SHELL")) or _find_shell(env)
        self._mark = os.urandom(8).hex()
        self._watchdog = Watchdog(f"{_MARK}={self._mark}-")
        self._started = 0
        self._jobs: dict[str, Job] = {}

    async def run(self, command: str, timeout: float | None, report: Callable[[str], None]) -> Ended:
        """Runs one command to its end, its time (None: any) or its cancellation; then its whole group is gone.

        Output is kept up to 4.5 MB (head and tail) and drained beyond, so that a child never blocks.
        """
        loop = asyncio.get_running_loop()
        started = time.monotonic()
        process, mark = self._start(command)
        assert process.stdout is not None
        pipe = process.stdout.fileno()
        os.set_blocking(pipe, False)
        kept = Kept()
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
            try:
                await _kill(process, mark, ended)
                await _within(closed, _GRACE)
            finally:
                loop.remove_reader(pipe)
                process.stdout.close()
                self._watchdog.ended(process.pid)
                self._unwrapped()
        return Ended(kept.text(), exit_code, time.monotonic() - started, kept.dropped)

    def start_job(self, command: str) -> Job:
        """Starts a command that may outlive its turn; its output can be looked at by its id."""
        process, mark = self._start(command)
        kept = Kept()
        drain = threading.Thread(target=self._drain, args=(process, kept), name="job output", daemon=True)
        job = Job(f"b{len(self._jobs) + 1}", command, kept, process, mark, drain)
        self._jobs[job.id] = job
        drain.start()
        return job

    def job(self, job_id: str) -> Job:
        if job_id not in self._jobs:
            known = ", ".join(self._jobs) or "none"
            message = f"There is no job {job_id}. Jobs of this session: {known}."
            raise ToolError(message)
        return self._jobs[job_id]

    def running(self) -> list[Job]:
        return [job for job in self._jobs.values() if job.alive]

    def stop(self, job: Job) -> None:
        """Ends a job and what it started: politely, then for good."""
        if job.alive:
            _signal(job.process.pid, signal.SIGTERM)
            job.drain.join(KILL_AFTER)
            _signal(job.process.pid, signal.SIGKILL)
            for pid in _marked(job.mark):
                _signal(pid, signal.SIGKILL, group=False)
        job.process.wait()
        job.drain.join(KILL_AFTER)
        self._watchdog.ended(job.process.pid)

    def stop_all(self) -> None:
        """Ends every job that still runs; for the end of the session."""
        for job in self._jobs.values():
            self.stop(job)
        self._jobs.clear()
        self._watchdog.close()

    def _drain(self, process: subprocess.Popen[bytes], kept: Kept) -> None:
        try:
            _drain(process, kept)
            process.wait()
        finally:
            self._unwrapped()

    def _start(self, command: str) -> tuple[subprocess.Popen[bytes], str]:
        """A command in a group of its own, and the mark by which those are found that leave the group."""
        if not self._started:
            seclude()
        self._started += 1
        mark = f"{self._mark}-{self._started}"
        argv = self._wrap((self._shell, "-c", command), str(self._folder))
        self._watchdog.ready()
        try:
            process = subprocess.Popen(
                argv,
                cwd=self._folder,
                env={**self._env, _MARK: mark},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self._unwrapped()
            message = f"The command cannot be started: {error}."
            raise ToolError(message) from error
        self._watchdog.began(process.pid)
        return process, mark


def _find_shell(env: Mapping[str, str]) -> str:
    """The bash of the system before any that a path may name; sh where there is none."""
    usual = (path for path in ("/bin/bash", "/usr/bin/bash") if Path(path).exists())
    return next(usual, None) or shutil.which("bash", path=env.get("PATH")) or "/bin/sh"


def _drain(process: subprocess.Popen[bytes], kept: Kept) -> None:
    assert process.stdout is not None
    with process.stdout as pipe:
        while data := os.read(pipe.fileno(), 1 << 16):
            kept.add(data)


async def _kill(process: subprocess.Popen[bytes], mark: str, ended: asyncio.Future[int]) -> None:
    """Nothing of the command is left: its group first, then whoever left the group but carries the mark.

    Being cancelled once more only makes it impatient.
    """
    _signal(process.pid, signal.SIGTERM)
    try:
        if not ended.done():
            await asyncio.wait([ended], timeout=KILL_AFTER)
    finally:
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
