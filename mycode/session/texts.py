"""Whole texts that a conversation shows clipped, kept under a handle (`t7`), byte for byte."""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from typing import cast

from mycode.core.entries import PurgedText
from mycode.core.errors import SessionError
from mycode.session.database import Database

_MOST = 2**62


class Texts:
    """The texts of all sessions, by the number of the session; a fork sees those of its past."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, session: int, text: str, number: int | None = None) -> int:
        """Stores a text durably and returns its number: a given one, or the next; the same text twice has one."""
        raw = text.encode("utf-8", "surrogatepass")
        sha256 = hashlib.sha256(raw).hexdigest()
        with self._database.write() as connection:
            row = connection.execute(
                "SELECT number FROM texts WHERE session = ? AND sha256 = ?", (session, sha256)
            ).fetchone()
            if row is None or number is not None:
                row = connection.execute(
                    "UPDATE sessions SET texts = max(texts, coalesce(?, texts + 1)) WHERE n = ? "
                    "RETURNING coalesce(?, texts)",
                    (number, session, number),
                ).fetchone()
                connection.execute("INSERT INTO texts VALUES (?, ?, ?, ?)", (session, row[0], sha256, raw))
        return cast("int", row[0])

    def get(self, session: int, number: int) -> str:
        """The text with that number; raises if there is none."""
        for part, last in self._line(session):
            if number <= last:
                row = self._database.row("SELECT text FROM texts WHERE session = ? AND number = ?", (part, number))
                if row is not None:
                    return _decoded(row[0])
        message = f"There is no text t{number} in this session."
        raise SessionError(message)

    def every(self, session: int) -> Iterator[tuple[int, str]]:
        """Every text with its number, ascending."""
        for part, low, high in self._spans(session):
            numbers = self._database.rows(
                "SELECT number FROM texts WHERE session = ? AND number > ? AND number <= ? ORDER BY number",
                (part, low, high),
            )
            for (number,) in numbers:
                row = self._database.row("SELECT text FROM texts WHERE session = ? AND number = ?", (part, number))
                if row is not None:
                    yield cast("int", number), _decoded(row[0])

    def described(self, session: int, last: int) -> Iterator[PurgedText]:
        """What is left to say of each text with a number up to `last`, should it go."""
        for part, low, high in self._spans(session):
            rows = self._database.rows(
                "SELECT number, sha256, text FROM texts WHERE session = ? AND number > ? AND number <= ? "
                "ORDER BY number",
                (part, low, min(high, last)),
            )
            for number, sha256, raw in rows:
                yield PurgedText(cast("int", number), len(_decoded(raw)), cast("str", sha256))

    def remove(self, connection: sqlite3.Connection, session: int, numbers: Iterable[int]) -> None:
        """Deletes texts, inside the caller's transaction; their numbers are not given out again."""
        for part, low, high in self._spans(session):
            connection.executemany(
                "DELETE FROM texts WHERE session = ? AND number = ?",
                [(part, number) for number in numbers if low < number <= high],
            )

    def holding(self, session: int, words: str, limit: int) -> Iterator[tuple[int, str]]:
        """Texts that hold these very words, newest first, with their numbers."""
        wanted = words.encode("utf-8", "surrogatepass")
        for part, low, high in reversed(self._spans(session)):
            rows = self._database.rows(
                "SELECT number, text FROM texts WHERE session = ? AND number > ? AND number <= ? "
                "AND instr(text, ?) > 0 ORDER BY number DESC LIMIT ?",
                (part, low, high, wanted, limit),
            )
            for number, raw in rows:
                yield cast("int", number), _decoded(raw)
            limit -= len(rows)

    def _spans(self, session: int) -> list[tuple[int, int, int]]:
        """(session, number before the first, last number) of each part of the line, oldest first."""
        line = self._line(session)
        lows = [last for _, last in line[1:]] + [0]
        return [(part, low, last) for (part, last), low in zip(line, lows, strict=True)][::-1]

    def _line(self, session: int) -> list[tuple[int, int]]:
        """The session and those it was forked from, each with the last number that may be seen of it."""
        line: list[tuple[int, int]] = []
        part: int | None = session
        last = _MOST
        while part is not None:
            line.append((part, last))
            row = self._database.row("SELECT base, base_texts FROM sessions WHERE n = ?", (part,))
            if row is None:
                break
            part, base_texts = cast("tuple[int | None, int]", row)
            last = min(last, base_texts)
        return line


def _decoded(raw: object) -> str:
    return cast("bytes", raw).decode("utf-8", "surrogatepass")
