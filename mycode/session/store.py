"""Where sessions are kept: rows that are only ever added, one transaction each, on disk before anybody sees them."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from mycode.core.entries import Body, Entry, Purge, Purged
from mycode.core.errors import SessionError
from mycode.core.tools import Found
from mycode.session import locks
from mycode.session.catalogue import Catalogue, SessionInfo
from mycode.session.database import Database
from mycode.session.entries import MESSAGE, brief_of, encode_body, role_of, sha256_of, sort_of
from mycode.session.log import SessionLog
from mycode.session.search import SearchIndex
from mycode.session.texts import Texts

if TYPE_CHECKING:
    from mycode.session.purging import Plan, Rule, Told

LONGEST_NAME = 100
_DAY = 86_400


class Store:
    """All sessions of one data folder. Writing to a session takes it; a second writer gets `SessionHeld`.

    With `redact` what is written is masked by it first, in entries and in kept texts. `typed` is the file of the lines
    typed in chats: what is purged or deleted goes from there, too.
    """

    def __init__(
        self,
        folder: Path,
        *,
        clock: Callable[[], float] = time.time,
        redact: Callable[[str], str] | None = None,
        typed: Path | None = None,
    ) -> None:
        self.folder = folder
        self._typed = typed
        self._redact = redact
        self.database = Database(folder)
        self._catalogue = Catalogue(self.database)
        self._clock = clock
        self._token = os.urandom(8).hex()
        self._numbers: dict[str, int] = {}
        self._held: set[int] = set()
        self._index = SearchIndex(self.database)
        self._texts = Texts(self.database)

    @property
    def read_only(self) -> bool:
        return self.database.read_only

    def create(
        self,
        *,
        cwd: str = "",
        model: str = "",
        session_id: str | None = None,
        title: str = "",
        created: float | None = None,
    ) -> str:
        """Starts a session, held by this store, and returns its id."""
        session_id = session_id or new_id()
        now = self._clock()
        with self.database.write() as connection:
            if connection.execute("SELECT 1 FROM sessions WHERE id = ?", (session_id,)).fetchone():
                message = f"There is already a session {session_id}. Resume it with --resume {session_id}."
                raise SessionError(message)
            number = connection.execute(
                "INSERT INTO sessions(id, created, updated, cwd, title, model) VALUES (?, ?, ?, ?, ?, ?)",
                (session_id, now if created is None else created, now, clean(cwd), clean(title), clean(model)),
            ).lastrowid
            assert number is not None
            locks.claim(connection, number, session_id, self._token)
        self._numbers[session_id] = number
        self._held.add(number)
        return session_id

    def append(self, session_id: str, *entries: Entry, title: str | None = None) -> None:
        """Adds rows in one transaction, on disk on return. Their seq must follow the last one without a gap.

        A `title` is set if the session has none yet. Raises `SessionHeld` when another process has the session.
        """
        number = self.number(session_id)
        with self.database.write() as connection:
            self._insert(connection, number, session_id, entries, title)
        self._held.add(number)

    def _insert(
        self,
        connection: sqlite3.Connection,
        number: int,
        session_id: str,
        entries: Sequence[Entry],
        title: str | None = None,
    ) -> None:
        row = connection.execute(
            "SELECT s.last_seq, s.messages, s.tokens, l.token FROM sessions s "
            "LEFT JOIN locks l ON l.session = s.n WHERE s.n = ? AND s.deleted = 0",
            (number,),
        ).fetchone()
        if row is None:
            message = f"Session {session_id} was deleted while it was open. Start a new one with /clear."
            raise SessionError(message)
        last, messages, tokens, holder = row
        if holder != self._token:
            # Not taken yet, or taken away by somebody since.
            locks.claim(connection, number, session_id, self._token)
        rows = []
        for entry in entries:
            if entry.seq != last + 1:
                message = f"Session {session_id} is at entry {last}: entry {entry.seq} does not follow it."
                raise SessionError(message)
            last = entry.seq
            sort, body = sort_of(entry.body), encode_body(self._kept(entry.body))
            if sort == MESSAGE:
                messages, tokens = messages + 1, tokens + entry.tokens
            rows.append(
                (
                    number, entry.seq, entry.id, entry.at, sort, role_of(entry.body), entry.tokens, tokens,
                    messages, sha256_of(body), brief_of(entry.body), body.decode(),
                )
            )  # fmt: skip
        connection.executemany(
            "INSERT INTO entries(session, seq, id, at, sort, role, tokens, sum_tokens, sum_messages, sha256, "
            "brief, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
        # The number of a text that was purged is never given to another.
        texts = max((text.number for e in entries if isinstance(e.body, Purge) for text in e.body.texts), default=0)
        connection.execute(
            "UPDATE sessions SET last_seq = ?, messages = ?, tokens = ?, updated = ?, texts = max(texts, ?), "
            "title = CASE WHEN title = '' THEN ? ELSE title END WHERE n = ?",
            (last, messages, tokens, self._clock(), texts, clean(title or ""), number),
        )

    def claim(self, session_id: str, *, steal: bool = False) -> None:
        """Takes a session for writing; raises `SessionHeld` when a living process has it and it is not stolen."""
        number = self.number(session_id)
        if number in self._held and not steal:
            return
        with self.database.write() as connection:
            locks.claim(connection, number, session_id, self._token, steal=steal)
        self._held.add(number)

    def release(self, session_id: str) -> None:
        """Lets go of a session; one that nothing was ever written to disappears.

        Where the disk refuses that (it is full), it is no matter: the lock of a process that has ended holds nobody up.
        """
        number = self._numbers.get(session_id)
        if number is None or number not in self._held or self.read_only:
            return
        with suppress(SessionError), self.database.write() as connection:
            connection.execute("DELETE FROM locks WHERE session = ? AND token = ?", (number, self._token))
            connection.execute(
                "DELETE FROM sessions WHERE n = ? AND last_seq = 0 AND texts = 0 AND title = ''", (number,)
            )
        self._held.discard(number)

    def close(self) -> None:
        """Lets go of every session and of the file."""
        try:
            for session_id in [key for key, number in self._numbers.items() if number in self._held]:
                self.release(session_id)
        finally:
            self.database.close()

    def info(self, session_id: str) -> SessionInfo:
        """What is known of the session with exactly this id."""
        return self._catalogue.info(session_id)

    def sessions(self, *, limit: int | None = None, cwd: str | None = None) -> list[SessionInfo]:
        """Sessions that hold something, newest first; only those of a folder if `cwd` is given."""
        return self._catalogue.sessions(limit=limit, cwd=cwd)

    def latest(self, cwd: str | None = None) -> SessionInfo | None:
        """The session that was written to last."""
        return self._catalogue.latest(cwd)

    def find(self, name: str) -> SessionInfo:
        """The one session with this id, this title, or an id that starts so; an error names the candidates."""
        return self._catalogue.find(name)

    def origin(self, session_id: str) -> str:
        """The session that this one was forked from first; itself if it is no fork."""
        return self._catalogue.origin(session_id)

    def has_family(self, origin: str) -> bool:
        """Whether this session, or a fork of it or of one of those, is still there."""
        return self._catalogue.has_family(origin)

    def rename(self, session_id: str, title: str) -> str:
        """Gives a session a name: one harmless line, which is returned."""
        from mycode.core.visible import one_line

        name = one_line(title, LONGEST_NAME)
        if not any(char.isalnum() for char in name):
            message = "A name needs at least one letter or digit."
            raise SessionError(message)
        self._set("UPDATE sessions SET title = ? WHERE n = ?", session_id, name)
        return name

    def set_model(self, session_id: str, model: str) -> None:
        self._set("UPDATE sessions SET model = ? WHERE n = ?", session_id, model)

    def fork(self, session_id: str, at_seq: int | None = None, *, title: str = "") -> str:
        """A new session with the same past up to and with `at_seq` (default: all of it); nothing is copied."""
        log = self.log(session_id)
        at_seq = log.last_seq() if at_seq is None else at_seq
        if not 0 <= at_seq <= log.last_seq():
            message = f"Session {session_id} has entries 1 to {log.last_seq()}; it cannot be forked at {at_seq}."
            raise SessionError(message)
        origin = self.info(session_id)
        first = self._first_of_fork(session_id, at_seq)
        tokens, messages = log.sums(at_seq)
        base = log.owner(at_seq)
        fork_id, now = new_id(), self._clock()
        with self.database.write() as connection:
            # Texts kept after the fork point may be numbered too: gaps in the handles do no harm.
            number = connection.execute(
                "INSERT INTO sessions(id, created, updated, cwd, title, model, base, base_seq, base_texts, last_seq, "
                "messages, tokens, texts) SELECT ?, ?, ?, ?, ?, ?, n, ?, texts, ?, ?, ?, texts "
                "FROM sessions WHERE n = ?",
                (
                    fork_id, now, now, origin.cwd, clean(title) or origin.title, origin.model, at_seq, at_seq,
                    messages, tokens, base,
                ),
            ).lastrowid  # fmt: skip
            assert number is not None
            locks.claim(connection, number, fork_id, self._token)
            self._insert(connection, number, fork_id, first)
        self._numbers[fork_id] = number
        self._held.add(number)
        return fork_id

    def check_fork(self, session_id: str, at_seq: int) -> None:
        """Raises `SessionError` where no fork can begin, because what it would show was purged."""
        self._first_of_fork(session_id, at_seq)

    def _first_of_fork(self, session_id: str, at_seq: int) -> list[Entry]:
        """What a fork begins with: nothing, unless originals were purged since."""
        log = self.log(session_id)
        if not log.marked("purge", newest=1):
            return []
        from mycode.session.branches import bodies_at_fork

        bodies = bodies_at_fork(log, at_seq)
        return [Entry(seq, new_id(), self._clock(), body) for seq, body in enumerate(bodies, at_seq + 1)]

    def delete(self, session_id: str, *, said_here: bool = True) -> None:
        """Deletes a session for good; forks of it keep their past. Call `wipe` afterwards.

        What was said in it is also taken from the typed lines, if it was `said_here`. Raises `SessionHeld` if it is
        open elsewhere.
        """
        from mycode.session import deletion, typed

        number = self.number(session_id)
        with self.database.write() as connection:
            prompts = deletion.delete(connection, self._index, number, session_id, self._token)
            if said_here and self._typed is not None:
                typed.forget(self._typed, prompts)
        del self._numbers[session_id]
        self._held.discard(number)

    def plan_purge(self, session_id: str, rule: Rule) -> Plan:
        """What `purge` would remove now; changes nothing."""
        return self._plan(session_id, rule, "")

    def purge(self, session_id: str, rule: Rule, *, why: str, numbered: Callable[[Purge], Entry] | None = None) -> Plan:
        """Removes the text of originals that lie under a summary in force, for good: all of them, or none.

        One transaction, which also adds the entry that tells of it, numbered by `numbered` if the session is open.
        Call `wipe` afterwards. Raises `SessionHeld` if another process has the session.
        """
        from mycode.session import deletion, typed

        number = self.number(session_id)
        with self.database.write() as connection:
            locks.claim(connection, number, session_id, self._token)
            plan = self._plan(session_id, rule, why)
            if plan.rows:
                deletion.purge(connection, self.database, self._index, plan)
                for told in plan.told:
                    mine = told.number == number and numbered is not None
                    entry = numbered(told.body) if mine and numbered else self._next(told)
                    self._insert(connection, told.number, told.session_id, (entry,))
                if self._typed is not None:
                    typed.forget(self._typed, plan.prompts)
            for one in {number, *(told.number for told in plan.told)} - self._held:
                connection.execute("DELETE FROM locks WHERE session = ? AND token = ?", (one, self._token))
        return plan

    def sweep_is_due(self) -> bool:
        """Whether sessions were last looked through for old originals more than a day ago."""
        row = self.database.row("SELECT value FROM settings WHERE name = 'swept'")
        return row is None or self._clock() - cast("int", row[0]) > _DAY

    def note_sweep(self) -> None:
        """They were looked through now."""
        with self.database.write() as connection:
            connection.execute("INSERT OR REPLACE INTO settings VALUES ('swept', ?)", (int(self._clock()),))

    def wipe(self) -> str:
        """Overwrites what removed rows left in the file. Empty, or why that is still to be done, as a sentence."""
        from mycode.session import deletion

        return deletion.wipe(self.database, self._index)

    def search(self, query: str, *, session_id: str | None = None, limit: int = 20) -> tuple[Found, ...]:
        """Where words stand, best first: in one session with its shared past, or in all of them."""
        spans = None if session_id is None else [(n, last) for n, _, last in self.log(session_id).spans()]
        return self._index.search(query, spans, limit)

    def search_texts(self, session_id: str, text: str, limit: int) -> Iterator[tuple[int, str]]:
        """Whole texts of a session that hold these very words, newest first, with their numbers."""
        return self._texts.holding(self.number(session_id), text, limit)

    def index_if_much(self) -> None:
        """Brings the search index up to date if enough has gathered."""
        self._index.update_if_much()

    def verify(self, session_id: str) -> list[str]:
        """Every fault found in a stored session, one sentence each."""
        from mycode.session.check import verify

        return verify(self.log(session_id))

    def log(self, session_id: str) -> SessionLog:
        """The rows of a session, readable in parts."""
        return SessionLog(self.database, self.number(session_id))

    def number(self, session_id: str) -> int:
        """The session's number inside the database."""
        number = self._numbers.get(session_id)
        if number is None:
            number = self._numbers[session_id] = self._catalogue.number(session_id)
        return number

    def keep_text(self, session_id: str, text: str, *, number: int | None = None) -> str:
        """Stores a whole text durably and returns its handle: a given one, or the next; a text has only one."""
        kept = text if self._redact is None else self._redact(text)
        return f"t{self._texts.keep(self.number(session_id), kept, number)}"

    def text(self, session_id: str, number: int) -> str:
        """The text that was kept as `t<number>`, byte for byte, or that it was purged."""
        try:
            return self._texts.get(self.number(session_id), number)
        except SessionError:
            for entry in self.log(session_id).marked("purge"):
                if isinstance(entry.body, Purge):
                    for text in entry.body.texts:
                        if text.number == number:
                            return Purged("tool", entry.body.at, text.chars, text.sha256).text
            raise

    def texts(self, session_id: str) -> Iterator[tuple[int, str]]:
        """Every text of the session with its number, those of its shared past too."""
        return self._texts.every(self.number(session_id))

    def _plan(self, session_id: str, rule: Rule, why: str) -> Plan:
        from mycode.session.purging import plan

        number = self.number(session_id)
        return plan(self.database, number, session_id, rule, now=self._clock(), why=why)

    def _next(self, told: Told) -> Entry:
        row = self.database.row("SELECT last_seq FROM sessions WHERE n = ?", (told.number,))
        return Entry(cast("int", row[0]) + 1 if row else 1, new_id(), self._clock(), told.body)

    def _kept(self, body: Body) -> Body:
        if self._redact is None:
            return body
        from mycode.session.masked import masked

        return masked(body, self._redact)

    def _set(self, statement: str, session_id: str, value: str) -> None:
        number = self.number(session_id)
        with self.database.write() as connection:
            connection.execute(statement, (clean(value), number))


def new_id() -> str:
    """Twelve hex digits: short enough to type the first few."""
    return os.urandom(6).hex()


def clean(text: str) -> str:
    """Text that SQLite takes: a file name may hold half a surrogate."""
    return text.encode("utf-8", "replace").decode()
