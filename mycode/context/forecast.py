"""How long the room will last, and what the next requests cost."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from mycode.context.budget import estimate_response
from mycode.context.projection import Row
from mycode.core.messages import AssistantMessage, UserMessage
from mycode.core.models import Price

_HORIZON = 10
"""Requests over which summarizing now is compared with waiting."""

_LONGEST = 1_000
"""An answer is not expected to be longer than this, whatever a step has added."""


class Forecast(Struct, frozen=True):
    """Guesses, in turns and US dollars; None where the model's price is unknown or nothing was said yet.

    `summarize_now_usd` and `summarize_later_usd` are the input of the next ten requests, with a summary now and
    without one.
    """

    turns_left: int | None
    next_request_usd: float | None
    summarize_now_usd: float | None
    summarize_later_usd: float | None


def forecast(
    rows: Sequence[Row], *, tokens: int, trigger_tokens: int, after_fold: int, price: Price | None, cached: bool
) -> Forecast:
    """From what the newest turns added; before the first, by a rule of thumb (R46).

    `cached`: the provider has seen the present view lately.
    """
    growth = turn_growth(rows)
    left = max(0, trigger_tokens - tokens) // growth if growth else None
    if price is None:
        return Forecast(left, None, None, None)
    step = _step_growth(rows)
    read = price.cache_read if price.cache_read is not None else price.input
    write = price.cache_write if price.cache_write is not None else price.input
    output = price.output * min(_LONGEST, step or estimate_response(tokens))
    first = tokens * (read if cached else price.input) + output
    later = sum((tokens + step * i) * read for i in range(_HORIZON))
    now = after_fold * write + sum((after_fold + step * i) * read for i in range(1, _HORIZON))
    return Forecast(left, round(first, 6), round(now, 6), round(later, 6))


def turn_growth(rows: Sequence[Row], turns: int = 5) -> int:
    """Tokens that one of the newest turns added on average; 0 if there was none."""
    total = seen = 0
    for index in range(len(rows) - 1, -1, -1):
        total += rows[index].tokens
        if isinstance(rows[index].message, UserMessage):
            seen += 1
            if seen == turns:
                break
    return total // seen if seen else 0


def _step_growth(rows: Sequence[Row], steps: int = 10) -> int:
    total = seen = 0
    for index in range(len(rows) - 1, -1, -1):
        total += rows[index].tokens
        if isinstance(rows[index].message, AssistantMessage):
            seen += 1
            if seen == steps:
                break
    return total // seen if seen else 0
