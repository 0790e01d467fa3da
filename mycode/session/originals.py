"""What becomes of the originals of the open session by setting: purged once it is safe, never before it was said."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mycode.core.entries import Entry, Purge
from mycode.core.errors import SessionError
from mycode.session.store import Store

if TYPE_CHECKING:
    from mycode.session.purging import Rule


class Originals:
    """Purges by `rule` (None: keeps all) after a newer summary, and when the session is left; says so before.

    A session that was only looked at is left as it was: nothing goes that was not announced in this run.
    """

    def __init__(self, store: Store, rule: Rule | None) -> None:
        self._store = store
        self._rule = rule
        self._session_id = ""
        self._looked = False
        self._announced = False
        self._just_now = False
        self._folded = False

    def opened(self, session_id: str) -> None:
        """Another session is open from now on."""
        self._session_id = session_id
        self._looked = self._announced = self._just_now = self._folded = False

    def announcement(self) -> str:
        """What will go, as a sentence: once for each session, and only if there is something; else empty."""
        if self._rule is None or self._looked:
            return ""
        self._looked = True
        count = self._store.plan_purge(self._session_id, self._rule).messages
        if not count:
            return ""
        self._announced = self._just_now = True
        return f"The originals of {count} summarized messages will be purged, {_UNTIL}"

    def folded(self) -> str:
        """A summary was laid; what that means for its originals, empty if nothing."""
        if self._rule is None:
            return ""
        self._folded = True
        if self._rule.days:
            return ""  # nothing of it is old enough to be worth a word
        self._announced = True
        return f"The originals under this summary will be purged, {_UNTIL}"

    def after_turn(self, numbered: Callable[[Purge], Entry]) -> Entry | None:
        """Purges what lifting the newest summary would not show; the entry that tells of it, if there was anything.

        Not in the turn that announced it: the person has had no time to object.
        Raises `SessionError` if it could not be done: then nothing was.
        """
        due, self._just_now = self._folded and self._announced and not self._just_now, False
        if self._rule is None or not due:
            return None
        self._folded = False
        entries: list[Entry] = []

        def keep(body: Purge) -> Entry:
            entries.append(numbered(body))
            return entries[-1]

        self._store.purge(self._session_id, replace(self._rule, undoable=True), why=_WHY, numbered=keep)
        return entries[-1] if entries else None

    def left(self) -> None:
        """The session is left and still held by us: purges what was announced, or leaves it to the next time."""
        if self._rule is None or not self._announced:
            return
        try:
            self._store.purge(self._session_id, self._rule, why=_WHY)
        except SessionError:
            return
        self._announced = False

    def closed(self) -> None:
        """The store is about to be closed: overwrites what purged rows left in the file."""
        if self._rule is not None:
            self._store.wipe()


_WHY = "by the setting context.originals"
_UNTIL = (
    "as context.originals says, once a newer summary is made or this session is left. "
    "Until then /summarize --undo brings them back."
)
