"""A turn stops before it passes a limit, never after."""

import pytest

from mycode.agent.limits import Limits, check_price, stop
from mycode.core.errors import ConfigError
from mycode.core.models import ModelInfo, Price
from mycode.core.usage import NO_USAGE, Usage

PRICED = ModelInfo("p/m", "p", window=1000, output_limit=100, price=Price(input=0.001, output=0.002, cache_write=0.002))
UNPRICED = ModelInfo("p/m", "p", window=1000, output_limit=100)


def test_nothing_stops_a_turn_without_limits() -> None:
    assert stop(Limits(), steps=10_000, spent=Usage(cost_usd=None), next_tokens=10**9, info=UNPRICED) is None


def test_the_step_limit_is_reached_at_its_very_number() -> None:
    limits = Limits(max_steps=3)
    reached = [stop(limits, steps=steps, spent=NO_USAGE, next_tokens=0, info=PRICED) for steps in (2, 3)]
    assert reached == [None, "turn_limit"]


def test_a_request_whose_dearest_input_would_pass_the_budget_is_not_sent() -> None:
    limits = Limits(max_budget_usd=1.0)
    spent = Usage(cost_usd=0.8)
    verdicts = [stop(limits, steps=0, spent=spent, next_tokens=tokens, info=PRICED) for tokens in (100, 101)]
    assert verdicts == [None, "budget"]


def test_a_cost_that_became_unknown_stops_a_turn_with_a_budget() -> None:
    assert stop(Limits(max_budget_usd=1.0), steps=1, spent=Usage(), next_tokens=0, info=PRICED) == "budget"


def test_a_budget_without_a_price_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(ConfigError, match="price of p/m is unknown"):
        check_price(Limits(max_budget_usd=1.0), UNPRICED)
