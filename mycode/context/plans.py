"""What a pass of folding would take and tell: which rows, in how many tokens, from what, as which record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from mycode.context import cutting, pins, projection
from mycode.context import policy as policies
from mycode.context.conversation import Conversation
from mycode.context.ledger import TokenLedger
from mycode.context.policy import Choice, Policy
from mycode.context.projection import Row
from mycode.core.messages import UserMessage
from mycode.core.summaries import SummaryRecord, Trigger

if TYPE_CHECKING:
    from mycode.context import folding, masking
    from mycode.context.summarizers import Aim, Fold

_AROUND_TOKENS = 12
"""What a summary costs beside its text as a message, with a little to spare."""
_AIM_PART = 8
"""The first request takes at most this part of a summary's room."""
_REBASE_TOKENS = 400_000
_REBASE_WINDOWS = 4
"""A rebase reads at most so many tokens, and windows, of originals; what is older comes from the record before."""


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


class Plans:
    """Reads the conversation and its ledger; changes nothing and remembers nothing."""

    def __init__(
        self,
        policy: Policy,
        talk: Conversation,
        ledger: TokenLedger,
        count: Callable[[str], int],
        *,
        clock: Callable[[], float],
        new_id: Callable[[], str],
        redact: Callable[[str], str],
    ) -> None:
        self._policy = policy
        self._talk = talk
        self._ledger = ledger
        self._count = count
        self._clock = clock
        self._new_id = new_id
        self._redact = redact

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

    def named_mask_plan(self, wanted: int) -> masking.Plan:
        """The same with the names under each line that the view would lose, where room for them is left."""
        from mycode.context import masking
        from mycode.context.selection import last_named

        plan = self.mask_plan(wanted)
        if plan.freed < wanted or self._policy.tool_results.style == "compact":
            return plan
        more = self.mask_plan(wanted + masking.NAMES_TOKENS * len(plan.stubs))
        names = last_named(self._talk.facts(), more.stubs.keys(), masking.LIKELY)
        named = masking.with_names(more, names, self._count, self._redact)
        return named if named.freed >= wanted else plan

    def fold(self, rows: Sequence[Row], focus: str, *, rebase: bool, inner: bool = False) -> Fold:
        """The fold of these rows; `rebase`: told anew from older originals, `inner`: apart from what is folded."""
        from mycode.context.summarizers import Aim, Fold

        head = self._talk.laid.head
        previous = head.record if head is not None and not inner else None
        told = list(rows)
        if rebase and head is not None and rows[0].seq > head.end:
            older, complete = self._talk.past.originals(head.end, self.rebase_tokens)
            told = [*older, *told]
            previous = None if complete else head.record
        size = sum(row.tokens for row in told)
        frame = projection.frame(
            (told[0].seq, told[-1].seq),
            self._talk.laid.summaries + 1,
            self._policy.summary.title,
            self._redact(focus),
        )
        room = self.summary_budget(size)
        opens = self._policy.summary.form == "selection" and not inner
        aim = self._aim(told, previous, room) if opens else Aim()
        return Fold(
            # What the person left out by hand is not brought back by a summary.
            messages=tuple((row.seq, row.message) for row in told if row.seq not in self._talk.laid.dropped),
            previous=previous,
            ledger=self._talk.facts(),
            budget_tokens=room,
            count=self._count,
            redact=self._redact,
            focus=focus,
            depth=0 if rebase or previous is None else previous.depth + 1,
            form=self._policy.summary.form,
            frame_tokens=self._count(f"{frame}\n\n{aim.text}" if aim.text else frame) + _AROUND_TOKENS,
            dropped=self._talk.laid.dropped,
            aim=aim,
            recent=tuple((row.seq, row.message) for row in self._talk.rows[self._talk.past.after(rows[-1].seq) :]),
        )

    def _aim(self, told: Sequence[Row], previous: SummaryRecord | None, room: int) -> Aim:
        """The first request: where it stands is known from the earlier record, its words are read from the log."""
        from mycode.context.summarizers import Aim
        from mycode.context.summarizers.assembly import shortened

        if previous is None:
            row = next((row for row in told if isinstance(row.message, UserMessage) and row.message.text.strip()), None)
        else:
            row = self._talk.past.original(projection.aim_of(previous)[0])
        if row is None or row.seq in self._talk.laid.dropped:
            return Aim()
        line = projection.aim_line(row, self._redact)
        size = len(shortened(line, room // _AIM_PART, self._count).removesuffix(" …"))
        shown = "" if row.seq == self._carried() else projection.aim_text(row, size, self._redact)
        return Aim(row.seq, size, shown)

    def _carried(self) -> int:
        """Seq of the newest prompt (0: none): it is carried on word for word, whatever is folded."""
        newest = cutting.newest_user(self._talk.rows)
        return self._talk.rows[newest].seq if newest is not None else 0

    def record(
        self, told: folding.Told, fold: Fold, rows: Sequence[Row], trigger: Trigger, *, rebase: bool, inner: bool
    ) -> SummaryRecord:
        """The record of a telling, without its sizes."""
        from mycode.context import records

        assert told.draft is not None
        talk = self._talk
        head = talk.laid.head
        parent = head.record if head is not None and not inner else None
        said = self._carried()
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

    def ranged(self, wish: Wish) -> list[Row]:
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

    @property
    def rebase_tokens(self) -> int:
        """Tokens of originals that a rebase reads at most."""
        return min(_REBASE_TOKENS, _REBASE_WINDOWS * self._ledger.window)
