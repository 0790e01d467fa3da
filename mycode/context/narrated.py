"""A long transcript made short with the help of a model: its account of what happened, beside what rules keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from mycode.context.compress import TITLE, compress
from mycode.context.facts import FactLedger
from mycode.context.folding import checked, grounded
from mycode.context.policy import Llm as LlmSettings
from mycode.context.summarizers import Fold
from mycode.context.summarizers.assembly import bounded, rendered
from mycode.context.summarizers.llm import Llm
from mycode.context.transcripts import read_items, tokens
from mycode.core.models import Model
from mycode.core.redact import redact

NARRATIVE = "[Account of the earlier conversation, by a model]\n"
_LARGEST, _SHARE, _SECONDS = 1_500, 0.3, 120.0


async def compress_with_model(
    messages: list[dict[str, Any]],
    budget_tokens: int,
    *,
    count: Callable[[str], int],
    models: Sequence[Model],
    mode: Literal["llm", "hybrid"],
) -> list[dict[str, Any]]:
    """As `compress`, with an account by a model after the first request; `llm` leaves out what rules would choose.

    One request to the first model that answers, secrets masked, within two minutes; what it names without a source is
    left out. A list that fits is given back as it is. Raises a ModelError when no account could be had, InputError as
    `compress` does.
    """
    items = read_items(messages)
    if sum(tokens(item.raw, count) for item in items) <= budget_tokens:
        return list(messages)
    room = min(_LARGEST, int(budget_tokens * _SHARE))
    said = tuple((item.index + 1, message) for item in items for message in item.messages)
    fold = Fold(said, None, _ledger(said), room, count, redact)
    draft = await Llm(models, LlmSettings(max_tokens=room + 1_000), deadline=_SECONDS).summarize(fold)
    # In `hybrid` rules tell the rest beside it; alone the account must hold what the model did not tell, too.
    told = checked(draft, fold)[0] if mode == "llm" else bounded(grounded(draft, fold)[0], room, count)
    note = {"role": "user", "content": NARRATIVE + rendered(told)}
    rest = compress(messages, budget_tokens - tokens(note, count), count=count)
    if mode == "llm":
        rest = [message for message in rest if not str(message.get("content", "")).startswith(TITLE)]
    at = next((place + 1 for place, message in enumerate(rest) if message["role"] == "user"), len(rest))
    return [*rest[:at], note, *rest[at:]]


def _ledger(said: Sequence[tuple[int, Any]]) -> FactLedger:
    calls: dict[str, Any] = {}
    ledger = FactLedger()
    for seq, message in said:
        calls |= {call.id: call for call in getattr(message, "tool_calls", ())}
        ledger = ledger.add(seq, message, calls.get(getattr(message, "call_id", "")))
    return ledger
