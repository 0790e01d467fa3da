"""Which sessions there are: listed, and found by what a person would call them."""

from __future__ import annotations

from typing import cast

from msgspec import Struct

from mycode.core.errors import SessionError
from mycode.session.database import Database, Row


class SessionInfo(Struct, frozen=True):
    """A session as a list shows it. Times are Unix seconds; `parent` is the session it was forked from, if any."""

    id: str
    created: float
    updated: float
    cwd: str
    title: str
    model: str
    messages: int
    tokens: int
    last_seq: int
    parent: str | None = None
    parent_seq: int = 0


class Catalogue:
    """All sessions of one database, as they are looked for; reads only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def info(self, session_id: str) -> SessionInfo:
        """What is known of the session with exactly this id."""
        row = self._database.row(f"{_LISTED} WHERE s.id = ? AND s.deleted = 0", (session_id,))
        if row is None:
            raise SessionError(_no_session(session_id))
        return _info(row)

    def sessions(self, *, limit: int | None = None, cwd: str | None = None) -> list[SessionInfo]:
        """Sessions that hold something, newest first; only those of a folder if `cwd` is given."""
        rows = self._database.rows(
            f"{_LISTED} WHERE s.deleted = 0 AND s.last_seq > 0 AND (? IS NULL OR s.cwd = ?) "
            "ORDER BY s.updated DESC, s.n DESC LIMIT ?",
            (cwd, cwd, -1 if limit is None else limit),
        )
        return [_info(row) for row in rows]

    def latest(self, cwd: str | None = None) -> SessionInfo | None:
        """The session that was written to last."""
        found = self.sessions(limit=1, cwd=cwd)
        return found[0] if found else None

    def find(self, name: str) -> SessionInfo:
        """The one session with this id, this title, or an id that starts so; an error names the candidates."""
        like = name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        for condition, value in (
            ("s.id = ?", name),
            ("s.title = ? COLLATE NOCASE", name),
            ("s.id LIKE ? ESCAPE '\\'", like + "%"),
            ("s.title LIKE ? ESCAPE '\\'", f"%{like}%"),
        ):
            rows = self._database.rows(
                f"{_LISTED} WHERE s.deleted = 0 AND {condition} ORDER BY s.updated DESC LIMIT 6", (value,)
            )
            if len(rows) == 1 and name:
                return _info(rows[0])
            if len(rows) > 1 and name:
                raise SessionError(_ambiguous(name, [_info(row) for row in rows]))
        raise SessionError(_no_session(name))

    def number(self, session_id: str) -> int:
        """The session's number inside the database."""
        row = self._database.row("SELECT n FROM sessions WHERE id = ? AND deleted = 0", (session_id,))
        if row is None:
            raise SessionError(_no_session(session_id))
        return cast("int", row[0])

    def origin(self, session_id: str) -> str:
        """The session that this one was forked from first; itself if it is no fork."""
        row = self._database.row(_FIRST_OF, (self.number(session_id),))
        return session_id if row is None else cast("str", row[0])

    def has_family(self, origin: str) -> bool:
        """Whether this session, or a fork of it or of one of those, is still there."""
        return self._database.row(_ANY_OF, (origin,)) is not None


_FIRST_OF = (
    "WITH RECURSIVE up(id, base) AS (SELECT id, base FROM sessions WHERE n = ? "
    "UNION ALL SELECT s.id, s.base FROM sessions s JOIN up ON s.n = up.base) "
    "SELECT id FROM up WHERE base IS NULL"
)
_ANY_OF = (
    "WITH RECURSIVE down(n, deleted) AS (SELECT n, deleted FROM sessions WHERE id = ? "
    "UNION ALL SELECT s.n, s.deleted FROM sessions s JOIN down ON s.base = down.n) "
    "SELECT 1 FROM down WHERE deleted = 0"
)
_LISTED = (
    "SELECT s.id, s.created, s.updated, s.cwd, s.title, s.model, s.messages, s.tokens, s.last_seq, b.id, s.base_seq "
    "FROM sessions s LEFT JOIN sessions b ON b.n = s.base"
)


def _info(row: Row) -> SessionInfo:
    return SessionInfo(*row)  # type: ignore[arg-type]  # the columns of _LISTED are the fields in order


def _no_session(name: str) -> str:
    return f"There is no session {name!r}. `mycode sessions list` shows those there are."


def _ambiguous(name: str, found: list[SessionInfo]) -> str:
    shown = ", ".join(f"{info.id} ({info.title or 'untitled'})" for info in found[:5])
    more = ", ..." if len(found) > 5 else ""
    return f"Several sessions match {name!r}: {shown}{more}. Give more of the id."
