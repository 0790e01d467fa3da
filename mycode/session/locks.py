"""Who is writing to a session: one process at a time, known by machine, boot and process, so that the dead let go."""

import os
import sqlite3
import time
from pathlib import Path

from msgspec import Struct

from mycode.core.errors import SessionError


class Holder(Struct, frozen=True):
    """The process that has a session open: `started` tells it from a later process with the same number."""

    host: str
    boot: str
    pid: int
    started: str

    @property
    def alive(self) -> bool:
        """False only when it is certain that the process has ended."""
        me = this_process()
        if self.host != me.host:
            return True
        return self.boot == me.boot and _started(self.pid) == self.started


class SessionHeld(SessionError):
    """The session is open elsewhere: fork it, or only read it."""

    def __init__(self, session_id: str, holder: Holder) -> None:
        place = f"process {holder.pid}" + ("" if holder.host == this_process().host else f" on {holder.host}")
        super().__init__(
            f"Session {session_id} is open in another mycode ({place}). "
            "Close it there, or go on in a copy with --fork-session."
        )
        self.holder = holder


def this_process() -> Holder:
    pid = os.getpid()
    return Holder(os.uname().nodename, _boot(), pid, _started(pid) or "")


def claim(connection: sqlite3.Connection, session: int, session_id: str, token: str, *, steal: bool = False) -> None:
    """Takes the session for `token` inside the caller's transaction; `SessionHeld` if a living process has it."""
    row = connection.execute(
        "SELECT token, host, boot, pid, started FROM locks WHERE session = ?", (session,)
    ).fetchone()
    if row is not None and row[0] != token and not steal:
        holder = Holder(*row[1:])
        if holder.alive:
            raise SessionHeld(session_id, holder)
    me = this_process()
    connection.execute(
        "INSERT OR REPLACE INTO locks VALUES (?, ?, ?, ?, ?, ?, ?)",
        (session, token, me.host, me.boot, me.pid, me.started, time.time()),
    )


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    """When the process began, in the kernel's own ticks; empty where that is not told, None if there is no such one."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        if Path("/proc/self/stat").exists():
            return None
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except OSError:
            pass
        return ""
    return stat.rpartition(")")[2].split()[19]
