"""What requests cost, in tokens and in money, as the provider counted it."""

from __future__ import annotations

from msgspec import Struct


class Usage(Struct, frozen=True):
    """Tokens of one or several requests as the provider counted them; `input_tokens` includes cached and written ones.

    `cost_usd` is None when a price is unknown, and a sum with an unknown part is unknown.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None

    def __add__(self, other: Usage) -> Usage:
        cost = None if self.cost_usd is None or other.cost_usd is None else self.cost_usd + other.cost_usd
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            cost,
        )


NO_USAGE = Usage(cost_usd=0.0)
