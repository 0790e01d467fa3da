"""A log of what was allowed and by whom; each line holds the hash of the one before, so that changes show."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from mycode.core.errors import SessionError
from mycode.core.redact import redact
from mycode.core.visible import in_json

_FIRST = "0" * 64
_LONGEST = 65_536
_WIDEST = 2000


class AuditRecord(Struct, frozen=True):
    """One line: a verdict of the gate or an answer of a person. `at` is Unix seconds, `by` a person, rule or mode."""

    at: float
    event: Literal["verdict", "approval", "grant"]
    session: str
    mode: str
    tool: str
    title: str
    decision: str
    reason: str = ""
    rule: str | None = None
    by: str = ""
    seq: int = 0
    previous: str = _FIRST
    hash: str = ""


class Broken(Struct, frozen=True):
    """Where the log does not hold together: the line (from 1) and what is wrong with it."""

    line: int
    reason: str


class AuditLog:
    """The log in one file, appended to by any number of processes; readable by its owner only.

    A second file beside it holds number and hash of the last line, so that lines missing at the end show, too.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._end = path.with_name(f"{path.name}.end")

    def append(self, record: AuditRecord) -> AuditRecord:
        """Writes the record behind the last one and returns it as written: numbered, chained, secrets taken out."""
        safe = msgspec.structs.replace(
            record,
            title=_kept(record.title),
            reason=_kept(record.reason),
            rule=None if record.rule is None else _kept(record.rule),
        )
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            message = (
                f"The audit log {self._path} cannot be written ({error.strerror}). Check the folder and its rights."
            )
            raise SessionError(message) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            os.fchmod(file, 0o600)
            seq, previous, whole = _tail(file)
            remembered = self._remembered()
            if remembered[0] >= seq:  # what was cut off or written anew leaves a gap that shows
                seq, previous = remembered
            chained = _chained(msgspec.structs.replace(safe, seq=seq + 1, previous=previous))
            line = _line(chained) + b"\n"
            # A line that a crash cut off keeps its own line, so that the next one stays readable.
            data = line if whole else b"\n" + line
            while data:
                data = data[os.write(file, data) :]
            self._remember(chained)
        except OSError as error:
            message = f"The audit log {self._path} cannot be written ({error.strerror})."
            raise SessionError(message) from None
        finally:
            os.close(file)
        return chained

    def read(self) -> Iterator[AuditRecord]:
        """The records that can be read, oldest first."""
        for line in self._lines():
            try:
                yield msgspec.json.decode(line, type=AuditRecord)
            except msgspec.DecodeError:
                continue

    def verify(self) -> Broken | None:
        """The first place where a line was changed, taken out, put in or cut off; None when all hold together."""
        previous, seq, number = _FIRST, 0, 0
        end = self._remembered()
        for number, line in enumerate(self._lines(), 1):
            try:
                record = msgspec.json.decode(line, type=AuditRecord)
            except msgspec.DecodeError:
                return Broken(number, "the line cannot be read")
            if record.hash != _chained(record).hash or line != _line(record):
                return Broken(number, "the line was changed")
            if record.previous != previous or record.seq != seq + 1:
                return Broken(number, "lines before it are missing or were put in")
            previous, seq = record.hash, record.seq
            if seq == end[0] and previous != end[1]:
                return Broken(number, "the log was written anew from here or before")
        return Broken(number + 1, "lines at the end are missing") if seq < end[0] else None

    def _remember(self, record: AuditRecord) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            file = os.open(self._end, flags, 0o600)
        except OSError:
            return  # the chain itself is written; only a cut at its end would not show
        try:
            os.pwrite(file, f"{record.seq:020d} {record.hash}\n".encode(), 0)
        finally:
            os.close(file)

    def _remembered(self) -> tuple[int, str]:
        """Number and hash of the last line that was written, as far as they can be read."""
        try:
            seq, end = self._end.read_text(encoding="ascii").split() if self._end.is_file() else ("0", _FIRST)
            return int(seq), end
        except (OSError, ValueError):
            return 0, _FIRST

    def _lines(self) -> Iterable[bytes]:
        try:
            return [line for line in self._path.read_bytes().split(b"\n") if line]
        except FileNotFoundError:
            return []


def _kept(text: str) -> str:
    """What is kept of a text: no secrets, no halves of letters (as names of files may have), and not too much."""
    return redact(text.encode("utf-8", "replace").decode())[:_WIDEST]


def _line(record: AuditRecord) -> bytes:
    """The one way a record is written."""
    return in_json(msgspec.json.encode(record).decode()).encode()


def _chained(record: AuditRecord) -> AuditRecord:
    bare = msgspec.json.encode(msgspec.structs.replace(record, hash=""))
    return msgspec.structs.replace(record, hash=hashlib.sha256(bare).hexdigest())


def _tail(file: int) -> tuple[int, str, bool]:
    """Number and hash of the last readable record, and whether the file ends with a whole line."""
    size = os.fstat(file).st_size
    data = os.pread(file, _LONGEST, max(0, size - _LONGEST))
    for line in reversed(data.split(b"\n")):
        try:
            record = msgspec.json.decode(line, type=AuditRecord)
        except msgspec.DecodeError:
            continue
        return record.seq, record.hash, data.endswith(b"\n")
    return 0, _FIRST, not data or data.endswith(b"\n")
