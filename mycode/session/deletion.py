"""How a session goes away for good, but for what its forks still need."""

import sqlite3
from contextlib import suppress
from typing import cast

from mycode.core.errors import SessionError
from mycode.session import locks
from mycode.session.database import Database
from mycode.session.search import SearchIndex


def delete(database: Database, index: SearchIndex, number: int, session_id: str, token: str) -> None:
    """Deletes a session: rows, texts, index. Rows that a fork shares stay, unlisted, until the last fork goes too."""
    with database.write() as connection:
        connection.execute("PRAGMA secure_delete=ON")
        locks.claim(connection, number, session_id, token)
        connection.execute("UPDATE sessions SET deleted = 1, title = '', cwd = '', model = '' WHERE n = ?", (number,))
        session: int | None = number
        while session is not None:
            session = _purge(connection, index, session)
        index.compact(connection)
    # The write-ahead log still holds the old pages; readers elsewhere may delay this, it does no harm.
    with suppress(SessionError):
        database.rows("PRAGMA wal_checkpoint(TRUNCATE)")


def _purge(connection: sqlite3.Connection, index: SearchIndex, session: int) -> int | None:
    """Removes what no fork of a deleted session needs; the session to look at next, if this one is gone entirely."""
    row = connection.execute("SELECT base FROM sessions WHERE n = ? AND deleted = 1", (session,)).fetchone()
    if row is None:
        return None
    seq, texts, forks = connection.execute(
        "SELECT coalesce(max(base_seq), 0), coalesce(max(base_texts), 0), count(*) FROM sessions WHERE base = ?",
        (session,),
    ).fetchone()
    index.forget(connection, session, seq)
    connection.execute("DELETE FROM entries WHERE session = ? AND seq > ?", (session, seq))
    connection.execute("DELETE FROM texts WHERE session = ? AND number > ?", (session, texts))
    connection.execute("DELETE FROM locks WHERE session = ?", (session,))
    if forks:
        return None
    connection.execute("DELETE FROM sessions WHERE n = ?", (session,))
    return cast("int | None", row[0])
