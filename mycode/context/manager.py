"""The conversation as the model sees it: takes in every message, and folds the past before it grows too large."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from mycode.context import budget, by_hand, pins
from mycode.context import policy as policies
from mycode.context.budget import Learned
from mycode.context.conversation import Conversation, is_overlay
from mycode.context.folds import Folds, MayFold
from mycode.context.ledger import TokenLedger
from mycode.context.live_view import added, category
from mycode.context.plans import Plans, Wish
from mycode.context.policy import Choice, Policy
from mycode.context.projection import Row, Shown
from mycode.core.entries import Body, Entry, Log
from mycode.core.errors import ContextOverflow
from mycode.core.events import ContextChanged, Event, Warned
from mycode.core.messages import AssistantMessage, Message, ToolResult, ViewMessage
from mycode.core.models import Model, ModelInfo, TokenCounter, ToolSpec
from mycode.core.summaries import (
    Category,
    ContextUsage,
    Trigger,
    TriggerDistance,
    TriggerReason,
)
from mycode.core.usage import Usage

if TYPE_CHECKING:
    from mycode.context.forecast import Forecast

_SHORT = 800
_CATEGORIES = ("memory", "pins", "summary", "user", "assistant", "tool results", "other")


class Item(Struct, frozen=True):
    """A message of the view for `/context`: its number is its seq; `age` is how many numbers it lies back."""

    seq: int
    role: str
    tokens: int
    age: int
    title: str
    state: str = ""


class Savings(Struct, frozen=True):
    """What masking and summarizing would free now, in tokens."""

    masking: int
    summarizing: int


class ContextManager:
    """Numbers the rows of a session's log and keeps the view of it within the model's window.

    It never writes: it hands out entries, and whoever holds the log writes them before anything else happens.
    `summarizer` gives the models to ask for a summary, in order of preference; none: summaries go by rules.
    With `check` every view is held against the invariants before it is sent: for tests, as it reads the whole view.
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
        check: bool = False,
    ) -> None:
        self._policy = policy
        self._check_views = check
        self._counter = counter
        self._count = _remembering(counter.count)
        self._clock = clock
        self._new_id = new_id
        self._redact = redact
        self._tool_count = len(tools)
        self._seq = 0
        self._cut_view: tuple[tuple[int, int, int], list[Shown]] | None = None
        self._arrival: TriggerReason | None = None
        self._ledger = TokenLedger(policy, counter, info, system, tools)
        self._talk = Conversation(policy.summary, self._count, memory, redact)
        self._plans = Plans(policy, self._talk, self._ledger, self._count, clock=clock, new_id=new_id, redact=redact)
        models = summarizer or (lambda: ())
        self._folds = Folds(policy, self._talk, self._ledger, self._plans, models=models, note=self.note, clock=clock)

    # -- the log ------------------------------------------------------------------------------------------------------

    def restore(self, log: Log) -> None:
        """Takes up a conversation from its log, reading no more of it than the view needs."""
        self._seq = log.last_seq()
        self._arrival = "resume" if self._seq else None
        self._folds.begin()
        self._ledger.forget()
        self._talk.restore(log)

    def append(self, message: Message) -> Entry:
        """Takes in a message: numbers it and counts its tokens, once. The caller writes the entry to the log."""
        self._seq += 1
        if isinstance(message, AssistantMessage):
            self._arrival = None
        tokens = budget.message_tokens(message, self._counter.count)
        entry = Entry(self._seq, self._new_id(), self._clock(), message, tokens, _sha256(message))
        self._talk.append(Row(entry.seq, message, tokens, entry.id, entry.at, entry.sha256))
        return entry

    def note(self, body: Body) -> Entry:
        """Numbers a row that is no message; an overlay takes effect at once. The caller writes the entry to the log."""
        self._seq += 1
        entry = Entry(self._seq, self._new_id(), self._clock(), body, 0, _sha256(body))
        if is_overlay(body):
            self._talk.overlay(entry)
        return entry

    # -- the view -----------------------------------------------------------------------------------------------------

    def view(self) -> tuple[ViewMessage, ...]:
        """What the model would see now, whole; the same bytes as before for everything that was there before.

        Only the footer (a note with that source, always last) may change from one view to the next.
        """
        return self._talk.messages()

    def fit(self, max_tokens: int | None = None) -> tuple[ViewMessage, ...]:
        """The view, made to fit the window minus the reserve (or `max_tokens` in all): what is really sent."""
        fixed, room, total = self._ledger.fixed, self._ledger.room(max_tokens), self._talk.counted()
        if total <= room:
            self._ledger.sent(total + fixed, self._talk.generation)
            return self._sound(self.view())
        shown = self._cut(room)
        self._ledger.sent(sum(item.tokens for item in shown) + fixed, -1)  # a cut view says nothing about the next
        return self._sound(tuple(item.message for item in shown))

    def observe(self, usage: Usage) -> None:
        """Learns from the real size of the request that was last fitted."""
        self._ledger.observe(usage)

    @property
    def calibration(self) -> float:
        """Real tokens per counted token for the present provider and model."""
        return self._ledger.calibration

    @property
    def calibrations(self) -> dict[tuple[str, str], Learned]:
        """What was learned of each provider and model that was used, to be kept for the next session."""
        return self._ledger.calibrations

    def recall(self, learned: Learned) -> None:
        """Takes over what an earlier session learned of the present provider and model."""
        self._ledger.recall(learned)

    def usage(self) -> ContextUsage:
        """The one count that everything else reads: of what would really be sent; triggers measure the whole view."""
        ledger = self._ledger
        sums = view = self._talk.sums()
        counted = ledger.fixed + sum(tokens for tokens, _ in sums.values())
        total = whole = ledger.real(counted, self._talk.generation)
        if whole > ledger.budget:
            sums = added({}, self._cut(ledger.room()))
            counted = ledger.fixed + sum(tokens for tokens, _ in sums.values())
            total = min(whole, ledger.real(counted, -1))
        scale = total / counted if counted else 1.0
        categories = [
            Category("system", round(ledger.system_tokens * scale), 1),
            Category("tools", round(ledger.tools_tokens * scale), self._tool_count),
        ]
        categories += [
            Category(name, round(sums[name][0] * scale), sums[name][1])  # type: ignore[arg-type]  # names are the Literal's
            for name in _CATEGORIES
            if name in sums
        ]
        measure = self._folds.measure(whole)
        tail = min(self._policy.keep.recent_messages, measure.messages)
        recent = sum(row.tokens for row in self._talk.rows[len(self._talk.rows) - tail :])
        said = sum(view.get(name, (0, 0))[0] for name in ("user", "assistant", "tool results"))
        protected = int(self._policy.masking.protect_share * ledger.room())
        return ContextUsage(
            model=ledger.info.name,
            window=ledger.window,
            reserve=ledger.reserve,
            tokens=total,
            cut=whole - total,
            categories=tuple(categories),
            triggers=self._distances(measure),
            messages=measure.messages,
            summaries=len(self._talk.laid.regions),
            masked=len(self._talk.laid.stubs),
            exact=self._counter.exact,
            window_known=ledger.info.window_known,
            maskable=max(0, view.get("tool results", (0, 0))[0] - protected),
            foldable=max(0, said - recent),
            calibration=self.calibration,
        )

    def items(self) -> tuple[Item, ...]:
        """The messages of the view, numbered by seq; dropped, shortened and masked ones say so."""
        rows, laid = self._talk.rows, self._talk.laid
        newest = rows[-1].seq if rows else 0
        states = [("dropped", laid.dropped), ("shortened", laid.shrunk), ("masked", laid.stubs)]
        found = []
        for item in self._talk.shown():
            if not item.seq:
                continue
            message = item.message
            title = " ".join(message.text.split())[:100]
            title = title or ", ".join(call.name for call in getattr(message, "tool_calls", ()))
            state = next((name for name, seqs in states if item.seq in seqs), "")
            found.append(Item(item.seq, category(message), item.tokens, newest - item.seq, title, state))
        return tuple(found)

    # -- when ---------------------------------------------------------------------------------------------------------

    def due(self, reason: TriggerReason | None = None) -> Trigger | None:
        """Whether the past should be folded before the next request, and why.

        Until the first answer after a resume or a switch to a smaller window, that is what a trigger is named by.
        Quiet after passes that brought nothing, until a tenth more has come in: what cannot be folded is cut by `fit`.
        """
        if reason != "manual" and self._folds.resigned():
            return None
        trigger = policies.due(self._policy, self._folds.measure(self._folds.tokens()), reason or self._arrival)
        if trigger is not None and self._folds.put_off and not (trigger.emergency or reason == "manual"):
            return None
        return trigger

    def ask_before(self, may_fold: MayFold, when_full: MayFold | None = None) -> None:
        """Who is asked before an automatic summary, and who when the context is full though those are off (R118)."""
        self._folds.may_fold = may_fold
        self._folds.when_full = when_full

    def preview_savings(self) -> Savings:
        """What masking and summarizing would free."""
        plan = self._plans.mask_plan(wanted=self._ledger.window)
        rows = self._plans.chosen()
        folded = sum(row.tokens for row in rows)
        previous = self._talk.sums().get("summary", (0, 0))[0]
        freed = max(0, folded + previous - self._plans.summary_budget(folded))
        return Savings(plan.freed, freed if rows else 0)

    def forecast(self) -> Forecast:
        """How long the room will last, and what the next requests cost."""
        from mycode.context.forecast import forecast

        auto, ledger = self._policy.auto, self._ledger
        tokens = self._folds.tokens()
        return forecast(
            self._talk.visible(),
            tokens=tokens,
            trigger_tokens=min(
                ledger.budget, int(auto.trigger_ratio * ledger.window), auto.max_tokens or ledger.window
            ),
            after_fold=max(ledger.fixed, tokens - self.preview_savings().summarizing),
            price=ledger.info.price,
            cached=ledger.is_cached(self._talk.generation),
        )

    # -- folding ------------------------------------------------------------------------------------------------------

    async def summarize(
        self,
        trigger: Trigger,
        *,
        focus: str = "",
        strategy: Choice | None = None,
        first: int | None = None,
        last: int | None = None,
        keep: int | None = None,
        preview: bool = False,
        rebase: bool = False,
    ) -> AsyncGenerator[Event, None]:
        """Folds the past and says so; what it could not do, it says in a `Warned`. Never two at a time.

        With `preview` the record is told but not laid: its entry has seq 0 and is not to be written.
        """
        wish = Wish(trigger, focus, strategy, first, last, keep, preview, rebase)
        async with aclosing(self._folds.run(wish)) as events:
            async for event in events:
                yield event

    async def overflow(self, error: ContextOverflow) -> AsyncGenerator[Event, None]:
        """Answers a provider that found the request too long: learns its limit and folds by rules, without any model.

        Afterwards `fit` gives a smaller request. Call it once per request; a second overflow is the turn's end.
        """
        self._ledger.overflowed(error)
        tokens = self._folds.tokens()
        window = self._ledger.window
        yield Warned(f"The request was longer than the model takes ({window:,} tokens); older messages are folded.")
        trigger = Trigger("overflow", tokens / window, tokens, emergency=True)
        async with aclosing(self._folds.run(Wish(trigger, strategy="rules"))) as events:
            async for event in events:
                yield event

    def precompute(self) -> bool:
        """Begins to prepare the next summary in the background if it is worth it; whether it began.

        Needs a running event loop, a model to ask, and a window filled to `precompute.ratio`. Cheap to call.
        """
        return self._folds.prepare()

    def cancel_precompute(self) -> None:
        """Stops preparing."""
        self._folds.forget_prepared()

    # -- by hand ------------------------------------------------------------------------------------------------------

    def undo(self) -> ContextChanged | None:
        """Takes back the newest summary, masking or hand-made change of the view; None if there is none.

        A summary stays where its originals were purged: there is nothing to show in its place.
        """
        change = by_hand.undo(self._talk)
        if change is None:
            return None
        self._folds.forget_prepared()
        self._folds.hope()
        return self._changed(change)

    def drop(self, seqs: Sequence[int]) -> ContextChanged:
        """Leaves messages out of the view; a mark with their handle stays. The newest user message cannot be."""
        return self._changed(by_hand.drop(self._talk, seqs))

    def shrink(self, seqs: Sequence[int]) -> ContextChanged:
        """Shows messages as one line each."""
        return self._changed(by_hand.shrink(self._talk, seqs))

    def restore_items(self, seqs: Sequence[int]) -> ContextChanged:
        """Shows messages whole again that were left out, shortened or masked."""
        return self._changed(by_hand.restore(self._talk, seqs))

    def pin(self, what: str | int) -> ContextChanged:
        """Keeps a text, or the text of message `what`, word for word in every view from now on."""
        return self._changed(by_hand.pin(self._talk, what))

    def pins(self) -> tuple[str, ...]:
        """What is pinned, in the order in which `unpin` numbers it from 1."""
        return pins.all_pins(self._talk.laid)

    def unpin(self, number: int) -> ContextChanged:
        """Lets go of the pin with that number."""
        return self._changed(by_hand.unpin(self._talk, number))

    def switch_model(self, info: ModelInfo) -> None:
        """From now on the window is that of another model; where it is smaller, a trigger is named `model_switch`."""
        before = self._ledger.window
        self._ledger.switch(info)
        if self._ledger.window < before:
            self._arrival = "model_switch"
        self._folds.hope()

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _sound(self, view: tuple[ViewMessage, ...]) -> tuple[ViewMessage, ...]:
        if self._check_views:
            from mycode.context.invariants import broken

            if breaches := broken(view):
                raise AssertionError("; ".join(breaches))
        return view

    def _cut(self, room: int) -> list[Shown]:
        """The view cut to fit that room; made once for each state of the conversation."""
        state = (self._seq, self._talk.generation, room)
        if self._cut_view is None or self._cut_view[0] != state:
            from mycode.context import trimming

            shown = trimming.trim(self._talk.shown(), room, self._count, self._trimmed_line, self._policy.keep.floor)
            self._cut_view = (state, shown)
        return self._cut_view[1]

    def _distances(self, measure: policies.Measure) -> tuple[TriggerDistance, ...]:
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

    def _trimmed_line(self, item: Shown) -> str:
        """What stands for a tool result that must go from a request (R33, R34, C1, C18)."""
        from mycode.context import digests, masking

        settings = self._policy.tool_results
        row = self._talk.past.row(item.seq)
        message = item.message
        assert isinstance(message, ToolResult)
        if row is None:
            return digests.placeholder(0)
        if message.is_error and settings.preserve_errors:
            summary = digests.tool_summary(self._talk.past.call_of(row), message)
            return f"{digests.error_block(summary, max_chars=settings.max_error_chars)} (m{row.seq})"
        if settings.summarize:
            return masking.stub(row, self._talk.past.call_of(row), settings, self._redact)
        age = len(self._talk.rows) - self._talk.past.after(row.seq)
        return f"{digests.placeholder(age)} (m{row.seq})"

    def _changed(self, change: by_hand.Change) -> ContextChanged:
        return ContextChanged(self.note(change.body), change.text)


def _remembering(count: budget.Count) -> budget.Count:
    """Counts that come again are not made again: of many lines and stubs, and of the few long texts in a view."""
    short, long = lru_cache(maxsize=2048)(count), lru_cache(maxsize=16)(count)
    return lambda text: short(text) if len(text) <= _SHORT else long(text)


def _sha256(body: Body) -> str:
    return hashlib.sha256(msgspec.json.encode(body)).hexdigest()
