"""Words found again in everything that was ever said, by an index that is brought up to date when it pays."""

import re
import sqlite3
from collections.abc import Iterable, Sequence
from typing import cast

import msgspec

from mycode.core.entries import Purge, Purged
from mycode.core.tools import Found
from mycode.session.database import Database, Row
from mycode.session.entries import decode_body, text_of

# An append stays as fast as one write to disk: rows are indexed later and many at once, which costs half as much each.
_BATCH = 512
_WORTH_IT = 64
_LONGEST = 200_000
_SNIPPET = 160
_BEFORE = 40

# spans: the (session, last seq) that may be looked at, as JSON; NULL for all.
_INDEXED = """SELECT e.session, e.seq, e.role, e.at, e.body FROM words JOIN entries e ON e.n = words.rowid
    WHERE words MATCH :query AND (:spans IS NULL OR EXISTS (SELECT 1 FROM json_each(:spans) s
        WHERE e.session = json_extract(s.value, '$[0]') AND e.seq <= json_extract(s.value, '$[1]')))
    ORDER BY words.rank LIMIT :limit"""
_SCANNED = """SELECT e.session, e.seq, e.role, e.at, e.body FROM entries e
    WHERE e.sort <> 0 AND e.body LIKE :query ESCAPE '\\' AND e.body NOT LIKE '{"kind":"purge%'
    AND (:spans IS NULL OR EXISTS (SELECT 1 FROM json_each(:spans) s
        WHERE e.session = json_extract(s.value, '$[0]') AND e.seq <= json_extract(s.value, '$[1]')))
    ORDER BY e.n DESC LIMIT :limit"""
_OWNER = """WITH RECURSIVE line(n, id, deleted, depth) AS (
        SELECT n, id, deleted, 0 FROM sessions WHERE n = ?1
        UNION ALL SELECT s.n, s.id, s.deleted, depth + 1 FROM sessions s JOIN line ON s.base = line.n
        WHERE s.base_seq >= ?2 AND line.deleted = 1)
    SELECT id, n FROM line WHERE deleted = 0 ORDER BY depth LIMIT 1"""

Span = tuple[int, int]


class SearchIndex:
    """An FTS5 index over the texts of all sessions; where SQLite has none, rows are scanned instead."""

    def __init__(self, database: Database, *, fts: bool | None = None) -> None:
        self._database = database
        self._fts = fts

    def update_if_much(self) -> None:
        """Indexes what has gathered if that is enough to pay; called after turns."""
        row = self._database.row("SELECT coalesce(max(n), 0) FROM entries")
        if not self._database.read_only and row is not None and cast("int", row[0]) - self._done() >= _WORTH_IT:
            self.update()

    def update(self) -> None:
        """Indexes everything that is not indexed yet."""
        if self._database.read_only or not self._available():
            return
        full = True
        while full:
            with self._database.write() as connection:
                connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, content='')")
                rows = connection.execute(
                    "SELECT n, body, sort FROM entries WHERE n > ? ORDER BY n LIMIT ?", (self._done(), _BATCH)
                ).fetchall()
                full = len(rows) == _BATCH
                if rows:
                    connection.executemany(
                        "INSERT INTO words(rowid, text) VALUES (?, ?)",
                        ((n, indexed) for n, body, sort in rows if sort != 0 and (indexed := _indexed(body))),
                    )
                    connection.execute("INSERT OR REPLACE INTO settings VALUES ('indexed', ?)", (rows[-1][0],))

    def forget(self, connection: sqlite3.Connection, session: int, after: int) -> None:
        """Takes rows of a session with seq > `after` out of the index, inside the caller's transaction."""
        done = self._done()
        if not done or not self._available():
            return
        rows = connection.execute(
            "SELECT n, body FROM entries WHERE session = ? AND seq > ? AND n <= ? AND sort <> 0", (session, after, done)
        )
        self.take_out(connection, rows)
        # Numbers at the end are given out again; those rows must not count as indexed.
        connection.execute(
            """UPDATE settings SET value = min(value, (SELECT coalesce(max(n), 0) FROM entries
                WHERE NOT (session = ? AND seq > ?))) WHERE name = 'indexed'""",
            (session, after),
        )

    def take_out(self, connection: sqlite3.Connection, rows: Iterable[tuple[int, str]]) -> None:
        """Takes rows (their number in the table, their body) out of the index, before they are changed or deleted."""
        done = self._done()
        if not done or not self._available():
            return
        connection.executemany(
            "INSERT INTO words(words, rowid, text) VALUES ('delete', ?, ?)",
            [(n, indexed) for n, body in rows if n <= done and (indexed := _indexed(body))],
        )

    def compact(self, connection: sqlite3.Connection) -> None:
        """Merges the index, so that forgotten words are gone from the file too."""
        if self._available() and self._has_table():
            connection.execute("INSERT INTO words(words) VALUES ('optimize')")

    def search(self, query: str, spans: Sequence[Span] | None, limit: int) -> tuple[Found, ...]:
        """Places where all words of the query stand, best first; if there are none, places with any of them.

        Words in double quotes stand together; others may go on (`pars` finds `parser`).
        """
        terms = [quoted or bare for quoted, bare in re.findall(r'"([^"]+)"|([^\s"]+)', query)]
        terms = [term for term in terms if re.search(r"\w", term)]
        rows: list[Row] = []
        if terms and self._available():
            self.update()
            if self._has_table():
                phrases = [f'"{term}"' if f'"{term}"' in query else f'"{term}"*' for term in terms]
                rows = self._rows(_INDEXED, " AND ".join(phrases), spans, limit)
                if not rows and len(phrases) > 1:
                    rows = self._rows(_INDEXED, " OR ".join(phrases), spans, limit)
        elif query.strip():
            terms = [query.strip()]
            rows = self._rows(_SCANNED, f"%{_like(query.strip())}%", spans, limit)
        return tuple(self._found(row, terms, everywhere=spans is None) for row in rows)

    def _rows(self, sql: str, query: str, spans: Sequence[Span] | None, limit: int) -> list[Row]:
        allowed = None if spans is None else msgspec.json.encode(spans).decode()
        return self._database.rows(sql, {"query": query, "spans": allowed, "limit": limit})

    def _found(self, row: Row, terms: Iterable[str], *, everywhere: bool) -> Found:
        session, seq, role, at, body = cast("tuple[int, int, str, float, str]", row)
        owner = self._database.row(_OWNER, (session, seq)) if everywhere or role == "summary" else None
        handle = f"m{seq}"
        if role == "summary":
            handle = self._summary_handle(session, seq)
        text = text_of(decode_body(body.encode()))
        return Found(handle, role, snippet(text, terms), at, str(owner[0]) if owner and everywhere else "")

    def _summary_handle(self, session: int, seq: int) -> str:
        row = self._database.row(
            """WITH RECURSIVE line(n, last) AS (SELECT ?1, ?2
                UNION ALL SELECT s.base, min(s.base_seq, line.last) FROM sessions s JOIN line ON s.n = line.n
                WHERE s.base IS NOT NULL)
            SELECT count(*) FROM line JOIN entries e ON e.session = line.n AND e.seq <= line.last
            WHERE e.role = 'summary' AND e.sort <> 1""",
            (session, seq),
        )
        return f"s{row[0] if row else 0}"

    def _done(self) -> int:
        row = self._database.row("SELECT value FROM settings WHERE name = 'indexed'")
        return 0 if row is None else cast("int", row[0])

    def _available(self) -> bool:
        if self._fts is None:
            self._fts = self._database.row("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'") is not None
        return self._fts

    def _has_table(self) -> bool:
        return self._database.row("SELECT 1 FROM sqlite_master WHERE name = 'words'") is not None


def snippet(text: str, terms: Iterable[str]) -> str:
    """One line of the text around the first of the terms."""
    folded = text.casefold()
    places = [place for term in terms if (place := folded.find(term.casefold())) >= 0]
    start = max(0, min(places, default=0) - _BEFORE)
    line = " ".join(text[start : start + _SNIPPET].split())
    return ("…" if start else "") + line + ("…" if start + _SNIPPET < len(text) else "")


def _indexed(body: str) -> str:
    decoded = decode_body(body.encode())
    # Nobody looks for the words of our own sentence.
    text = "" if isinstance(decoded, Purged | Purge) else text_of(decoded)[:_LONGEST]
    return text.encode("utf-8", "replace").decode()


def _like(text: str) -> str:
    """The text as it stands inside stored JSON, for LIKE."""
    stored = msgspec.json.encode(text).decode()[1:-1]
    return re.sub(r"([\\%_])", r"\\\1", stored)
