"""Entries on their way to the disk: in order, at once, and kept in memory for as long as the disk refuses them."""

from msgspec import structs

from mycode.core.entries import Entry, Note
from mycode.core.errors import SessionError
from mycode.session.store import Store


class Writer:
    """Writes one session's entries. What could not be written waits, and goes first the next time."""

    def __init__(self, store: Store, session_id: str) -> None:
        self._store = store
        self._session_id = session_id
        self._last = store.log(session_id).last_seq()
        self._waiting: list[Entry] = []

    @property
    def last(self) -> int:
        """The newest seq that is on disk."""
        return self._last

    @property
    def waiting(self) -> tuple[Entry, ...]:
        """Entries that are not on disk yet, in order."""
        return tuple(self._waiting)

    def write(self, *entries: Entry, title: str | None = None) -> SessionError | None:
        """Puts entries on disk, with those that waited; the error if that failed now."""
        self._waiting = sorted((*self._waiting, *entries), key=lambda entry: entry.seq)
        ready = [entry for place, entry in enumerate(self._waiting) if entry.seq == self._last + 1 + place]
        if not ready:
            return None
        try:
            self._store.append(self._session_id, *ready, title=title)
        except SessionError as error:
            return error
        self._last = ready[-1].seq
        del self._waiting[: len(ready)]
        return None

    def written(self, entry: Entry) -> None:
        """Told of an entry that somebody else put on disk, with all those before it."""
        self._last = entry.seq

    def settle(self) -> SessionError | None:
        """Leaves nothing behind a gap: a number whose entry never came gets a note, so that the log goes on."""
        if self._waiting:
            have = {entry.seq for entry in self._waiting}
            lost = [seq for seq in range(self._last + 1, self._waiting[-1].seq) if seq not in have]
            first = self._waiting[0]
            marks = [structs.replace(first, seq=seq, id=f"lost-{seq}", body=Note("lost"), tokens=0) for seq in lost]
            return self.write(*marks)
        return None
