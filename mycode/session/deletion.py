"""How a session, or the originals under its summaries, go away for good, but for what forks still need."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, cast

from mycode.core.entries import Purged
from mycode.core.errors import SessionError
from mycode.core.messages import UserMessage
from mycode.session import locks
from mycode.session.database import Database
from mycode.session.entries import decode_body, encode_body, sha256_of, text_of
from mycode.session.log import SessionLog
from mycode.session.search import SearchIndex
from mycode.session.texts import Texts

if TYPE_CHECKING:
    from mycode.session.purging import Plan

_MARK = "INSERT OR REPLACE INTO settings VALUES ('unwiped', 1)"


def delete(
    connection: sqlite3.Connection, index: SearchIndex, number: int, session_id: str, token: str
) -> tuple[str, ...]:
    """Deletes a session: rows, texts, index. Rows that a fork shares stay, unlisted, until the last fork goes too.

    Inside the caller's transaction; gives what the person said in it. Afterwards the file may still hold the bytes
    somewhere unused: `wipe` it.
    """
    connection.execute("PRAGMA secure_delete=ON")
    locks.claim(connection, number, session_id, token)
    connection.execute("UPDATE sessions SET deleted = 1, title = '', cwd = '', model = '' WHERE n = ?", (number,))
    prompts: list[str] = []
    session: int | None = number
    while session is not None:
        session = _purge(connection, index, session, prompts)
    connection.execute(_MARK)
    return tuple(prompts)


def purge(connection: sqlite3.Connection, database: Database, index: SearchIndex, plan: Plan) -> None:
    """Puts in the place of each original what is left of it, and takes its words and kept texts away.

    Inside the caller's transaction. Afterwards the file may still hold the bytes somewhere unused: `wipe` it.
    """
    connection.execute("PRAGMA secure_delete=ON")
    log = SessionLog(database, plan.number)
    for row in plan.rows:
        _replace(connection, index, log.owner(row.seq), row.seq, row.left)
    for told in plan.told:
        log = SessionLog(database, told.number)
        for seq in told.body.pins:
            entry = log.entry(seq)
            if entry is not None and not isinstance(entry.body, Purged):
                copy = Purged("pin", told.body.at, len(text_of(entry.body)), entry.sha256)
                _replace(connection, index, log.owner(seq), seq, copy)
    Texts(database).remove(connection, plan.number, [text.number for text in plan.texts])
    connection.execute(_MARK)


def wipe(database: Database, index: SearchIndex) -> str:
    """Writes the file anew if anything was purged or deleted since the last time, so that no bytes of it are left.

    Returns why it could not be done, as a sentence: it is still to be done. Empty if all is well.
    """
    if database.read_only or database.row("SELECT 1 FROM settings WHERE name = 'unwiped' AND value = 1") is None:
        return ""
    try:
        with database.write() as connection:
            index.compact(connection)
        database.rows("VACUUM")
        # The write-ahead log still holds the old pages.
        busy = database.row("PRAGMA wal_checkpoint(TRUNCATE)")
        if busy is not None and busy[0] != 0:
            return f"Another process is reading {database.path}."
        with database.write() as connection:
            connection.execute("DELETE FROM settings WHERE name = 'unwiped'")
    except SessionError as error:
        return str(error)
    return ""


def _replace(connection: sqlite3.Connection, index: SearchIndex, session: int, seq: int, left: Purged) -> None:
    found = connection.execute("SELECT n, body FROM entries WHERE session = ? AND seq = ?", (session, seq)).fetchone()
    index.take_out(connection, [found])
    body = encode_body(left)
    connection.execute(
        "UPDATE entries SET body = ?, sha256 = ? WHERE n = ?", (body.decode(), sha256_of(body), found[0])
    )


def _purge(connection: sqlite3.Connection, index: SearchIndex, session: int, prompts: list[str]) -> int | None:
    """Removes what no fork of a deleted session needs; the session to look at next, if this one is gone entirely.

    What the person said in the rows that go is added to `prompts`.
    """
    row = connection.execute("SELECT base FROM sessions WHERE n = ? AND deleted = 1", (session,)).fetchone()
    if row is None:
        return None
    seq, texts, forks = connection.execute(
        "SELECT coalesce(max(base_seq), 0), coalesce(max(base_texts), 0), count(*) FROM sessions WHERE base = ?",
        (session,),
    ).fetchone()
    index.forget(connection, session, seq)
    going = connection.execute(
        "SELECT body FROM entries WHERE session = ? AND seq > ? AND role = 'user' AND sort = 1", (session, seq)
    )
    bodies = (decode_body(body.encode()) for (body,) in going)
    prompts += [body.text for body in bodies if isinstance(body, UserMessage)]
    connection.execute("DELETE FROM entries WHERE session = ? AND seq > ?", (session, seq))
    connection.execute("DELETE FROM texts WHERE session = ? AND number > ?", (session, texts))
    connection.execute("DELETE FROM locks WHERE session = ?", (session,))
    if forks:
        return None
    connection.execute("DELETE FROM sessions WHERE n = ?", (session,))
    return cast("int | None", row[0])
