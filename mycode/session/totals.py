"""What a session has used so far, by model, and which turn it is in: known after a resume without adding up."""

import msgspec

from mycode.core.entries import Body, Entry, Note
from mycode.core.events import TurnEnded
from mycode.core.messages import AssistantMessage
from mycode.core.summaries import SummaryRecord
from mycode.core.usage import NO_USAGE, Usage
from mycode.session.log import SessionLog

# How far back is looked when a session has no totals yet (its first turn was cut off, or it was imported).
_UNTOTALLED = 2000


class Totals:
    """Counts entries as they come. Each turn's closing note carries all sums, so the newest one is enough to go on."""

    def __init__(self, log: SessionLog) -> None:
        notes = log.marked("turn_ended", newest=1)
        self._log = log
        self._note = notes[0] if notes else None
        self._models: dict[str, Usage] | None = None
        self.turn = _turn(self._note.body) if self._note else 0
        self.this_turn = NO_USAGE

    @property
    def models(self) -> dict[str, Usage]:
        """What each model used, in the order they were first asked; what came after the last note is read once."""
        if self._models is None:
            self._models = _models(self._note.body) if self._note else {}
            start = self._note.seq + 1 if self._note else max(1, self._log.last_seq() - _UNTOTALLED)
            for entry in self._log.read(start):
                self._add(self._models, entry.body)
        return self._models

    def begin(self) -> int:
        """A turn starts; its number, from 1."""
        self.this_turn = NO_USAGE
        return self.turn + 1

    def count(self, entry: Entry) -> None:
        """An entry that is not in the log yet."""
        self._add(self.models, entry.body)
        if isinstance(entry.body, AssistantMessage | SummaryRecord):
            self.this_turn += entry.body.usage or NO_USAGE

    def closing(self, event: TurnEnded, turn: int) -> Note:
        """The note that closes a turn."""
        self.turn = turn
        data = {
            "turn": turn,
            "reason": event.reason,
            "steps": event.steps,
            "seconds": round(event.seconds, 3),
            "usage": msgspec.to_builtins(event.usage),
            "totals": msgspec.to_builtins(self.models),
        }
        return Note("turn_ended", data)

    @staticmethod
    def _add(models: dict[str, Usage], body: Body) -> None:
        if isinstance(body, AssistantMessage | SummaryRecord) and body.usage is not None:
            models[body.model] = models.get(body.model, NO_USAGE) + body.usage


def _turn(body: Body) -> int:
    turn = body.data.get("turn", 0) if isinstance(body, Note) else 0
    return turn if isinstance(turn, int) else 0


def _models(body: Body) -> dict[str, Usage]:
    try:
        return msgspec.convert(body.data.get("totals", {}) if isinstance(body, Note) else {}, dict[str, Usage])
    except msgspec.ValidationError:
        return {}
