"""The messages of a conversation with what is laid over them, and the view that comes of both."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from mycode.context import pins, projection
from mycode.context.budget import Count
from mycode.context.live_view import LiveView, Sums
from mycode.context.policy import Summary
from mycode.context.projection import Laid, Row, Shown
from mycode.core.entries import Body, Entry, Log, Note
from mycode.core.messages import AssistantMessage, ContextNote, ToolCall, ToolResult, ViewMessage
from mycode.core.summaries import Drop, MaskEpoch, Pin, SummaryRecord, Undo

if TYPE_CHECKING:
    from mycode.context.facts import FactLedger

_FACTS_FROM_TOKENS = 8_000
"""Facts are kept up message by message once a view holds this many: a short conversation never needs them."""
_ROWS_AT_ONCE = 4


class Conversation:
    """Owns the rows as far as they are read, the overlays, the facts, and the view.

    `memory` gives the project's memory; it is read again after each summary, and an undo brings the old text back.
    """

    def __init__(self, settings: Summary, count: Count, memory: Callable[[], str]) -> None:
        self._settings = settings
        self._memory = memory
        self._memory_texts = {0: memory()}
        self._log: Log | None = None
        self._loaded_from = 1
        self._overlays: list[Entry] = []
        self._facts: FactLedger | None = None
        self._facts_upto = 0
        self._calls: dict[str, ToolCall] = {}
        self._view = LiveView(count)
        self._tokens = 0
        self.rows: list[Row] = []
        self.laid = Laid()
        self.generation = 0
        self._relay()

    def restore(self, log: Log, tokens: int) -> None:
        """Reads from the end of the last fold on; where nothing is folded, the newest rows that hold `tokens`."""
        self._log = log
        self._calls = {}
        self._overlays = [entry for entry in log.overlays() if is_overlay(entry.body)]
        self.laid = projection.lay(self._overlays)
        head = self.laid.head
        self._loaded_from = head.end + 1 if head is not None else _start(log, log.last_seq(), tokens)
        self.rows = list(_rows(log.read(self._loaded_from)))
        carried = carried_by(head.record) if head is not None else 0
        if carried:
            self.rows = [*_rows(log.read(carried, carried + 1)), *self.rows]
        self._facts = None
        if head is not None:
            from mycode.context.records import kept_facts

            self._facts = kept_facts(head.record)
        # What the record knows includes the messages that stayed after its fold: they are not read twice.
        self._facts_upto = (
            max(self._facts.last_seq, head.end)
            if head is not None and self._facts is not None
            else self._loaded_from - 1
        )
        for row in self.rows[: self.after(self._facts_upto)]:
            self._answered(row)
        self._memory_texts = {self.laid.epoch: self._memory()}
        self._relay()

    def append(self, row: Row) -> None:
        self.rows.append(row)
        self._tokens += row.tokens
        if self._tokens > _FACTS_FROM_TOKENS:
            self.facts(_ROWS_AT_ONCE)  # a few messages a time, so that a backlog is caught up with unnoticed

    def overlay(self, entry: Entry) -> None:
        """Lays one more thing over the rows, at once."""
        self._overlays.append(entry)
        self.laid = projection.lay(self._overlays)
        if isinstance(entry.body, SummaryRecord):
            self._memory_texts[entry.seq] = self._memory()
        self._relay()

    def shown(self) -> list[Shown]:
        """The view, footer included; to be read at once."""
        return self._view.shown(self._footer(self.laid))

    def messages(self) -> tuple[ViewMessage, ...]:
        """The messages of the view."""
        return self._view.messages(self._footer(self.laid))

    def sums(self) -> Sums:
        """Tokens and items of the view by category."""
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

    def after(self, seq: int) -> int:
        """Index of the first row after that seq."""
        return bisect_right(self.rows, seq, key=_seq)

    def row(self, seq: int) -> Row | None:
        """The message with that seq, if it is read."""
        index = self.after(seq) - 1
        return self.rows[index] if index >= 0 and self.rows[index].seq == seq else None

    def call_of(self, row: Row) -> ToolCall | None:
        """The call that a result answers."""
        assert isinstance(row.message, ToolResult)
        for index in range(self.after(row.seq) - 2, -1, -1):
            message = self.rows[index].message
            if isinstance(message, AssistantMessage):
                return next((call for call in message.tool_calls if call.id == row.message.call_id), None)
        return None

    def facts(self, most: int | None = None) -> FactLedger:
        """The facts of everything said so far (or of `most` more messages); reads only what is new."""
        from mycode.context.facts import FactLedger

        facts = self._facts or FactLedger()
        start = self.after(self._facts_upto)
        for row in self.rows[start : None if most is None else start + most]:
            facts = facts.add(row.seq, row.message, self._answered(row))
            self._facts_upto = row.seq
        self._facts = facts
        return facts

    def originals(self, end: int, tokens: int) -> tuple[list[Row], bool]:
        """The newest messages up to `end` that hold about so many tokens, and whether these are all there are."""
        if self._log is not None and self._loaded_from > 1:
            start = _start(self._log, end, tokens)
            if start < self._loaded_from:
                self._load(self._log, start)
                self._relay()
        stop = self.after(end)
        index, held = stop, 0
        while index > 0 and self.rows[index - 1].seq >= self._loaded_from and held < tokens:
            index -= 1
            held += self.rows[index].tokens
        return self.rows[index:stop], index == 0 and self._loaded_from <= 1

    def read_all(self) -> None:
        """Reads what a restart left unread of a conversation without folds: the first fold stands for all of it."""
        if self._log is None or self._loaded_from <= 1 or self.laid.head is not None:
            return
        self._load(self._log, 1)
        self._facts, self._facts_upto, self._calls = None, 0, {}
        self._relay()

    def newest_undoable(self) -> Entry | None:
        """The newest change of the view that has not been taken back."""
        undone: set[int] = set()
        for entry in reversed(self._overlays):
            if entry.seq in undone:
                continue
            if isinstance(entry.body, Undo):
                undone.add(entry.body.target)
            elif not isinstance(entry.body, Pin):
                return entry
        return None

    def _answered(self, row: Row) -> ToolCall | None:
        """The call that a result answers: one of the newest answer's, and each only once."""
        if isinstance(row.message, AssistantMessage):
            self._calls = {call.id: call for call in row.message.tool_calls}
        return self._calls.pop(row.message.call_id, None) if isinstance(row.message, ToolResult) else None

    def _relay(self) -> None:
        """The overlays changed: the view is laid anew."""
        self.generation += 1
        head = self.laid.head
        needed = head.end + 1 if head is not None else 1
        if self._log is not None and needed < self._loaded_from and self._overlays:
            self._load(self._log, needed)  # an undo shows again what was folded before this program began
        self._view.lay(self.rows, self.first_visible(), self.laid, self._head(self.laid))

    def _load(self, log: Log, start: int) -> None:
        known = [row for row in self.rows if row.seq >= self._loaded_from]
        self.rows[:] = [*_rows(log.read(start, self._loaded_from)), *known]
        self._loaded_from = start

    def _first_visible(self, laid: Laid) -> int:
        return self.after(laid.head.end) if laid.head is not None else 0

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
            text = projection.summary_text(head.record, head.number, self._settings.title)
            out.append(Shown(ContextNote(text, "summary", head.record.id)))
            carried = self.row(carried_by(head.record))
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
            from mycode.context.summarizers.rules import error_line

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
    return isinstance(body, SummaryRecord | MaskEpoch | Drop | Pin | Undo)


def carried_by(record: SummaryRecord) -> int:
    """Seq of the user message that a record carries on word for word (0: none)."""
    return int((record.context.raw or {}).get("carried", 0))


def _start(log: Log, end: int, tokens: int) -> int:
    """The seq from which on the rows up to `end` hold about so many tokens."""
    span = 256
    while span < end and log.tokens(end - span + 1, end + 1) < tokens:
        span *= 2
    return max(1, end - span + 1)


def _rows(entries: Iterable[Entry]) -> Iterator[Row]:
    for entry in entries:
        if (message := entry.message) is not None:
            yield Row(entry.seq, message, entry.tokens, entry.id, entry.at, entry.sha256)


def _seq(row: Row) -> int:
    return row.seq
