"""The conversation as the model sees it: takes in every message, and folds the past before it grows too large."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from functools import lru_cache

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mycode.context import budget, cutting, digests, folding, masking, pins, projection, records, trimming
from mycode.context import policy as policies
from mycode.context.facts import FactLedger
from mycode.context.forecast import Forecast, forecast
from mycode.context.live_view import LiveView, Sums, category
from mycode.context.policy import Measure, Policy
from mycode.context.precompute import Precompute
from mycode.context.projection import Laid, Row, Shown
from mycode.context.summarizers import Fold
from mycode.core.entries import Body, Entry, Log, Note
from mycode.core.errors import ContextOverflow, InputError
from mycode.core.events import ContextChanged, ContextMasked, Event, SummaryFinished, SummaryStarted, Warned
from mycode.core.messages import AssistantMessage, ContextNote, Message, ToolCall, ToolResult, ViewMessage
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

_CATEGORIES = ("memory", "pins", "summary", "user", "assistant", "tool results", "other")
_REBASE_TOKENS = 400_000
"""A rebase reads at most this many tokens of originals; what is older comes from the record before."""


class Item(Struct, frozen=True):
    """A message of the view for `/context`: its number is its seq; `age` is how many numbers it lies back."""

    seq: int
    role: str
    tokens: int
    age: int
    title: str
    state: str = ""


class Savings(Struct, frozen=True):
    """What masking and summarizing would free now, in tokens, and how many results and messages they would take."""

    masking: int
    masked_results: int
    summarizing: int
    folded_messages: int


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
        self._calibrations: dict[tuple[str, str], float] = {}
        self._seq = 0
        self._log: Log | None = None
        self._rows: list[Row] = []
        self._loaded_from = 1
        self._overlays: list[Entry] = []
        self._laid = Laid()
        self._memory_texts = {0: memory()}
        self._facts = FactLedger()
        self._facts_upto = 0
        self._calls: dict[str, ToolCall] = {}
        self._view = LiveView(self._count)
        self._generation = 0
        self._anchor: budget.Anchor | None = None
        self._sent: tuple[int, int] | None = None
        self._learned_window = 0
        self._fruitless = 0
        self._fruitless_tokens = 0
        self._llm_failures = 0
        self._folding = False
        self._precompute = Precompute()
        self._relay()

    # -- the log ----------------------------------------------------------------------------------------------------

    def restore(self, log: Log) -> None:
        """Takes up a conversation from its log, reading no more of it than the view needs."""
        self._log = log
        self._seq = log.last_seq()
        self._overlays = [entry for entry in log.overlays() if _is_overlay(entry.body)]
        self._laid = projection.lay(self._overlays)
        head = self._laid.head
        self._loaded_from = head.end + 1 if head is not None else self._start_of_view(log)
        self._rows = list(_rows(log.read(self._loaded_from)))
        carried = _carried(head.record) if head is not None else 0
        if carried:
            self._rows = [*_rows(log.read(carried, carried + 1)), *self._rows]
        self._facts = records.kept_facts(head.record if head is not None else None)
        self._facts_upto = head.end if head is not None else self._loaded_from - 1
        self._memory_texts = {self._laid.epoch: self._memory()}
        self._relay()

    def append(self, message: Message) -> Entry:
        """Takes in a message: numbers it and counts its tokens, once. The caller writes the entry to the log."""
        self._seq += 1
        tokens = budget.message_tokens(message, self._counter.count)
        entry = Entry(self._seq, self._new_id(), self._clock(), message, tokens, _sha256(message))
        self._rows.append(Row(entry.seq, message, tokens, entry.id, entry.at, entry.sha256))
        if len(self._rows) < 2 or self._facts_upto >= self._rows[-2].seq:
            self._ledger()
        return entry

    def note(self, body: Body) -> Entry:
        """Numbers a row that is no message; an overlay takes effect at once. The caller writes the entry to the log."""
        self._seq += 1
        entry = Entry(self._seq, self._new_id(), self._clock(), body, 0, _sha256(body))
        if _is_overlay(body):
            self._overlays.append(entry)
            self._laid = projection.lay(self._overlays)
            if isinstance(body, SummaryRecord):
                self._memory_texts[entry.seq] = self._memory()
            self._relay()
        return entry

    # -- the view ---------------------------------------------------------------------------------------------------

    def view(self) -> tuple[ViewMessage, ...]:
        """What the model would see now, whole; the same bytes as before for everything that was there before.

        Only the footer (a note with that source, always last) may change from one view to the next.
        """
        return tuple(item.message for item in self._shown())

    def fit(self, max_tokens: int | None = None) -> tuple[ViewMessage, ...]:
        """The view, made to fit the window minus the reserve (or `max_tokens` in all): what is really sent."""
        shown = self._shown()
        room = self._room(max_tokens)
        total = sum(item.tokens for item in shown)
        self._sent = (self._generation, total + self._fixed)
        if total > room:
            shown = trimming.trim(shown, room, self._count, self._trimmed_line, self._policy.keep.floor)
            self._sent = (-1, sum(item.tokens for item in shown) + self._fixed)
        return tuple(item.message for item in shown)

    def observe(self, usage: Usage) -> None:
        """Learns from the real size of the request that was last fitted; call it before the answer is appended."""
        if self._sent is None or usage.input_tokens <= 0:
            return
        generation, counted = self._sent
        self.calibration = budget.learn(self.calibration, counted, usage.input_tokens)
        self._anchor = budget.Anchor(generation, counted, usage.input_tokens)

    @property
    def calibration(self) -> float:
        """Real tokens per counted token, learned for the present provider and model; may be set from before."""
        return self._calibrations.get((self._info.provider, self._info.name), 1.0)

    @calibration.setter
    def calibration(self, value: float) -> None:
        self._calibrations[self._info.provider, self._info.name] = min(2.0, max(0.5, value))

    def usage(self) -> ContextUsage:
        """The one count that everything else reads."""
        sums = self._sums()
        counted = self._counted(sums)
        total = self._calibrated(counted)
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
        protected = int(self._policy.masking.protect_share * self._room(None))
        tail = min(self._policy.keep.recent_messages, measure.messages)
        said = sum(sums.get(name, (0, 0))[0] for name in ("user", "assistant", "tool results"))
        return ContextUsage(
            model=self._info.name,
            window=self._window,
            reserve=self._reserve,
            tokens=total,
            categories=tuple(categories),
            triggers=self._distances(measure),
            messages=measure.messages,
            summaries=self._laid.summaries,
            masked=len(self._laid.stubs),
            exact=self._counter.exact,
            window_known=self._info.window_known,
            maskable=max(0, sums.get("tool results", (0, 0))[0] - protected),
            foldable=max(0, said - sum(row.tokens for row in self._rows[len(self._rows) - tail :])),
            calibration=self.calibration,
        )

    def items(self) -> tuple[Item, ...]:
        """The messages of the view, numbered by seq; dropped, shortened and masked ones say so."""
        found = []
        newest = self._rows[-1].seq if self._rows else 0
        for item in self._shown():
            if not item.seq:
                continue
            state = (
                "dropped"
                if item.seq in self._laid.dropped
                else "shortened"
                if item.seq in self._laid.shrunk
                else "masked"
                if item.seq in self._laid.stubs
                else ""
            )
            title = " ".join(item.message.text.split())[:100] or ", ".join(
                call.name for call in getattr(item.message, "tool_calls", ())
            )
            found.append(Item(item.seq, category(item.message), item.tokens, newest - item.seq, title, state))
        return tuple(found)

    # -- when ---------------------------------------------------------------------------------------------------------

    def due(self, reason: TriggerReason | None = None) -> Trigger | None:
        """Whether the past should be folded before the next request, and why.

        Quiet after passes that brought nothing, until a tenth more has come in: what cannot be folded is cut by `fit`.
        """
        tokens = self._tokens()
        if self._fruitless >= self._policy.auto.passes_without_progress and tokens < 1.1 * self._fruitless_tokens:
            return None
        return policies.due(self._policy, self._measure(tokens), reason)

    def preview_savings(self) -> Savings:
        """What masking and summarizing would free."""
        plan = self._mask_plan(wanted=self._window)
        rows = self._chosen(None)
        folded = sum(row.tokens for row in rows)
        told = policies.summary_budget(self._policy, self._room(None), folded, self._summary_tokens())
        return Savings(plan.freed, len(plan.stubs), max(0, folded + self._summary_tokens() - told), len(rows))

    def forecast(self) -> Forecast:
        """How long the room will last, and what the next requests cost."""
        tokens = self._tokens()
        auto = self._policy.auto
        trigger = min(self._budget, int(auto.trigger_ratio * self._window), auto.max_tokens or self._window)
        return forecast(
            self._rows[self._first_visible() :],
            tokens=tokens,
            trigger_tokens=trigger,
            after_fold=max(self._fixed, tokens - self.preview_savings().summarizing),
            price=self._info.price,
            cached=self._anchor is not None and self._anchor.epoch == self._generation,
        )

    # -- folding ----------------------------------------------------------------------------------------------------

    async def summarize(
        self,
        trigger: Trigger,
        *,
        focus: str = "",
        strategy: folding.Choice | None = None,
        first: int | None = None,
        last: int | None = None,
        keep: int | None = None,
        preview: bool = False,
        rebase: bool = False,
    ) -> AsyncGenerator[Event, None]:
        """Folds the past and says so; what it could not do, it says in a `Warned`. Never two at a time.

        With `preview` the record is told but not laid: its entry has seq 0 and is not to be written.
        """
        if self._folding:
            yield Warned("A summary is already being written.")
            return
        self._folding = True
        try:
            wish = _Wish(trigger, focus, strategy, first, last, keep, preview, rebase)
            async with aclosing(self._summarize(wish)) as events:
                async for event in events:
                    yield event
        finally:
            self._folding = False

    async def overflow(self, error: ContextOverflow) -> AsyncGenerator[Event, None]:
        """Answers a provider that found the request too long: learns its limit and folds by rules, without any model.

        Afterwards `fit` gives a smaller request. Call it once per request; a second overflow is the turn's end.
        """
        size = self._window
        if error.limit and error.limit < size:
            self._learned_window = error.limit
        elif error.requested and self._sent is not None and self._sent[1]:
            self.calibration = max(self.calibration * 1.1, error.requested / self._sent[1])
        else:
            # Nothing is named: what was sent was too much, so the window is taken to be smaller than that.
            sent = round((self._sent[1] if self._sent else size) * self.calibration)
            self._learned_window = max(1_000, min(size, sent) * 4 // 5)
        self._anchor = None
        tokens = self._tokens()
        trigger = Trigger("overflow", tokens / self._window, tokens, emergency=True)
        yield Warned(f"The request was longer than the model takes ({self._window:,} tokens); older messages fold.")
        async with aclosing(self.summarize(trigger, strategy="rules")) as events:
            async for event in events:
                yield event

    def precompute(self) -> bool:
        """Begins to prepare the next summary in the background if it is worth it; whether it began.

        Needs a running event loop, a model to ask, and a window filled to `precompute.ratio`. Cheap to call.
        """
        settings = self._policy.precompute
        tokens = self._tokens()
        if not settings.enabled or not self._policy.auto.enabled or tokens < settings.ratio * self._window:
            return False
        models = self._models()
        choice = self._choice(None, emergency=False)
        if choice == "rules" or not models or self._precompute.running:
            return False
        rows = self._chosen(None)
        if not rows:
            return False
        fold = self._fold(rows, "", rebase=self._at_depth_limit())
        return self._precompute.start(
            rows, self._base(), lambda: folding.tell(fold, choice, models, self._policy, background=True)
        )

    async def settle_precompute(self) -> None:
        """Until the summary in preparation, if any, is ready."""
        await self._precompute.wait()

    def cancel_precompute(self) -> None:
        """Stops preparing."""
        self._precompute.cancel()

    # -- by hand ----------------------------------------------------------------------------------------------------

    def undo(self) -> ContextChanged | None:
        """Takes back the newest summary, masking or hand-made change; None if there is none."""
        undone = _undone(self._overlays)
        for entry in reversed(self._overlays):
            if entry.seq in undone or not _undoable(entry.body):
                continue
            names = {SummaryRecord: "summary", MaskEpoch: "masking of old results", Drop: "leaving out of messages"}
            text = names.get(type(entry.body), "restoring of messages")
            self._precompute.cancel()
            return self._by_hand(Undo(entry.seq), f"Undone: the last {text}; the view is as it was before it.")
        return None

    def drop(self, seqs: Sequence[int]) -> ContextChanged:
        """Leaves messages out of the view; a mark with their handle stays. The newest user message cannot be."""
        self._check(seqs)
        return self._by_hand(Drop(tuple(seqs)), f"Left out: {_handles(seqs)}.")

    def shrink(self, seqs: Sequence[int]) -> ContextChanged:
        """Shows messages as one line each."""
        self._check(seqs)
        return self._by_hand(Drop(tuple(seqs), shrink=True), f"Shortened: {_handles(seqs)}.")

    def restore_items(self, seqs: Sequence[int]) -> ContextChanged:
        """Shows messages whole again that were left out, shortened or masked."""
        return self._by_hand(Note(projection.RESTORED, {"seqs": list(seqs)}), f"Restored: {_handles(seqs)}.")

    def pin(self, what: str | int) -> ContextChanged:
        """Keeps a text, or the text of message `what`, word for word in every view from now on."""
        if isinstance(what, str):
            body = Pin(what)
        else:
            row = self._row(what)
            if row is None:
                message = f"There is no message m{what} to pin."
                raise InputError(message)
            body = Pin(row.message.text, "message", what)
        if not body.text.strip():
            message = "There is no text to pin."
            raise InputError(message)
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
        self._anchor = self._sent = None
        self._learned_window = 0
        self._fruitless = 0

    # -- one pass ---------------------------------------------------------------------------------------------------

    async def _summarize(self, wish: _Wish) -> AsyncGenerator[Event, None]:
        by_hand = wish.trigger.reason == "manual"
        before = self._tokens()
        if not by_hand and not wish.rebase and (entry := self._mask_if_enough()) is not None:
            assert isinstance(entry.body, MaskEpoch)
            yield ContextMasked(entry, entry.body.tokens_before, entry.body.tokens_after)
            return
        folded = False
        for attempt in range(2):
            if attempt and not (folded and not by_hand and self._still_over()):
                break
            async with aclosing(self._pass(wish, attempt)) as events:
                async for event in events:
                    folded = folded or isinstance(event, SummaryFinished)
                    yield event
            if not folded:
                break
        if by_hand or wish.preview:
            self._fruitless = 0 if folded else self._fruitless
            return
        if self._still_over() and (entry := self._mask_all()) is not None:
            assert isinstance(entry.body, MaskEpoch)
            yield ContextMasked(entry, entry.body.tokens_before, entry.body.tokens_after)
        after = self._tokens()
        if before - after >= self._policy.auto.min_saving * before:
            self._fruitless = 0
            return
        self._fruitless += 1
        self._fruitless_tokens = after
        if self._fruitless >= self._policy.auto.passes_without_progress:
            yield Warned(self._explanation())

    async def _pass(self, wish: _Wish, attempt: int) -> AsyncGenerator[Event, None]:
        """Tells one fold, lays it if it is worth it."""
        started = self._clock()
        by_hand = wish.trigger.reason == "manual"
        strategy = wish.strategy
        rebase = wish.rebase
        if self._at_depth_limit():
            limit = self._policy.auto.on_depth_limit
            if limit == "halt" and not wish.trigger.emergency:
                yield Warned("Summaries of summaries have reached auto.max_depth, and auto.on_depth_limit says halt.")
                return
            rebase = rebase or limit == "rebase"
            strategy = "rules" if limit == "rule_only" else strategy
        choice = self._choice(strategy, emergency=wish.trigger.emergency and not by_hand)
        if attempt >= self._policy.llm.max_calls_per_trigger:
            choice = "rules"
        plain = not wish.focus and wish.first is None and wish.last is None and wish.keep is None and not attempt
        prepared = self._precompute.take(self._rows[self._first_visible() :], self._base()) if plain else None
        if prepared is not None and choice != "rules":
            rows = self._rows[self._first_visible() :][: prepared.rows]
        else:
            prepared = None
            rows = self._range(wish) if wish.by_range else self._chosen(wish.keep, shorter=bool(attempt))
        if not rows:
            yield Warned("There is nothing to summarize yet: what could be folded is folded already.")
            return
        inner = wish.by_range and rows[0].seq != self._first_seq()
        before = self._counted(self._sums())
        if sum(row.tokens for row in rows) < self._policy.auto.min_saving * before and not rebase:
            yield Warned("A summary would free too little now, so nothing was changed.")
            return
        yield SummaryStarted(wish.trigger, len(rows))
        fold = self._fold(rows, wish.focus, rebase=rebase, inner=inner)
        told = prepared.told if prepared is not None else None
        if told is None:
            told = await folding.tell(fold, choice, self._models(), self._policy, must=wish.trigger.emergency)
            if choice != "rules":
                self._llm_failures = self._llm_failures + 1 if told.failed else 0
        for warning in told.warnings:
            yield Warned(warning)
        if told.draft is None:
            return
        record = self._record(told, fold, rows, wish.trigger, before, rebase=rebase, inner=inner)
        after = self._counted_with(record)
        if after > before * (1 - self._policy.auto.min_saving) and choice != "rules":
            told = await folding.tell(fold, "rules", (), self._policy)
            record = self._record(told, fold, rows, wish.trigger, before, rebase=rebase, inner=inner)
            after = self._counted_with(record)
        if after > before * (1 - self._policy.auto.min_saving) and not (wish.rebase and after < before):
            yield Warned("The summary would free too little, so nothing was changed.")
            return
        record = replace(
            record,
            tokens_before=round(before * self.calibration),
            tokens_after=round(after * self.calibration),
        )
        seconds = self._clock() - started
        if wish.preview:
            yield SummaryFinished(Entry(0, record.id, record.at, record), seconds)
            return
        entry = self.note(record)
        yield SummaryFinished(entry, seconds)

    def _fold(self, rows: Sequence[Row], focus: str, *, rebase: bool, inner: bool = False) -> Fold:
        head = self._laid.head
        previous = head.record if head is not None and not inner else None
        told = list(rows)
        if rebase and head is not None:
            older, complete = self._originals(head.end)
            told = [*older, *told]
            previous = None if complete else head.record
        size = sum(row.tokens for row in told)
        kept = self._rows[bisect_right(self._rows, rows[-1].seq, key=_seq) :]
        return Fold(
            messages=tuple((row.seq, row.message) for row in told),
            previous=previous,
            ledger=self._ledger(),
            budget_tokens=policies.summary_budget(self._policy, self._room(None), size, self._summary_tokens()),
            count=self._count,
            redact=self._redact,
            focus=focus,
            depth=0 if rebase or previous is None else previous.depth + 1,
            recent=tuple(row.message for row in kept),
        )

    def _record(
        self,
        told: folding.Told,
        fold: Fold,
        rows: Sequence[Row],
        trigger: Trigger,
        before: int,
        *,
        rebase: bool,
        inner: bool,
    ) -> SummaryRecord:
        assert told.draft is not None
        head = self._laid.head
        parent = head.record if head is not None and not inner else None
        newest = cutting.newest_user(self._rows)
        carried = self._rows[newest].seq if newest is not None else 0
        start = 1 if rebase or (parent is None and not inner) else rows[0].seq
        laid_down = [*pins.kept_constraints(parent)]
        if self._policy.summary.pin_constraints:
            laid_down += [self._redact(said.text) for said in fold.ledger.constraints if said.seq <= rows[-1].seq]
        record = records.build(
            told.draft,
            fold,
            rows,
            trigger,
            record_id=self._new_id(),
            at=self._clock(),
            covers=(start, rows[-1].seq),
            depth=fold.depth,
            parent=parent,
            carried=carried if rows[0].seq <= carried <= rows[-1].seq or (not inner and carried <= rows[-1].seq) else 0,
            constraints=pins.within(laid_down, max(400, self._room(None) * 3 // 100), self._count),
            tokens_before=before,
        )
        return replace(record, verification=told.verification)

    def _range(self, wish: _Wish) -> list[Row]:
        """The rows between two seqs, moved to legal boundaries."""
        start = self._first_visible()
        rows = self._rows
        first = max(start, bisect_right(rows, (wish.first or 0) - 1, key=_seq))
        stop = bisect_right(rows, wish.last, key=_seq) if wish.last is not None else len(rows)
        while start < first < len(rows) and not cutting.legal(rows, first):
            first += 1
        while stop > first and stop < len(rows) and not cutting.legal(rows, stop):
            stop -= 1
        newest = cutting.newest_user(rows)
        if newest is not None and first > start and first <= newest < stop:
            stop = newest  # a fold in the middle does not carry the newest user message on
        if stop == len(rows):
            stop = cutting.choose_cut(rows[:stop], self._policy.keep.floor, self._policy.keep.floor, 1 << 60)
        return rows[first:stop]

    def _chosen(self, keep: int | None, *, shorter: bool = False) -> list[Row]:
        """The rows that a fold takes: all but the newest few that stay word for word."""
        rows = self._rows[self._first_visible() :]
        settings = self._policy.keep
        if keep is not None:
            return rows[: cutting.choose_cut(rows, keep, settings.floor, 1 << 60)]
        room = self._room(None)
        target = int(policies.fold_target(self._policy, self._info) / self.calibration) - self._fixed
        told = policies.summary_budget(self._policy, room, sum(row.tokens for row in rows), self._summary_tokens())
        tail = max(0, min(int(settings.recent_share * room), target - told))
        wanted = settings.floor if shorter else settings.recent_messages
        return rows[: cutting.choose_cut(rows, wanted, settings.floor, tail)]

    def _choice(self, strategy: folding.Choice | None, *, emergency: bool) -> folding.Choice:
        if strategy is not None:
            return strategy
        broken = self._llm_failures >= self._policy.llm.breaker_failures
        return "rules" if emergency or broken else self._policy.summary.strategy

    def _mask_if_enough(self) -> Entry | None:
        """An epoch of masking, if that alone brings the view well below the trigger and pays for itself."""
        settings = self._policy.masking
        if not settings.enabled:
            return None
        counted = self._counted(self._sums())
        target = int(settings.target_ratio * self._window / self.calibration)
        wanted = max(counted - target, int(settings.min_saving * counted))
        plan = self._mask_plan(wanted)
        return self._lay_mask(plan, counted) if plan.freed >= wanted else None

    def _mask_all(self) -> Entry | None:
        """Everything that may be masked, when folding was not enough."""
        if not self._policy.masking.enabled:
            return None
        plan = self._mask_plan(self._window, protected=0)
        return self._lay_mask(plan, self._counted(self._sums())) if plan.stubs else None

    def _mask_plan(self, wanted: int, protected: int | None = None) -> masking.Plan:
        settings = self._policy.masking
        if protected is None:
            protected = int(settings.protect_share * self._room(None))
        spared = {error.seq for error in self._ledger().open_errors}
        spared |= {pin.message_seq for _, pin in self._laid.pins if pin.message_seq is not None}
        return masking.plan(
            self._rows[self._first_visible() :],
            self._laid,
            settings,
            self._policy.tool_results,
            wanted=wanted,
            protected_tokens=protected,
            spared=frozenset(spared),
            count=self._count,
            redact=self._redact,
        )

    def _lay_mask(self, plan: masking.Plan, counted: int) -> Entry:
        scale = self.calibration
        return self.note(MaskEpoch(plan.stubs, round(counted * scale), round((counted - plan.freed) * scale)))

    def _still_over(self) -> bool:
        tokens = self._tokens()
        return tokens > self._budget or tokens >= self._policy.auto.trigger_ratio * self._window

    def _explanation(self) -> str:
        parts = {category.name: category.tokens for category in self.usage().categories}
        name = max(parts, key=lambda part: parts[part])
        return (
            f"Summarizing no longer helps: of {self._window:,} tokens the {name} alone takes {parts[name]:,}. "
            "No more is tried until more has been said; requests are cut to fit. "
            "Use /context to leave messages out, or a model with a larger window."
        )

    # -- measuring --------------------------------------------------------------------------------------------------

    @property
    def _window(self) -> int:
        size = policies.window(self._policy, self._info)
        return min(size, self._learned_window) if self._learned_window else size

    @property
    def _reserve(self) -> int:
        return min(policies.reserve(self._policy, self._info), self._window // 2)

    @property
    def _budget(self) -> int:
        return self._window - self._reserve

    @property
    def _fixed(self) -> int:
        return self._system_tokens + self._tools_tokens

    def _room(self, max_tokens: int | None) -> int:
        """Counted tokens that messages may hold in one request."""
        limit = max_tokens if max_tokens is not None else self._budget
        margin = self._policy.window.safety_margin * (1 if self._counter.exact else 2)
        return max(64, int(limit * (1 - margin) / self.calibration) - self._fixed)

    def _counted(self, sums: Sums) -> int:
        return self._fixed + sum(tokens for tokens, _ in sums.values())

    def _calibrated(self, counted: int) -> int:
        return budget.calibrated(counted, self.calibration, self._anchor, self._generation)

    def _tokens(self) -> int:
        return self._calibrated(self._counted(self._sums()))

    def _measure(self, tokens: int) -> Measure:
        head = self._laid.head
        visible = len(self._rows) - self._first_visible()
        since = len(self._rows) - bisect_right(self._rows, head.seq, key=_seq) if head is not None else visible
        return Measure(
            tokens=tokens,
            window=self._window,
            budget=self._budget,
            messages=visible,
            folds=1 if head is not None else 0,
            since_fold=since,
            after_last_fold=head.record.tokens_after / self._window if head is not None else 0.0,
            depth=head.record.depth + 1 if head is not None else 0,
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

    def _summary_tokens(self) -> int:
        return self._sums().get("summary", (0, 0))[0]

    def _at_depth_limit(self) -> bool:
        head = self._laid.head
        return head is not None and head.record.depth + 1 >= self._policy.auto.max_depth

    def _counted_with(self, record: SummaryRecord) -> int:
        """Counted tokens of the next request if this record were laid."""
        laid = projection.lay([*self._overlays, Entry(self._seq + 1, record.id, record.at, record)])
        start = self._first_visible(laid)
        shown = projection.project(self._rows, laid, self._head(laid), start)
        shown += self._footer(laid)
        return self._fixed + sum(self._view.counted(item).tokens for item in shown)

    # -- the parts of a view ----------------------------------------------------------------------------------------

    def _shown(self) -> list[Shown]:
        return self._view.shown(self._footer(self._laid))

    def _sums(self) -> Sums:
        return self._view.sums(self._footer(self._laid))

    def _relay(self) -> None:
        """The overlays changed: the view is laid anew."""
        self._generation += 1
        head = self._laid.head
        needed = head.end + 1 if head is not None else 1
        if self._log is not None and needed < self._loaded_from and self._overlays:
            self._load(needed)
        self._view.lay(self._rows, self._first_visible(), self._laid, self._head(self._laid))

    def _head(self, laid: Laid) -> list[Shown]:
        out: list[Shown] = []
        memory = self._memory_texts[
            max(seq for seq in self._memory_texts if seq <= laid.epoch or seq == min(self._memory_texts))
        ]
        if memory.strip():
            out.append(Shown(ContextNote(memory, "memory")))
        texts = pins.settled_pins(laid)
        if texts:
            out.append(Shown(ContextNote(pins.pins_text(texts), "pins")))
        head = laid.head
        if head is not None:
            text = projection.summary_text(head.record, head.number, self._policy.summary.title)
            out.append(Shown(ContextNote(text, "summary", head.record.id)))
            carried = self._row(_carried(head.record))
            if carried is not None:
                out.append(Shown(carried.message, carried.seq, carried.tokens))
        return out

    def _footer(self, laid: Laid) -> list[Shown]:
        """What closes the view: fresh pins, and after a fold what is still open. Small, and free to change."""
        parts: list[str] = []
        fresh = pins.fresh_pins(laid)
        if fresh:
            parts.append(pins.pins_text(fresh))
        if laid.head is not None and self._policy.summary.footer:
            ledger = self._ledger()
            todo = [f"- [{item.status}] {item.text[:160]}" for item in ledger.open_todo[:8]]
            errors = [f"- {error.source}: {' '.join(error.text.split())[:160]}" for error in ledger.open_errors[-3:]]
            if todo:
                parts.append("\n".join(["Still to do:", *todo]))
            if errors:
                parts.append("\n".join(["Errors still open:", *errors]))
        return [Shown(ContextNote("\n\n".join(parts), "footer"))] if parts else []

    def _trimmed_line(self, item: Shown) -> str:
        row = self._row(item.seq)
        assert isinstance(item.message, ToolResult)
        if row is not None and self._policy.tool_results.summarize:
            return masking.stub(
                row, ToolCall(item.message.call_id, item.tool, "{}"), self._policy.tool_results, self._redact
            )
        age = len(self._rows) - bisect_right(self._rows, item.seq, key=_seq)
        return digests.placeholder(age) + (f" (m{item.seq})" if item.seq else "")

    # -- rows and facts ---------------------------------------------------------------------------------------------

    def _first_visible(self, laid: Laid | None = None) -> int:
        head = (laid or self._laid).head
        return bisect_right(self._rows, head.end, key=_seq) if head is not None else 0

    def _first_seq(self) -> int:
        index = self._first_visible()
        return self._rows[index].seq if index < len(self._rows) else 0

    def _row(self, seq: int) -> Row | None:
        index = bisect_right(self._rows, seq, key=_seq) - 1
        return self._rows[index] if index >= 0 and self._rows[index].seq == seq else None

    def _ledger(self) -> FactLedger:
        """The facts of everything said so far; reads only what is new."""
        start = bisect_right(self._rows, self._facts_upto, key=_seq)
        for row in self._rows[start:]:
            if isinstance(row.message, AssistantMessage):
                self._calls = {call.id: call for call in row.message.tool_calls}
            answered = self._calls.get(row.message.call_id) if isinstance(row.message, ToolResult) else None
            self._facts = self._facts.add(row.seq, row.message, answered)
            self._facts_upto = row.seq
        return self._facts

    def _originals(self, end: int) -> tuple[list[Row], bool]:
        """The newest messages up to `end` that hold at most so many tokens, and whether these are all there are."""
        if self._log is not None and self._loaded_from > 1:
            start = self._log_start(self._log, end, _REBASE_TOKENS)
            if start < self._loaded_from:
                self._load(start)
        stop = bisect_right(self._rows, end, key=_seq)
        index, held = stop, 0
        while index > 0 and self._rows[index - 1].seq >= self._loaded_from and held < _REBASE_TOKENS:
            index -= 1
            held += self._rows[index].tokens
        return self._rows[index:stop], index == 0 and self._loaded_from <= 1

    def _load(self, start: int) -> None:
        """Reads older messages from the log into the rows."""
        assert self._log is not None
        known = [row for row in self._rows if row.seq >= self._loaded_from]
        self._rows[:] = [*_rows(self._log.read(start, self._loaded_from)), *known]
        self._loaded_from = start
        self._view.lay(self._rows, self._first_visible(), self._laid, self._head(self._laid))

    def _start_of_view(self, log: Log) -> int:
        return self._log_start(log, log.last_seq(), 2 * self._window)

    def _log_start(self, log: Log, end: int, tokens: int) -> int:
        span = 256
        while span < end and log.tokens(end - span + 1, end + 1) < tokens:
            span *= 2
        return max(1, end - span + 1)

    def _base(self) -> str:
        head = self._laid.head
        return f"{head.record.id if head is not None else ''}:{self._laid.epoch}"

    def _by_hand(self, body: Body, text: str) -> ContextChanged:
        return ContextChanged(self.note(body), text)

    def _check(self, seqs: Sequence[int]) -> None:
        newest = cutting.newest_user(self._rows)
        for seq in seqs:
            if self._row(seq) is None:
                message = f"There is no message m{seq} in view."
                raise InputError(message)
            if newest is not None and self._rows[newest].seq == seq:
                message = f"m{seq} is the newest thing you said; it stays."
                raise InputError(message)


class _Wish(Struct, frozen=True):
    """How a summary was asked for."""

    trigger: Trigger
    focus: str
    strategy: folding.Choice | None
    first: int | None
    last: int | None
    keep: int | None
    preview: bool
    rebase: bool

    @property
    def by_range(self) -> bool:
        return self.first is not None or self.last is not None


def _seq(row: Row) -> int:
    return row.seq


def _rows(entries: Iterable[Entry]) -> Iterator[Row]:
    for entry in entries:
        if (message := entry.message) is not None:
            yield Row(entry.seq, message, entry.tokens, entry.id, entry.at, entry.sha256)


def _carried(record: SummaryRecord) -> int:
    """Seq of the user message that a record carries on word for word (0: none)."""
    return int((record.context.raw or {}).get("carried", 0))


def _is_overlay(body: Body) -> bool:
    if isinstance(body, Note):
        return body.name in {projection.RESTORED, projection.UNPINNED}
    return isinstance(body, SummaryRecord | MaskEpoch | Drop | Pin | Undo)


def _handles(seqs: Sequence[int]) -> str:
    return ", ".join(f"m{seq}" for seq in seqs)


def _sha256(body: Body) -> str:
    return hashlib.sha256(msgspec.json.encode(body)).hexdigest()


def _undoable(body: Body) -> bool:
    return isinstance(body, SummaryRecord | MaskEpoch | Drop | Note)


def _undone(entries: Sequence[Entry]) -> set[int]:
    undone: set[int] = set()
    for entry in reversed(entries):
        if isinstance(entry.body, Undo) and entry.seq not in undone:
            undone.add(entry.body.target)
    return undone
