"""The conversation as the model sees it: takes in every message, and folds the past before it grows too large."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from mycode.context import budget, cutting, pins, projection, trimming
from mycode.context import policy as policies
from mycode.context.policy import Measure, Policy
from mycode.context.projection import Laid, Row, Shown
from mycode.context.summarizers import Draft, Fold
from mycode.context.summarizers.rules import tell
from mycode.core.entries import Body, Entry, Log, Note
from mycode.core.errors import ContextOverflow, InputError
from mycode.core.events import ContextChanged, Event, SummaryFinished, SummaryStarted, Warned
from mycode.core.messages import AssistantMessage, ContextNote, Message, ToolResult, UserMessage, ViewMessage
from mycode.core.models import Model, ModelInfo, TokenCounter, ToolSpec
from mycode.core.summaries import (
    Category,
    ContextUsage,
    Drop,
    MaskEpoch,
    Pin,
    SummaryRecord,
    Trigger,
    TriggerDistance,
    TriggerReason,
    Undo,
)
from mycode.core.usage import Usage

_OVERLAYS = (SummaryRecord, MaskEpoch, Drop, Pin, Undo, Note)
_CATEGORIES = ("memory", "pins", "summary", "user", "assistant", "tool results", "other")


class ContextManager:
    """Owns the numbering of the log, the overlays, and the one token ledger of a conversation.

    It never writes: it hands out entries, and whoever holds the log writes them before anything else happens.
    `summarizer` gives the models to ask for a summary, in order of preference; none: summaries go by rules.
    """

    def __init__(
        self,
        *,
        policy: Policy,
        counter: TokenCounter,
        info: ModelInfo,
        system: str,
        tools: tuple[ToolSpec, ...] = (),
        summarizer: Callable[[], Sequence[Model]] | None = None,
        memory: Callable[[], str] = lambda: "",
        clock: Callable[[], float],
        new_id: Callable[[], str],
        redact: Callable[[str], str] = lambda text: text,
    ) -> None:
        self._policy = policy
        self._counter = counter
        self._count = lru_cache(maxsize=4096)(counter.count)
        self._info = info
        self._models = summarizer or (lambda: ())
        self._memory = memory
        self._clock = clock
        self._new_id = new_id
        self._redact = redact
        self._system_tokens = counter.count(system) + budget.MESSAGE_OVERHEAD
        self._tools_tokens = budget.tools_tokens(tools, counter.count)
        self._tool_count = len(tools)
        self.calibration = 1.0
        self._seq = 0
        self._log: Log | None = None
        self._rows: list[Row] = []
        self._overlays: list[Entry] = []
        self._laid = Laid()
        self._memory_text = memory()
        self._generation = 0
        self._anchor: budget.Anchor | None = None
        self._sent: tuple[int, int] | None = None
        self._learned_window = 0
        self._fruitless = 0
        self._shown: list[Shown] = []
        self._settled = 0
        self._settled_row = 0
        self._settled_sums: dict[str, tuple[int, int]] = {}
        self._relay()

    # -- the log ----------------------------------------------------------------------------------------------------

    def restore(self, log: Log) -> None:
        """Takes up a conversation from its log, reading no more of it than the view needs."""
        self._log = log
        self._seq = log.last_seq()
        self._overlays = [entry for entry in log.overlays() if isinstance(entry.body, _OVERLAYS)]
        self._laid = projection.lay(self._overlays)
        head = self._laid.head
        start = head.end + 1 if head is not None else self._start_of_view(log)
        self._rows = [row for entry in log.read(start) if (row := _row(entry)) is not None]
        carried = self._carried()
        if carried and all(row.seq != carried for row in self._rows):
            self._rows = [row for entry in log.read(carried, carried + 1) if (row := _row(entry))] + self._rows
        self._memory_text = self._memory()
        self._relay()

    def append(self, message: Message) -> Entry:
        """Takes in a message: numbers it and counts its tokens, once. The caller writes the entry to the log."""
        self._seq += 1
        tokens = budget.message_tokens(message, self._counter.count)
        entry = Entry(self._seq, self._new_id(), self._clock(), message, tokens, _sha256(message))
        self._rows.append(Row(entry.seq, message, tokens, entry.id, entry.at, entry.sha256))
        return entry

    def note(self, body: Body) -> Entry:
        """Numbers a row that is no message; an overlay takes effect at once. The caller writes the entry to the log."""
        self._seq += 1
        entry = Entry(self._seq, self._new_id(), self._clock(), body, 0, _sha256(body))
        if isinstance(body, _OVERLAYS):
            self._overlays.append(entry)
            if not isinstance(body, Note) or body.name in (projection.RESTORED, projection.UNPINNED):
                self._laid = projection.lay(self._overlays)
                self._relay()
        return entry

    # -- the view ---------------------------------------------------------------------------------------------------

    def view(self) -> tuple[ViewMessage, ...]:
        """What the model would see now, whole; the same bytes as before for everything that was there before."""
        return tuple(item.message for item in self._project())

    def fit(self, max_tokens: int | None = None) -> tuple[ViewMessage, ...]:
        """The view, made to fit the window minus the reserve (or `max_tokens` in all): what is really sent."""
        shown = self._project()
        room = self._room(max_tokens)
        total = sum(item.tokens for item in shown)
        self._sent = (self._generation, total + self._fixed) if total <= room else None
        if total > room:
            shown = trimming.trim(shown, room, self._count, self._trimmed_line, self._policy.keep.floor)
        return tuple(item.message for item in shown)

    def observe(self, usage: Usage) -> None:
        """Learns from the real size of the request that was last fitted."""
        if self._sent is None or usage.input_tokens <= 0:
            return
        generation, counted = self._sent
        self.calibration = budget.learn(self.calibration, counted, usage.input_tokens)
        self._anchor = budget.Anchor(generation, counted, usage.input_tokens)

    def usage(self) -> ContextUsage:
        """The one count that everything else reads."""
        sums = self._sums()
        counted = self._fixed + sum(tokens for tokens, _ in sums.values())
        total = budget.calibrated(counted, self.calibration, self._anchor, self._generation)
        scale = total / counted if counted else 1.0
        categories = [
            Category("system", round(self._system_tokens * scale), 1),
            Category("tools", round(self._tools_tokens * scale), self._tool_count),
        ]
        categories += [
            Category(name, round(sums[name][0] * scale), sums[name][1])  # type: ignore[arg-type]  # names are the Literal's
            for name in _CATEGORIES
            if name in sums
        ]
        measure = self._measure(total)
        return ContextUsage(
            model=self._info.name,
            window=self._window,
            reserve=policies.reserve(self._policy, self._info),
            tokens=total,
            categories=tuple(categories),
            triggers=self._distances(measure),
            messages=measure.messages,
            summaries=self._laid.summaries,
            masked=len(self._laid.stubs),
            exact=self._counter.exact,
            window_known=self._info.window_known,
            calibration=self.calibration,
        )

    # -- folding ----------------------------------------------------------------------------------------------------

    def due(self, reason: TriggerReason | None = None) -> Trigger | None:
        """Whether the past should be folded before the next request, and why."""
        return policies.due(self._policy, self._measure(self._tokens()), reason)

    async def summarize(
        self,
        trigger: Trigger,
        *,
        focus: str = "",
        strategy: str | None = None,  # noqa: ARG002 - rules are the only strategy until models are asked
        first: int | None = None,
        last: int | None = None,
        keep: int | None = None,
        preview: bool = False,
        rebase: bool = False,  # noqa: ARG002 - see above
    ) -> AsyncGenerator[Event, None]:
        """Folds the past and says so; what it could not do, it says in a `Warned`.

        With `preview` the record is told but not laid: its entry has seq 0 and is not to be written.
        """
        started = self._clock()
        rows = self._visible()
        if first is not None or last is not None:
            chosen = [row for row in rows if (first or 0) <= row.seq <= (last or row.seq)]
        else:
            tail = int(self._policy.keep.recent_share * self._room(None))
            chosen = rows[
                : cutting.choose_cut(rows, keep or self._policy.keep.recent_messages, self._policy.keep.floor, tail)
            ]
        if not chosen:
            yield Warned("There is nothing to summarize yet: everything that could be folded already is.")
            return
        yield SummaryStarted(trigger, len(chosen))
        head = self._laid.head
        before = self._tokens()
        room = policies.summary_budget(self._policy, self._room(None), sum(row.tokens for row in chosen))
        fold = Fold(
            tuple((row.seq, row.message) for row in chosen),
            head.record if head else None,
            room,
            self._count,
            self._redact,
            focus,
            head.record.depth + 1 if head else 0,
        )
        draft = tell(fold)
        record = self._record(draft, fold, chosen, trigger, before)
        after = self._tokens_with(record)
        if after > before * (1 - self._policy.auto.min_saving):
            self._fruitless += 1
            yield Warned("The summary would free too little, so nothing was changed.")
            return
        record = replace(record, tokens_after=after)
        if preview:
            yield SummaryFinished(Entry(0, record.id, record.at, record), self._clock() - started)
            return
        self._fruitless = 0
        entry = self.note(record)
        yield SummaryFinished(entry, self._clock() - started)

    async def overflow(self, error: ContextOverflow) -> AsyncGenerator[Event, None]:
        """Answers a provider that found the request too long: learns its limit and folds by rules, without any model.

        Afterwards `fit` gives a smaller request. Call it once per request; a second overflow is the turn's end.
        """
        size = self._window
        if error.limit and error.limit < size:
            self._learned_window = error.limit
        elif self._sent is not None:
            # The provider counts more than we do: correct the count so that the same view no longer passes.
            self.calibration = min(2.0, self.calibration * 1.25)
        else:
            self._learned_window = size * 4 // 5
        self._anchor = None
        tokens = self._tokens()
        trigger = Trigger("overflow", tokens / self._window, tokens, emergency=True)
        yield Warned(
            f"The request was longer than the model takes ({self._window:,} tokens); older messages are folded."
        )
        async for event in self.summarize(trigger, strategy="rules"):
            yield event

    def undo(self) -> ContextChanged | None:
        """Takes back the newest summary, masking or hand-made change; None if there is none."""
        undone = _undone(self._overlays)
        for entry in reversed(self._overlays):
            if entry.seq in undone or not _undoable(entry.body):
                continue
            text = {SummaryRecord: "summary", MaskEpoch: "masking", Drop: "leaving out"}.get(
                type(entry.body), "restoring"
            )
            return ContextChanged(
                self.note(Undo(entry.seq)), f"Undone: the last {text}; the view is as it was before it."
            )
        return None

    def drop(self, seqs: Sequence[int]) -> ContextChanged:
        """Leaves messages out of the view; a mark with their handle stays."""
        return self._by_hand(Drop(tuple(seqs)), f"Left out: {_handles(seqs)}.")

    def shrink(self, seqs: Sequence[int]) -> ContextChanged:
        """Shows messages as one line each."""
        return self._by_hand(Drop(tuple(seqs), shrink=True), f"Shortened: {_handles(seqs)}.")

    def restore_items(self, seqs: Sequence[int]) -> ContextChanged:
        """Shows messages whole again that were left out, shortened or masked."""
        return self._by_hand(Note(projection.RESTORED, {"seqs": list(seqs)}), f"Restored: {_handles(seqs)}.")

    def pin(self, what: str | int) -> ContextChanged:
        """Keeps a text, or the text of message `what`, word for word in every view from now on."""
        if isinstance(what, int):
            row = next((row for row in self._rows if row.seq == what), None)
            if row is None:
                message = f"There is no message m{what} to pin."
                raise InputError(message)
            body = Pin(row.message.text, "message", what)
        else:
            body = Pin(what)
        return self._by_hand(body, f"Pinned: {' '.join(body.text.split())[:80]}")

    def pins(self) -> tuple[str, ...]:
        """What is pinned, in the order in which `unpin` numbers it from 1."""
        return (*pins.settled_pins(self._laid), *pins.fresh_pins(self._laid))

    def unpin(self, number: int) -> ContextChanged:
        """Lets go of the pin with that number."""
        texts = self.pins()
        if not 1 <= number <= len(texts):
            message = f"There is no pin {number}; there are {len(texts)}."
            raise InputError(message)
        text = texts[number - 1]
        seq = next((seq for seq, pin in self._laid.pins if pin.text == text), None)
        body = Undo(seq) if seq is not None else Note(projection.UNPINNED, {"text": text})
        return self._by_hand(body, f"Unpinned: {' '.join(text.split())[:80]}")

    def switch_model(self, info: ModelInfo) -> None:
        """From now on the window is that of another model; ask `due("model_switch")` next."""
        self._info = info
        self.calibration = 1.0
        self._anchor = self._sent = None
        self._learned_window = 0

    def _by_hand(self, body: Body, text: str) -> ContextChanged:
        return ContextChanged(self.note(body), text)

    # -- helpers ----------------------------------------------------------------------------------------------------

    @property
    def _window(self) -> int:
        size = policies.window(self._policy, self._info)
        return min(size, self._learned_window) if self._learned_window else size

    @property
    def _fixed(self) -> int:
        return self._system_tokens + self._tools_tokens

    def _room(self, max_tokens: int | None) -> int:
        """Counted tokens that messages may hold in one request."""
        limit = max_tokens if max_tokens is not None else self._window - policies.reserve(self._policy, self._info)
        margin = self._policy.window.safety_margin * (1 if self._counter.exact else 2)
        return max(64, int(limit * (1 - margin) / self.calibration) - self._fixed)

    def _tokens(self) -> int:
        counted = self._fixed + sum(tokens for tokens, _ in self._sums().values())
        return budget.calibrated(counted, self.calibration, self._anchor, self._generation)

    def _measure(self, tokens: int) -> Measure:
        head = self._laid.head
        visible = self._visible()
        since = sum(1 for row in reversed(visible) if row.seq > head.seq) if head else len(visible)
        return Measure(
            tokens=tokens,
            window=self._window,
            budget=self._window - policies.reserve(self._policy, self._info),
            messages=len(visible),
            folds=1 if head else 0,
            since_fold=since,
            after_last_fold=head.record.tokens_after / self._window if head else 0.0,
            depth=head.record.depth + 1 if head else 0,
        )

    def _distances(self, measure: Measure) -> tuple[TriggerDistance, ...]:
        auto = self._policy.auto
        armed = auto.enabled and policies.armed(self._policy, measure)
        found = [
            TriggerDistance("ratio", round(measure.ratio, 4), auto.trigger_ratio, "ratio", armed),
            TriggerDistance("emergency", measure.tokens, measure.budget, "tokens"),
        ]
        if auto.message_threshold:
            found.append(TriggerDistance("messages", measure.messages, auto.message_threshold, "messages", armed))
        if auto.max_tokens:
            found.append(TriggerDistance("tokens", measure.tokens, auto.max_tokens, "tokens", armed))
        return tuple(found)

    def _visible(self) -> list[Row]:
        head = self._laid.head
        return [row for row in self._rows if row.seq > head.end] if head else self._rows

    def _carried(self) -> int:
        """Seq of the user message that the newest fold carries on word for word (0: none)."""
        head = self._laid.head
        return int((head.record.context.raw or {}).get("carried", 0)) if head else 0

    def _start_of_view(self, log: Log) -> int:
        wanted = 2 * self._window
        span = 256
        last = log.last_seq()
        while span < last and log.tokens(max(1, last - span + 1)) < wanted:
            span *= 2
        return max(1, last - span + 1)

    def _head(self, laid: Laid) -> list[Shown]:
        out: list[Shown] = []
        if self._memory_text.strip():
            out.append(Shown(ContextNote(self._memory_text, "memory")))
        texts = pins.settled_pins(laid)
        if texts:
            out.append(Shown(ContextNote(pins.pins_text(texts), "pins")))
        head = laid.head
        if head is not None:
            out.append(Shown(ContextNote(projection.summary_text(head.record, head.number), "summary", head.record.id)))
            carried = int((head.record.context.raw or {}).get("carried", 0))
            out.extend(Shown(row.message, row.seq, row.tokens) for row in self._rows if row.seq == carried)
        return out

    def _relay(self) -> None:
        """The overlays changed: the view is laid anew."""
        self._generation += 1
        self._shown = [self._counted(item) for item in self._head(self._laid)]
        self._settled = len(self._shown)
        head = self._laid.head
        self._settled_row = next(
            (i for i, row in enumerate(self._rows) if head is None or row.seq > head.end), len(self._rows)
        )
        self._settled_sums = _add({}, self._shown)

    def _project(self) -> list[Shown]:
        """The whole view, footer included; everything before the last answer is settled and not looked at again."""
        rows = self._rows
        del self._shown[self._settled :]
        open_group = len(rows)
        while open_group > self._settled_row and not isinstance(rows[open_group - 1].message, AssistantMessage):
            open_group -= 1
        open_group = max(open_group - 1, self._settled_row)
        projection.extend(self._shown, rows, self._settled_row, open_group, self._laid)
        for i in range(self._settled, len(self._shown)):
            self._shown[i] = self._counted(self._shown[i])
        self._settled_sums = _add(self._settled_sums, self._shown[self._settled :])
        self._settled, self._settled_row = len(self._shown), open_group
        projection.extend(self._shown, rows, open_group, len(rows), self._laid)
        fresh = pins.fresh_pins(self._laid)
        if fresh:
            self._shown.append(Shown(ContextNote(pins.pins_text(fresh), "footer")))
        for i in range(self._settled, len(self._shown)):
            self._shown[i] = self._counted(self._shown[i])
        return self._shown

    def _sums(self) -> dict[str, tuple[int, int]]:
        self._project()
        return _add(dict(self._settled_sums), self._shown[self._settled :])

    def _counted(self, item: Shown) -> Shown:
        return item if item.tokens >= 0 else replace(item, tokens=budget.message_tokens(item.message, self._count))

    def _trimmed_line(self, item: Shown) -> str:
        age = sum(1 for row in reversed(self._rows) if row.seq > item.seq)
        return f"[truncated - {age} steps ago; history_expand m{item.seq}]"

    def _record(self, draft: Draft, fold: Fold, rows: Sequence[Row], trigger: Trigger, before: int) -> SummaryRecord:
        newest = cutting.newest_user(self._rows)
        carried = self._rows[newest].seq if newest is not None else 0
        texts = [
            line for row in rows if isinstance(row.message, UserMessage) for line in pins.constraints(row.message.text)
        ]
        raw = {
            "carried": carried if carried <= rows[-1].seq else 0,
            "constraints": list(dict.fromkeys([*pins.kept_constraints(fold.previous), *map(self._redact, texts)])),
        }
        return SummaryRecord(
            id=self._new_id(),
            at=self._clock(),
            covers=(rows[0].seq, rows[-1].seq) if fold.previous else (1, rows[-1].seq),
            depth=fold.depth,
            strategy=draft.strategy,
            trigger=trigger.reason,
            narrative=draft.narrative,
            parent_id=fold.previous.id if fold.previous else None,
            focus=fold.focus,
            key_points=draft.key_points,
            context=replace(draft.context, raw=raw),
            tokens_before=before,
            message_ids=tuple(row.id for row in rows),
            sha256=tuple(row.sha256 for row in rows),
            version=fold.previous.version + 1 if fold.previous else 1,
            digest=draft.digest,
        )

    def _tokens_with(self, record: SummaryRecord) -> int:
        """Tokens of the next request if this record were laid."""
        laid = projection.lay([*self._overlays, Entry(self._seq + 1, record.id, record.at, record)])
        head = laid.head
        rows = [row for row in self._rows if head is None or row.seq > head.end]
        shown = projection.project(rows, laid, self._head(laid))
        counted = self._fixed + sum(self._counted(item).tokens for item in shown)
        return round(counted * self.calibration)


def _row(entry: Entry) -> Row | None:
    message = entry.message
    return Row(entry.seq, message, entry.tokens, entry.id, entry.at, entry.sha256) if message is not None else None


def _handles(seqs: Sequence[int]) -> str:
    return ", ".join(f"m{seq}" for seq in seqs)


def _sha256(body: Body) -> str:
    return hashlib.sha256(msgspec.json.encode(body)).hexdigest()


def _undoable(body: Body) -> bool:
    return isinstance(body, SummaryRecord | MaskEpoch | Drop) or (
        isinstance(body, Note) and body.name == projection.RESTORED
    )


def _undone(entries: Iterable[Entry]) -> set[int]:
    undone: set[int] = set()
    for entry in reversed(list(entries)):
        if isinstance(entry.body, Undo) and entry.seq not in undone:
            undone.add(entry.body.target)
    return undone


def _add(sums: dict[str, tuple[int, int]], shown: Iterable[Shown]) -> dict[str, tuple[int, int]]:
    for item in shown:
        name = _category(item.message)
        tokens, items = sums.get(name, (0, 0))
        sums[name] = (tokens + item.tokens, items + 1)
    return sums


def _category(message: ViewMessage) -> str:
    match message:
        case UserMessage():
            return "user"
        case AssistantMessage():
            return "assistant"
        case ToolResult():
            return "tool results"
        case ContextNote(source="memory" | "pins" | "summary" as source):
            return source
        case _:
            return "other"
