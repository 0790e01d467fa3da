"""What a session can look up again: whole texts, messages and summaries by handle, and anything by its words."""

import re
from collections.abc import Iterable

from mycode.core.entries import Entry, Purged
from mycode.core.errors import SessionError
from mycode.core.patterns import pattern
from mycode.core.summaries import SummaryRecord
from mycode.core.tools import Found
from mycode.session.entries import role_of, text_of
from mycode.session.search import snippet
from mycode.session.store import Store

_HANDLE = pattern(r"\s*([mst])(\d+)(?:\s*(?:-|–|\.\.)\s*m?(\d+))?\s*", re.IGNORECASE)


class SessionArchive:
    """The archive and the recall of the session that is open now: `core.tools.Archive` and `core.tools.Recall`.

    Tools hold on to it while the person starts another session; the session then moves it along.
    """

    def __init__(self, store: Store, session_id: str) -> None:
        self._store = store
        self.session_id = session_id

    def keep(self, text: str) -> str:
        """Stores `text` durably and returns its handle."""
        return self._store.keep_text(self.session_id, text)

    def search(self, query: str, limit: int = 8) -> tuple[Found, ...]:
        """Where the words stand in this session, best first; then whole texts that hold the query as it is."""
        found = self._store.search(query, session_id=self.session_id, limit=limit)
        words = query.strip().strip('"')
        if not words or len(found) >= limit:
            return found
        texts = self._store.search_texts(self.session_id, words, limit - len(found))
        return found + tuple(Found(f"t{number}", "text", snippet(text, [words]), 0.0) for number, text in texts)

    def expand(self, handle: str) -> str:
        """The original behind `m12`, `m12-m30`, `s3` or `t7`, byte for byte; several messages get a line above each.

        Where the original was purged, a sentence says so and names the summary that stands for it.
        """
        match = _HANDLE.fullmatch(handle)
        if match is None or (match[3] and match[1].lower() != "m"):
            message = f"{handle!r} is no handle. Handles look like m12, m12-m30, s3 or t7."
            raise SessionError(message)
        kind, number = match[1].lower(), int(match[2])
        if kind == "t":
            return self._store.text(self.session_id, number)
        if kind == "s":
            return self._summary(number)
        if match[3]:
            return _several(self._store.log(self.session_id).read(number, int(match[3]) + 1), handle)
        entry = self._store.log(self.session_id).entry(number) if number else None
        if entry is None:
            message = f"There is no message m{number} in this session."
            raise SessionError(message)
        if isinstance(entry.body, Purged) and (number := self._number_of(entry.body.summary)):
            return f"{entry.body.text}; summary s{number} stands for it"
        return text_of(entry.body)

    def _number_of(self, record_id: str) -> int:
        """The number of a summary by its id; 0 if there is none."""
        found = self._store.log(self.session_id).marked("summary")
        ids = [entry.body.id for entry in found if isinstance(entry.body, SummaryRecord)]
        return ids.index(record_id) + 1 if record_id in ids else 0

    def _summary(self, number: int) -> str:
        found = self._store.log(self.session_id).marked("summary")
        if not 0 < number <= len(found):
            there = f"There are {len(found)}." if found else "There is none yet."
            message = f"There is no summary s{number} in this session. {there}"
            raise SessionError(message)
        return text_of(found[number - 1].body)


def _several(entries: Iterable[Entry], handle: str) -> str:
    parts = [f"[m{entry.seq} {role_of(entry.body)}]\n{text_of(entry.body)}" for entry in entries if entry.message]
    if not parts:
        message = f"There are no messages {handle} in this session."
        raise SessionError(message)
    return "\n\n".join(parts)
