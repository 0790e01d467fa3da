"""When a turn must stop before the model thinks it is done (pure)."""

from typing import Literal

from msgspec import Struct

from mycode.core.errors import ConfigError
from mycode.core.models import ModelInfo
from mycode.core.usage import Usage


class Limits(Struct, frozen=True):
    """`max_steps` is model calls in one turn; `max_budget_usd` is US dollars over the whole run, summaries included."""

    max_steps: int | None = None
    max_budget_usd: float | None = None


def check_price(limits: Limits, info: ModelInfo) -> None:
    """Raises ConfigError when a budget is set that cannot hold because the model's price is unknown."""
    if limits.max_budget_usd is not None and info.price is None:
        message = (
            f"The price of {info.name} is unknown, so a budget of ${limits.max_budget_usd:.2f} cannot be kept. "
            "Set model.input_price and model.output_price (US dollars per million tokens), "
            "or leave --max-budget-usd out."
        )
        raise ConfigError(message)


def stop(
    limits: Limits, *, steps: int, spent: Usage, next_tokens: int, info: ModelInfo
) -> Literal["turn_limit", "budget"] | None:
    """Why the next request may not be sent, if so; a request counts with the worst its input can cost."""
    if limits.max_steps is not None and steps >= limits.max_steps:
        return "turn_limit"
    if limits.max_budget_usd is not None and info.price is not None:
        dearest = max(info.price.input, info.price.cache_write or 0.0)
        if spent.cost_usd is None or spent.cost_usd + next_tokens * dearest > limits.max_budget_usd:
            return "budget"
    return None
