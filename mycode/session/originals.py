"""What becomes of the originals of the open session by setting: purged once it is safe, never before it was said."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mycode.core.entries import Entry, Purge
from mycode.core.errors import SessionError
from mycode.session.store import Store

if TYPE_CHECKING:
    from mycode.session.purging import Rule


class Originals:
    """Purges by `rule` (None: keeps all) after a newer summary, and when the session is left; says so before.

    A session that was only looked at is left as it was: nothing goes that was not announced in this run. A rule of days
    is also applied to sessions that nobody opens any more, at most once a day, when the program ends.
    """

    def __init__(self, store: Store, rule: Rule | None) -> None:
        self._store = store
        self._rule = rule
        self._session_id = ""
        self._looked = False
        self._announced = False
        self._just_now = False
        self._folded = False
        self._swept = False
        self._others: tuple[str, ...] = ()

    def opened(self, session_id: str) -> None:
        """Another session is open from now on."""
        self._session_id = session_id
        self._looked = self._announced = self._just_now = self._folded = False

    def announcement(self) -> str:
        """What will go, as a sentence: once for each session, and only if there is something; else empty."""
        if self._rule is None or self._looked:
            return ""
        self._looked = True
        sentences = []
        if count := self._store.plan_purge(self._session_id, self._rule).messages:
            self._announced = self._just_now = True
            sentences.append(f"The originals of {count} summarized messages will be purged, {_UNTIL}")
        if text := self._sweep(self._rule):
            sentences.append(text)
        return " ".join(sentences)

    def _sweep(self, rule: Rule) -> str:
        """What will go of other sessions when the program ends, as a sentence; empty if nothing, or if it was today."""
        if not rule.days or self._swept or not self._store.sweep_is_due():
            return ""
        self._swept = True
        ids = [info.id for info in self._store.sessions() if info.id != self._session_id]
        counts = {one: self._store.plan_purge(one, rule).messages for one in ids}
        self._others = tuple(one for one, messages in counts.items() if messages)
        if not self._others:
            return ""
        where = f"{len(self._others)} other session{'s' if len(self._others) > 1 else ''}"
        return (
            f"The originals of {sum(counts.values())} summarized messages in {where} are older than {rule.days:g} days "
            "and will be purged, as context.originals says, when you leave."
        )

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
        """The store is about to be closed: purges what was announced of other sessions, and wipes the file."""
        if self._rule is None:
            return
        for session_id in self._others:
            with suppress(SessionError):  # open elsewhere: another day
                self._store.purge(session_id, self._rule, why=_WHY)
        if self._swept:
            self._store.note_sweep()
        self._store.wipe()


_WHY = "by the setting context.originals"
_UNTIL = (
    "as context.originals says, once a newer summary is made or this session is left. "
    "Until then /summarize --undo brings them back."
)
