"""One pass of folding: what is taken, how it is told, and whether it is worth it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from mycode.context import cutting, pins, projection
from mycode.context import policy as policies
from mycode.context.conversation import Conversation
from mycode.context.ledger import TokenLedger
from mycode.context.policy import Choice, Measure, Policy
from mycode.context.precompute import Precompute
from mycode.context.projection import Row
from mycode.core.entries import Body, Entry
from mycode.core.events import ContextMasked, Event, SummaryFinished, SummaryStarted, Warned
from mycode.core.models import Model
from mycode.core.summaries import MaskEpoch, SummaryRecord, Trigger

if TYPE_CHECKING:
    from mycode.context import folding, masking
    from mycode.context.summarizers import Fold

_AROUND_TOKENS = 12
"""What a summary costs beside its text as a message, with a little to spare."""
_REBASE_TOKENS = 400_000
_REBASE_WINDOWS = 4
"""A rebase reads at most so many tokens, and windows, of originals; what is older comes from the record before."""


MayFold = Callable[[Trigger], Awaitable[bool]]
"""Put before an automatic summary is written: whether it may be, now."""


class Wish(Struct, frozen=True):
    """How a summary was asked for: `first` and `last` are seqs, `keep` is how many messages stay as they are."""

    trigger: Trigger
    focus: str = ""
    strategy: Choice | None = None
    first: int | None = None
    last: int | None = None
    keep: int | None = None
    preview: bool = False
    rebase: bool = False

    @property
    def by_range(self) -> bool:
        return self.first is not None or self.last is not None

    @property
    def by_hand(self) -> bool:
        return self.trigger.reason == "manual"

    @property
    def plain(self) -> bool:
        return not self.focus and not self.by_range and self.keep is None and not self.rebase


class Folds:
    """Owns the guards of folding: never two passes at a time, no pass without progress, no model that keeps failing."""

    def __init__(
        self,
        policy: Policy,
        talk: Conversation,
        ledger: TokenLedger,
        count: Callable[[str], int],
        *,
        models: Callable[[], Sequence[Model]],
        note: Callable[[Body], Entry],
        clock: Callable[[], float],
        new_id: Callable[[], str],
        redact: Callable[[str], str],
    ) -> None:
        self._policy = policy
        self._talk = talk
        self._ledger = ledger
        self._count = count
        self._models = models
        self._note = note
        self._clock = clock
        self._new_id = new_id
        self._redact = redact
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

    def chosen(self, keep: int | None = None, *, shorter: bool = False) -> list[Row]:
        """The rows that a fold takes: all but the newest few that stay word for word (R69, C5)."""
        rows = self._talk.visible()
        settings = self._policy.keep
        if keep is not None:
            return rows[: cutting.choose_cut(rows, keep, settings.floor, 1 << 60)]
        room = self._ledger.room()
        target = int(policies.fold_target(self._policy, self._ledger.info) / self._ledger.calibration)
        told = self.summary_budget(sum(row.tokens for row in rows))
        tail = max(0, min(int(settings.recent_share * room), target - self._ledger.fixed - told))
        wanted = settings.floor if shorter else settings.recent_messages
        return rows[: cutting.choose_cut(rows, wanted, settings.floor, tail)]

    def summary_budget(self, folded: int) -> int:
        """Tokens that a summary of so many more may hold."""
        previous = self._talk.sums().get("summary", (0, 0))[0]
        return policies.summary_budget(self._policy, self._ledger.room(), folded, previous)

    def mask_plan(self, wanted: int, protected: int | None = None) -> masking.Plan:
        """The epoch of masking that would free so many tokens, as far as possible."""
        from mycode.context import masking

        talk, settings = self._talk, self._policy.masking
        if protected is None:
            protected = int(settings.protect_share * self._ledger.room())
        spared = {error.seq for error in talk.facts().open_errors}
        spared |= {pin.message_seq for _, pin in talk.laid.pins if pin.message_seq is not None}
        return masking.plan(
            talk.visible(),
            talk.laid,
            settings,
            self._policy.tool_results,
            wanted=wanted,
            protected_tokens=protected,
            spared=frozenset(spared),
            count=self._count,
            redact=self._redact,
        )

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
        rows = self.chosen()
        models = self._models() if rows else ()
        if not models:
            return False
        from mycode.context import folding

        fold = self._fold(rows, "", rebase=self._at_depth_limit() and self._policy.auto.on_depth_limit == "rebase")
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
            rows = self._range(wish) if wish.by_range else self.chosen(wish.keep, shorter=bool(attempt))
        head = self._talk.laid.head
        again = wish.rebase and not rows and head is not None
        if again and head is not None:
            rows = self._talk.past.originals(head.end, self._rebase_tokens)[0]
        if not rows:
            if not attempt:  # after a pass that did fold there is nothing to explain
                yield Warned("There is nothing to summarize yet: what could be folded is folded already.")
            return
        before = self._counted()
        inner = not again and rows[0].seq != self._talk.visible()[0].seq
        if not inner and not again:
            self._talk.read_all()
            rows = self._talk.visible()[: self._talk.past.after(rows[-1].seq) - self._talk.first_visible()]
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
        fold = self._fold(rows, wish.focus, rebase=rebase, inner=inner)
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
        record = self._record(told, fold, rows, wish.trigger, rebase=rebase, inner=inner)
        after = self._counted_with(record)
        if after > before - least and choice != "rules":
            spent = record.usage
            told = await folding.tell(fold, "rules", (), self._policy)
            record = self._record(told, fold, rows, wish.trigger, rebase=rebase, inner=inner)
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
            self._put_off_at = 0
            yield SummaryFinished(self._note(record), seconds)

    @property
    def _rebase_tokens(self) -> int:
        return min(_REBASE_TOKENS, _REBASE_WINDOWS * self._ledger.window)

    def _gave_up(self, tokens: int) -> None:
        self._fruitless += 1
        self._fruitless_tokens = tokens

    def _fold(self, rows: Sequence[Row], focus: str, *, rebase: bool, inner: bool = False) -> Fold:
        from mycode.context.summarizers import Fold

        head = self._talk.laid.head
        previous = head.record if head is not None and not inner else None
        told = list(rows)
        if rebase and head is not None and rows[0].seq > head.end:
            older, complete = self._talk.past.originals(head.end, self._rebase_tokens)
            told = [*older, *told]
            previous = None if complete else head.record
        size = sum(row.tokens for row in told)
        frame = projection.frame(
            (told[0].seq, told[-1].seq),
            self._talk.laid.summaries + 1,
            self._policy.summary.title,
            self._redact(focus),
        )
        return Fold(
            # What the person left out by hand is not brought back by a summary.
            messages=tuple((row.seq, row.message) for row in told if row.seq not in self._talk.laid.dropped),
            previous=previous,
            ledger=self._talk.facts(),
            budget_tokens=self.summary_budget(size),
            count=self._count,
            redact=self._redact,
            focus=focus,
            depth=0 if rebase or previous is None else previous.depth + 1,
            form=self._policy.summary.form,
            frame_tokens=self._count(frame) + _AROUND_TOKENS,
            dropped=self._talk.laid.dropped,
            recent=tuple((row.seq, row.message) for row in self._talk.rows[self._talk.past.after(rows[-1].seq) :]),
        )

    def _record(
        self, told: folding.Told, fold: Fold, rows: Sequence[Row], trigger: Trigger, *, rebase: bool, inner: bool
    ) -> SummaryRecord:
        from mycode.context import records

        assert told.draft is not None
        talk = self._talk
        head = talk.laid.head
        parent = head.record if head is not None and not inner else None
        newest = cutting.newest_user(talk.rows)
        said = talk.rows[newest].seq if newest is not None else 0
        laid_down = list(pins.kept_constraints(parent))
        if self._policy.summary.pin_constraints:
            laid_down += fold.redact_each(c.text for c in fold.ledger.constraints if c.seq <= rows[-1].seq)
        record = records.build(
            told.draft,
            fold,
            rows,
            trigger,
            record_id=self._new_id(),
            at=self._clock(),
            covers=(1 if rebase or (parent is None and not inner) else rows[0].seq, rows[-1].seq),
            depth=fold.depth,
            parent=parent,
            carried=said if said <= rows[-1].seq and not inner else 0,
            constraints=pins.within(laid_down, max(400, self._ledger.room() * 3 // 100), self._count),
        )
        return replace(record, verification=told.verification)

    def _range(self, wish: Wish) -> list[Row]:
        """The rows between two seqs, moved to legal boundaries; the newest user message and the floor stay out."""
        rows, start = self._talk.rows, self._talk.first_visible()
        first = max(start, self._talk.past.after((wish.first or 1) - 1))
        stop = self._talk.past.after(wish.last) if wish.last is not None else len(rows)
        while start < first < len(rows) and not cutting.legal(rows, first):
            first += 1
        while first < stop < len(rows) and not cutting.legal(rows, stop):
            stop -= 1
        newest = cutting.newest_user(rows)
        if newest is not None and start < first <= newest < stop:
            stop = newest  # a fold in the middle does not carry the newest user message on
        if stop >= len(rows):
            stop = cutting.choose_cut(rows, self._policy.keep.floor, self._policy.keep.floor, 1 << 60)
        return rows[first:stop]

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
        plan = self.mask_plan(wanted)
        return self._lay_mask(plan, counted, trigger) if plan.freed >= wanted else None

    def _mask_all(self, trigger: Trigger) -> ContextMasked | None:
        """Everything that may be masked, when folding was not enough."""
        if not self._policy.masking.enabled:
            return None
        plan = self.mask_plan(self._ledger.window, protected=0)
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
