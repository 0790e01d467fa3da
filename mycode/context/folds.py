"""One pass of folding: whether it may be, how it is told, and whether it was worth it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mycode.context.conversation import Conversation
from mycode.context.ledger import TokenLedger
from mycode.context.plans import Plans, Wish
from mycode.context.policy import Choice, Measure, Policy
from mycode.context.precompute import Precompute
from mycode.core.entries import Body, Entry
from mycode.core.events import ContextMasked, Event, SummaryFinished, SummaryStarted, Warned
from mycode.core.models import Model
from mycode.core.summaries import MaskEpoch, SummaryRecord, Trigger

if TYPE_CHECKING:
    from mycode.context import masking

MayFold = Callable[[Trigger], Awaitable[bool]]
"""Put before an automatic summary is written: whether it may be, now."""


class Folds:
    """Owns the guards of folding: never two passes at a time, no pass without progress, no model that keeps failing."""

    def __init__(
        self,
        policy: Policy,
        talk: Conversation,
        ledger: TokenLedger,
        plans: Plans,
        *,
        models: Callable[[], Sequence[Model]],
        note: Callable[[Body], Entry],
        clock: Callable[[], float],
    ) -> None:
        self._policy = policy
        self._talk = talk
        self._ledger = ledger
        self._plans = plans
        self._models = models
        self._note = note
        self._clock = clock
        self._precompute = Precompute()
        self._folding = False
        self._fruitless = 0
        self._fruitless_tokens = 0
        self._llm_failures = 0
        self._put_off_at = 0
        self.may_fold: MayFold | None = None
        self.when_full: MayFold | None = None

    # -- decisions ----------------------------------------------------------------------------------------------------

    def measure(self, tokens: int) -> Measure:
        """What the decision to fold is made from."""
        talk, ledger = self._talk, self._ledger
        head = talk.laid.head
        visible = len(talk.rows) - talk.first_visible()
        return Measure(
            tokens=tokens,
            window=ledger.window,
            budget=ledger.budget,
            messages=visible,
            folds=1 if head is not None else 0,
            since_fold=len(talk.rows) - talk.past.after(head.seq) if head is not None else visible,
            after_last_fold=head.record.tokens_after / ledger.window if head is not None else 0.0,
            depth=head.record.depth + 1 if head is not None else 0,
        )

    def resigned(self) -> bool:
        """Whether folding has brought nothing lately, and too little has been said since for it to be worth a try."""
        enough = self._fruitless >= self._policy.auto.passes_without_progress
        return enough and self.tokens() < 1.1 * self._fruitless_tokens

    @property
    def put_off(self) -> bool:
        """Whether the person has put a summary off, and no more than the cooldown has been said since."""
        if not self._put_off_at:
            return False
        since = len(self._talk.rows) - self._talk.past.after(self._put_off_at)
        return since < max(1, self._policy.auto.cooldown_messages)

    def hope(self) -> None:
        """Something changed that makes another try worth while."""
        self._fruitless = 0

    def tokens(self) -> int:
        """The best guess of the real size of the next request."""
        return self._ledger.real(self._counted(), self._talk.generation)

    # -- passes -------------------------------------------------------------------------------------------------------

    async def run(self, wish: Wish) -> AsyncGenerator[Event, None]:
        """Folds as wished, or says why not; never two at a time."""
        if self._folding:
            yield Warned("A summary is already being written.")
            return
        self._folding = True
        try:
            async with aclosing(self._run(wish)) as events:
                async for event in events:
                    yield event
        finally:
            self._folding = False

    def prepare(self) -> bool:
        """Begins to tell the next fold in the background if it is worth it; whether it began."""
        settings = self._policy.precompute
        if not settings.enabled or not self._policy.auto.enabled or self._folding:
            return False
        if not self._precompute.may_start(self._base()):
            return False
        choice = self._choice(None, emergency=False)
        if choice == "rules" or self.tokens() < settings.ratio * self._ledger.window:
            return False
        rows = self._plans.chosen()
        models = self._models() if rows else ()
        if not models:
            return False
        from mycode.context import folding

        rebase = self._at_depth_limit() and self._policy.auto.on_depth_limit == "rebase"
        fold = self._plans.fold(rows, "", rebase=rebase)
        return self._precompute.start(
            rows, self._base(), lambda: folding.tell(fold, choice, models, self._policy, background=True)
        )

    def begin(self) -> None:
        """Another conversation: nothing of the one before counts."""
        self._precompute.cancel()
        self._fruitless = self._llm_failures = self._put_off_at = 0

    def forget_prepared(self) -> None:
        """Stops preparing and forgets what is ready."""
        self._precompute.cancel()

    async def _run(self, wish: Wish) -> AsyncGenerator[Event, None]:
        before = self.tokens()
        never = not wish.by_hand and not self._policy.auto.enabled
        if never and not (self.when_full is not None and await self.when_full(wish.trigger)):
            self._gave_up(before)
            yield Warned(
                "The context is full, and automatic summaries are off (auto.enabled). "
                "Requests are cut to fit; /summarize makes room."
            )
            return
        # Masking leaves as many messages as there were, so it does not answer a trigger by their number.
        if not wish.by_hand and not wish.rebase and wish.trigger.reason != "messages":
            masked = self._mask_if_enough(wish.trigger)
            if masked is not None:
                yield masked
                return
        folded = False
        for attempt in range(2):
            if attempt and (not folded or wish.by_hand or not self._still_over()):
                break
            async with aclosing(self._pass(wish, attempt)) as events:
                async for event in events:
                    folded = folded or isinstance(event, SummaryFinished)
                    yield event
        if wish.by_hand or wish.preview:
            if folded:
                self.hope()
            return
        if self.put_off and not wish.trigger.emergency:
            return
        if self._still_over() and (masked := self._mask_all(wish.trigger)) is not None:
            yield masked
        after = self.tokens()
        if before - after >= self._policy.auto.min_saving * before:
            self.hope()
            return
        self._gave_up(after)
        if self._fruitless >= self._policy.auto.passes_without_progress:
            yield Warned(self._explanation())

    async def _pass(self, wish: Wish, attempt: int) -> AsyncGenerator[Event, None]:
        """Tells one fold, and lays it if it is worth it."""
        from mycode.context import folding

        started = self._clock()
        rebase, strategy = wish.rebase, wish.strategy
        if self._at_depth_limit():
            limit = self._policy.auto.on_depth_limit
            if limit == "halt" and not wish.trigger.emergency:
                yield Warned(
                    f"Nothing was summarized: summaries of summaries have reached auto.max_depth "
                    f"({self._policy.auto.max_depth}), and auto.on_depth_limit is “halt”."
                )
                return
            rebase = rebase or limit == "rebase"
            strategy = "rules" if limit == "rule_only" else strategy
        choice = self._choice(strategy, emergency=wish.trigger.emergency and not wish.by_hand)
        if attempt >= self._policy.llm.max_calls_per_trigger:
            choice = "rules"
        prepared = None
        if wish.plain and not attempt and choice != "rules":
            if self._precompute.running and not await self._precompute.wait(self._policy.llm.deadline_seconds):
                self._precompute.cancel()
                choice = "rules"  # one call to a model is enough for one trigger, even if it came to nothing
            prepared = self._precompute.take(self._talk.visible(), self._base())
        if prepared is not None:
            rows = self._talk.visible()[: prepared.rows]
        else:
            plans = self._plans
            rows = plans.ranged(wish) if wish.by_range else plans.chosen(wish.keep, shorter=bool(attempt))
        head = self._talk.laid.head
        again = wish.rebase and not rows and head is not None
        if again and head is not None:
            rows = self._talk.past.originals(head.end, self._plans.rebase_tokens)[0]
        if not rows:
            if not attempt:  # after a pass that did fold there is nothing to explain
                yield Warned("There is nothing to summarize yet: what could be folded is folded already.")
            return
        before = self._counted()
        inner = not again and rows[0].seq != self._talk.visible()[0].seq
        least = self._policy.auto.min_saving * before
        if sum(row.tokens for row in rows) < least and not rebase:
            if not attempt:
                yield Warned("A summary would free too little now, so nothing was changed.")
            return
        yield SummaryStarted(wish.trigger, len(rows))
        base = self._base()
        unasked = not (attempt or wish.by_hand or wish.trigger.emergency)
        if unasked and self.may_fold is not None and not await self.may_fold(wish.trigger):
            self._put_off_at = self._talk.rows[-1].seq
            if prepared is not None:
                self._precompute.give_back(prepared)
            yield Warned("The summary is put off for now; /summarize makes it at any time.")
            return
        fold = self._plans.fold(rows, wish.focus, rebase=rebase, inner=inner)
        if prepared is not None:
            told = prepared.told
        else:
            told = await folding.tell(fold, choice, self._models(), self._policy, must=wish.trigger.emergency)
            if choice != "rules":
                self._llm_failures = self._llm_failures + 1 if told.failed else 0
        for warning in told.warnings:
            yield Warned(warning)
        if told.draft is None:
            return
        if self._base() != base:
            yield Warned("The view was changed while the summary was written, so it was not used. Ask for it again.")
            return
        record = self._plans.record(told, fold, rows, wish.trigger, rebase=rebase, inner=inner)
        after = self._counted_with(record)
        if after > before - least and choice != "rules":
            spent = record.usage
            told = await folding.tell(fold, "rules", (), self._policy)
            record = self._plans.record(told, fold, rows, wish.trigger, rebase=rebase, inner=inner)
            record = replace(record, usage=spent)  # the model's text was too long to use, but it was paid for
            after = self._counted_with(record)
        if after > before - least and not (again and after <= 1.1 * before):
            yield Warned("The summary would free too little, so nothing was changed.")
            return
        scale = self._ledger.calibration
        record = replace(record, tokens_before=round(before * scale), tokens_after=round(after * scale))
        seconds = self._clock() - started
        if wish.preview:
            yield SummaryFinished(Entry(0, record.id, record.at, record), seconds)
        else:
            self._put_off_at = 0
            yield SummaryFinished(self._note(record), seconds)

    def _gave_up(self, tokens: int) -> None:
        self._fruitless += 1
        self._fruitless_tokens = tokens

    def _choice(self, strategy: Choice | None, *, emergency: bool) -> Choice:
        if strategy is not None:
            return strategy
        broken = self._llm_failures >= self._policy.llm.breaker_failures
        return "rules" if emergency or broken else self._policy.summary.strategy

    def _mask_if_enough(self, trigger: Trigger) -> ContextMasked | None:
        """An epoch of masking, if that alone brings the view well below the trigger and pays for itself."""
        settings = self._policy.masking
        if not settings.enabled:
            return None
        counted = self._counted()
        target = int(settings.target_ratio * self._ledger.window / self._ledger.calibration)
        wanted = max(counted - target, int(settings.min_saving * counted))
        plan = self._plans.named_mask_plan(wanted)
        return self._lay_mask(plan, counted, trigger) if plan.freed >= wanted else None

    def _mask_all(self, trigger: Trigger) -> ContextMasked | None:
        """Everything that may be masked, when folding was not enough."""
        if not self._policy.masking.enabled:
            return None
        plan = self._plans.mask_plan(self._ledger.window, protected=0)
        return self._lay_mask(plan, self._counted(), trigger) if plan.stubs else None

    def _lay_mask(self, plan: masking.Plan, counted: int, trigger: Trigger) -> ContextMasked:
        before, after = (round(size * self._ledger.calibration) for size in (counted, counted - plan.freed))
        epoch = MaskEpoch(plan.stubs, before, after, plan.metadata, trigger.reason)
        return ContextMasked(self._note(epoch), epoch.tokens_before, epoch.tokens_after)

    def _counted(self) -> int:
        return self._ledger.fixed + self._talk.counted()

    def _counted_with(self, record: SummaryRecord) -> int:
        return self._ledger.fixed + self._talk.counted_with(record)

    def _still_over(self) -> bool:
        tokens = self.tokens()
        return tokens > self._ledger.budget or tokens >= self._policy.auto.trigger_ratio * self._ledger.window

    def _at_depth_limit(self) -> bool:
        head = self._talk.laid.head
        return head is not None and head.record.depth + 1 >= self._policy.auto.max_depth

    def _base(self) -> str:
        """Names what lies under the visible rows; a change makes what was prepared worthless."""
        laid = self._talk.laid
        return f"{laid.head.record.id if laid.head is not None else ''}:{laid.epoch}"

    def _explanation(self) -> str:
        sums = self._talk.sums()
        sizes = {name: tokens for name, (tokens, _) in sums.items()}
        sizes |= {"system prompt": self._ledger.system_tokens, "tools": self._ledger.tools_tokens}
        name = max(sizes, key=lambda part: sizes[part])
        return (
            f"Summarizing no longer helps: of {self._ledger.window:,} tokens, {name} alone takes {sizes[name]:,}. "
            "It is not tried again until more has been said, and requests are cut to fit. "
            "Leave messages out with /context, or use a model with a larger window."
        )
