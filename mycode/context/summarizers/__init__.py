"""How a fold is told: by rules, by a model, or by both."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, Protocol

from msgspec import Struct

from mycode.context.facts import FactLedger
from mycode.core.messages import Message
from mycode.core.summaries import Strategy, SummaryContext, SummaryRecord
from mycode.core.usage import Usage


class Aim(Struct, frozen=True):
    """The first request of a conversation: its seq (0: none), how many characters of it are shown, and how.

    `text` is empty where the message itself stays in the view.
    """

    seq: int = 0
    size: int = 0
    text: str = ""


class Fold(Struct, frozen=True):
    """What is to be told: messages with their seqs, the record it continues, and how long the telling may be.

    `ledger` holds the facts of the whole conversation up to here; `recent` is what stays word for word after the
    fold; `focus` is the person's wish, or empty; `form` is what rules write. `count` counts tokens, `redact` masks
    secrets. Of `budget_tokens`, `frame_tokens` go to what stands above every summary. What was said in the
    `dropped` messages (by seq) is not to be told. `aim` is the first request.
    """

    messages: tuple[tuple[int, Message], ...]
    previous: SummaryRecord | None
    ledger: FactLedger
    budget_tokens: int
    count: Callable[[str], int]
    redact: Callable[[str], str]
    focus: str = ""
    depth: int = 0
    recent: tuple[tuple[int, Message], ...] = ()
    form: Literal["selection", "lines"] = "selection"
    frame_tokens: int = 0
    dropped: frozenset[int] = frozenset()
    aim: Aim = Aim()

    @property
    def room(self) -> int:
        """Tokens for the telling itself."""
        return max(0, self.budget_tokens - self.frame_tokens)

    def redact_each(self, texts: Iterable[str]) -> list[str]:
        """The texts, masked."""
        return masked_each(list(texts), self.redact)


def masked_each(texts: list[str], redact: Callable[[str], str]) -> list[str]:
    """The texts masked in one go, since each call of `redact` has its price."""
    joined = _BETWEEN.join(texts)
    masked = redact(joined)
    if masked == joined:
        return texts
    parts = masked.split(_BETWEEN)
    # A secret that seemed to reach over a border took it away.
    return parts if len(parts) == len(texts) else [redact(text) for text in texts]


_BETWEEN = "\n\x1f\n"


class Draft(Struct, frozen=True):
    """A telling, before it is checked: who wrote it, its text and its parts.

    `digest` is the selection that the next fold reads back; `narrative` is prose. `warning` is for the person.
    """

    strategy: Strategy
    narrative: str = ""
    key_points: tuple[str, ...] = ()
    context: SummaryContext = SummaryContext()
    digest: str = ""
    model: str = ""
    usage: Usage | None = None
    warning: str = ""


class Summarizer(Protocol):
    """A way to tell a fold. Raises a `ModelError` when no telling could be had."""

    async def summarize(self, fold: Fold) -> Draft: ...
