"""The messages of a conversation with what is laid over them, and the view that comes of both."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mycode.context import pins, projection
from mycode.context.budget import Count
from mycode.context.live_view import LiveView, Sums
from mycode.context.past import Past
from mycode.context.policy import Summary
from mycode.context.projection import Laid, Row, Shown
from mycode.core.entries import Body, Entry, Log, Note, Purge
from mycode.core.messages import AssistantMessage, ContextNote, ToolCall, ToolResult, ViewMessage
from mycode.core.summaries import Drop, MaskEpoch, Pin, SummaryRecord, Undo

if TYPE_CHECKING:
    from mycode.context.facts import FactLedger

_FACTS_FROM_TOKENS = 8_000
"""Facts are kept up message by message once a view holds this many: a short conversation never needs them."""
_ROWS_AT_ONCE = 4


class Conversation:
    """Owns the overlays, the facts and the view of what was said; `past` holds the messages that this takes.

    What a summary in force covers is forgotten: its messages, what was laid over them, the words of older summaries.
    The log has them, and an undo reads them again. So a conversation without end takes no more room than its view,
    and one taken up from its log is in the same state as the one that went on; where nothing is folded, that takes all
    messages, which are read as soon as one is asked for. `memory` gives the project's memory; it is read again after
    each summary, and an undo brings the old text back.
    """

    def __init__(
        self, settings: Summary, count: Count, memory: Callable[[], str], redact: Callable[[str], str]
    ) -> None:
        self._redact = redact
        self._settings = settings
        self._memory = memory
        self._memory_texts = {0: memory()}
        self._log: Log | None = None
        self._overlays: list[Entry] = []
        self._facts: FactLedger | None = None
        self._facts_upto = 0
        self._calls: dict[str, ToolCall] = {}
        self._view = LiveView(count)
        self._tokens = 0
        self._past = Past()
        self.laid = Laid()
        self.generation = 0
        self._relay()

    @property
    def past(self) -> Past:
        """The messages that are held, and the log behind them."""
        self._read_unfolded()
        return self._past

    @property
    def rows(self) -> list[Row]:
        """The messages that are held: those after the last fold, and the first and newest prompt that it carries on."""
        return self.past.rows

    def restore(self, log: Log) -> None:
        """Reads from the end of the last fold on; where nothing is folded, no message before one is asked for."""
        self._log = log
        self._overlays = [entry for entry in log.overlays() if is_overlay(entry.body)]
        self.laid = projection.lay(self._overlays)
        self._memory_texts = {self.laid.epoch: self._memory()}
        self._past.open(log)
        self._take_up()

    def append(self, row: Row) -> None:
        self._past.append(row)
        self._tokens += row.tokens
        if self._tokens > _FACTS_FROM_TOKENS:
            self.facts(_ROWS_AT_ONCE)  # a few messages a time, so that a backlog is caught up with unnoticed

    def overlay(self, entry: Entry) -> None:
        """Lays one more thing over the rows, at once."""
        before = self.laid.head
        self._overlays.append(entry)
        self.laid = projection.lay(self._overlays)
        if isinstance(entry.body, SummaryRecord):
            self._note_memory(entry.seq)
        head = self.laid.head
        if before is not None and (head is None or head.end < before.end):
            self._uncover()
            head = self.laid.head
        if (head and head.seq) == (before and before.seq):
            self._relay()
        else:
            self._take_up()

    def shown(self) -> list[Shown]:
        """The view, footer included; to be read at once."""
        self._read_unfolded()
        return self._view.shown(self._footer(self.laid))

    def messages(self) -> tuple[ViewMessage, ...]:
        """The messages of the view."""
        self._read_unfolded()
        return self._view.messages(self._footer(self.laid))

    def sums(self) -> Sums:
        """Tokens and items of the view by category."""
        self._read_unfolded()
        return self._view.sums(self._footer(self.laid))

    def counted(self) -> int:
        """Counted tokens of the view."""
        return sum(tokens for tokens, _ in self.sums().values())

    def counted_with(self, record: SummaryRecord) -> int:
        """Counted tokens that the view would hold if this record were laid."""
        seq = self.rows[-1].seq + 1 if self.rows else 1
        newest = max((entry.seq for entry in self._overlays), default=0)
        laid = projection.lay([*self._overlays, Entry(max(seq, newest + 1), record.id, record.at, record)])
        start = self._first_visible(laid)
        shown = [*projection.project(self.rows, laid, self._head(laid), start), *self._footer(laid)]
        return sum(self._view.counted(item).tokens for item in shown)

    def visible(self) -> list[Row]:
        """The rows after the last fold."""
        return self.rows[self.first_visible() :]

    def first_visible(self) -> int:
        """Index of the first of them."""
        return self._first_visible(self.laid)

    def facts(self, most: int | None = None) -> FactLedger:
        """The facts of everything said so far (or of `most` more messages); reads only what is new."""
        from mycode.context.facts import FactLedger

        rows = self.rows
        facts = self._facts or FactLedger()
        start = self._past.after(self._facts_upto)
        for row in rows[start : None if most is None else start + most]:
            facts = facts.add(row.seq, row.message, self._answered(row))
            self._facts_upto = row.seq
        self._facts = facts
        return facts

    def newest_undoable(self) -> Entry | None:
        """The newest change of the view that has not been taken back."""
        undone: set[int] = set()
        for entry in reversed(self._overlays):
            if entry.seq in undone:
                continue
            if isinstance(entry.body, Undo):
                undone.add(entry.body.target)
            elif not isinstance(entry.body, Pin | Purge):
                return entry
        return None

    def can_lift(self, seq: int) -> bool:
        """Whether the view without this overlay shows nothing that was purged."""
        laid = projection.lay(entry for entry in self._overlays if entry.seq != seq)
        carried = carried_by(laid.head.record) if laid.head is not None else 0
        return not projection.shows_purged(laid) and not any(first <= carried <= last for first, last in laid.purged)

    def _answered(self, row: Row) -> ToolCall | None:
        """The call that a result answers: one of the newest answer's, and each only once."""
        if isinstance(row.message, AssistantMessage):
            self._calls = {call.id: call for call in row.message.tool_calls}
        return self._calls.pop(row.message.call_id, None) if isinstance(row.message, ToolResult) else None

    def _read_unfolded(self) -> None:
        """A restart left everything unread where nothing is folded: a view without a summary takes all of it."""
        if self.laid.head is None and self._past.start > 1:
            self._past.hold(1)
            self._take_up()

    def _uncover(self) -> None:
        """A fold was taken back: what it covered is laid over the messages again, as the log has it."""
        if self._log is None:
            return
        last = self._past.stored()
        late = [entry for entry in self._overlays if entry.seq > last]
        undone = [entry.body.target for entry in late if isinstance(entry.body, Undo)]
        told = (entry for entry in self._log.overlays(undone) if entry.seq <= last and is_overlay(entry.body))
        self._overlays = [*told, *late]
        self.laid = projection.lay(self._overlays)
        if self.laid.head is None:
            self._past.hold(1)

    def _take_up(self) -> None:
        """Another fold opens the view, or none: what it covers is let go, and the facts are those that it carries on.

        What its record knows includes the messages that stayed after it: they are not read twice.
        """
        head = self.laid.head
        self._facts, self._facts_upto = None, self._past.start - 1
        if head is not None:
            from mycode.context.records import kept_facts

            self._past.hold(head.end + 1, carried_by(head.record), projection.aim_of(head.record)[0])
            self._overlays = _uncovered(self._overlays, min(head.end, self._past.start - 1))
            self.laid = projection.lay(self._overlays)
            self._facts = kept_facts(head.record)
            self._facts_upto = max(self._facts.last_seq, head.end)
        self._calls = {}
        for row in self._past.rows[: self._past.after(self._facts_upto)]:
            self._answered(row)
        self._relay()

    def _relay(self) -> None:
        """The overlays changed: the view is laid anew."""
        self.generation += 1
        self._view.lay(self._past.rows, self.first_visible(), self.laid, self._head(self.laid))

    def _first_visible(self, laid: Laid) -> int:
        return self._past.after(laid.head.end) if laid.head is not None else 0

    def _note_memory(self, seq: int) -> None:
        memory = self._memory()
        if memory != self._memory_at(seq):
            self._memory_texts[seq] = memory

    def _head(self, laid: Laid) -> list[Shown]:
        out: list[Shown] = []
        memory = self._memory_at(laid.epoch)
        if memory.strip():
            out.append(Shown(ContextNote(memory, "memory")))
        texts = pins.settled_pins(laid)
        if texts:
            out.append(Shown(ContextNote(pins.pins_text(texts), "pins")))
        head = laid.head
        if head is not None:
            seq, size = projection.aim_of(head.record)
            first = self._past.row(seq) if seq and seq != carried_by(head.record) else None
            aim = projection.aim_text(first, size, self._redact) if first is not None else ""
            text = projection.summary_text(head.record, head.number, self._settings.title, aim)
            out.append(Shown(ContextNote(text, "summary", head.record.id)))
            carried = self._past.row(carried_by(head.record))
            if carried is not None:
                out.append(Shown(carried.message, carried.seq, carried.tokens))
        return out

    def _memory_at(self, epoch: int) -> str:
        seqs = [seq for seq in self._memory_texts if seq <= epoch]
        return self._memory_texts[max(seqs) if seqs else min(self._memory_texts)]

    def _footer(self, laid: Laid) -> list[Shown]:
        """What closes the view: fresh pins, and after a fold what is still open. Small, and free to change."""
        parts: list[str] = []
        fresh = pins.fresh_pins(laid)
        if fresh:
            parts.append(pins.pins_text(fresh))
        if laid.head is not None and self._settings.footer:
            from mycode.context.summarizers.assembly import error_line

            ledger = self.facts()
            todo = [f"- [{item.status}] {item.text[:160]}" for item in ledger.open_todo[:8]]
            errors = [f"- {error_line(error, 240)}" for error in ledger.open_errors[-3:]]
            if todo:
                parts.append("\n".join(["Still to do:", *todo]))
            if errors:
                parts.append("\n".join(["Errors still open:", *errors]))
        return [Shown(ContextNote("\n\n".join(parts), "footer"))] if parts else []


def is_overlay(body: Body) -> bool:
    """Whether a row of the log changes the view without being a message."""
    if isinstance(body, Note):
        return body.name in {projection.RESTORED, projection.UNPINNED}
    return isinstance(body, SummaryRecord | MaskEpoch | Drop | Pin | Undo | Purge)


def carried_by(record: SummaryRecord) -> int:
    """Seq of the user message that a record carries on word for word (0: none)."""
    return int((record.context.raw or {}).get("carried", 0))


def _uncovered(overlays: Iterable[Entry], end: int) -> list[Entry]:
    """The overlays when all up to `end` is folded: of older summaries only their places are left, of masks nothing."""
    kept: list[Entry] = []
    for entry in overlays:
        body = entry.body
        if entry.seq > end or not isinstance(body, SummaryRecord | MaskEpoch):
            kept.append(entry)
        elif isinstance(body, SummaryRecord):
            kept.append(replace(entry, body=body.place()))
    return kept
