"""The session that is open: its log, what of it still waits for the disk, its title and its totals."""

from __future__ import annotations

from collections.abc import Callable

from mycode.core.entries import Checkpoint, Entry
from mycode.core.errors import SessionError
from mycode.core.events import Event, Warned
from mycode.core.messages import UserMessage
from mycode.core.summaries import SummaryRecord, Undo
from mycode.session.store import Store
from mycode.session.titles import title_of
from mycode.session.totals import Totals
from mycode.session.writer import Writer


class Opened:
    """Knows of one session what is on disk and what waits, and writes it on. The store must have claimed it.

    `trouble` is why entries wait in memory, as a sentence; empty when all are on disk.
    """

    def __init__(self, store: Store, session_id: str, redact: Callable[[str], str]) -> None:
        self.id = session_id
        self.title = store.info(session_id).title
        self.log = store.log(session_id)
        self.writer = Writer(store, session_id)
        self.totals = Totals(self.log)
        self.trouble = ""
        self._redact = redact

    @property
    def messages(self) -> int:
        """How many messages the whole session has."""
        return self.log.messages(1) + sum(1 for entry in self.writer.waiting if entry.message)

    def summaries(self) -> tuple[Entry, ...]:
        """Every summary ever made, oldest first."""
        waiting = (entry for entry in self.writer.waiting if isinstance(entry.body, SummaryRecord))
        return (*self.log.marked("summary"), *waiting)

    def undone(self) -> frozenset[int]:
        """Seqs of the entries that were taken back."""
        undos = (*self.log.marked("undo"), *self.writer.waiting)
        return frozenset(entry.body.target for entry in undos if isinstance(entry.body, Undo))

    def checkpoint_before(self, seq: int) -> str | None:
        """The first checkpoint on disk from `seq` on."""
        found = (entry.body.ref for entry in self.log.read(seq) if isinstance(entry.body, Checkpoint))
        return next(found, None)

    def save(self, entry: Entry) -> list[Event]:
        """Puts an entry on disk, or keeps it until that works; what the person is to be told of it, if anything.

        The first thing said gives a session without a title its title.
        """
        title = ""
        if not self.title and isinstance(entry.body, UserMessage):
            title = self.title = title_of(entry.body.text, self._redact)
        return self._told(self.writer.write(entry, title=title))

    def settle(self) -> None:
        """Tries again to write what waits, and leaves nothing behind a gap."""
        self._told(self.writer.settle())

    def _told(self, error: SessionError | None) -> list[Event]:
        before, self.trouble = self.trouble, str(error) if error else ""
        if error and self.trouble != before:
            return [Warned(f"{error} What is said meanwhile is kept in memory and saved as soon as that works.")]
        if before and not error:
            return [Warned("Everything is saved again.")]
        return []
