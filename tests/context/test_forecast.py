import pytest

from mycode.context.forecast import Forecast, forecast
from mycode.context.projection import Row
from mycode.core.messages import AssistantMessage, UserMessage
from mycode.core.models import Price

ROWS = [
    row for n in range(10) for row in (Row(2 * n, UserMessage("q"), 100), Row(2 * n + 1, AssistantMessage("a"), 300))
]


def test_turns_left_follow_what_a_turn_adds():
    assert forecast(ROWS, tokens=2_000, trigger_tokens=6_000, after_fold=500, price=None, cached=False) == Forecast(
        10, None, None, None
    )


def test_nothing_is_guessed_before_anything_was_said():
    empty = forecast([], tokens=0, trigger_tokens=6_000, after_fold=0, price=None, cached=False)
    assert empty.turns_left is None


def test_before_anything_was_said_an_answer_is_thought_to_be_half_as_long_as_its_prompt():
    price = Price(input=1e-6, output=5e-6)
    first = forecast([], tokens=400, trigger_tokens=6_000, after_fold=0, price=price, cached=False)
    assert first.next_request_usd == pytest.approx(400 * 1e-6 + 200 * 5e-6)
    later = forecast(ROWS, tokens=400, trigger_tokens=6_000, after_fold=0, price=price, cached=False)
    assert later.next_request_usd == pytest.approx(400 * 1e-6 + 390 * 5e-6)


def test_a_cached_request_is_cheaper_and_a_full_context_dearer_than_a_folded_one():
    price = Price(input=1e-6, output=5e-6, cache_read=1e-7, cache_write=1.25e-6)
    warm = forecast(ROWS, tokens=100_000, trigger_tokens=160_000, after_fold=10_000, price=price, cached=True)
    cold = forecast(ROWS, tokens=100_000, trigger_tokens=160_000, after_fold=10_000, price=price, cached=False)
    assert warm.next_request_usd is not None
    assert cold.next_request_usd is not None
    assert warm.next_request_usd < cold.next_request_usd
    assert warm.summarize_now_usd is not None
    assert warm.summarize_later_usd is not None
    assert warm.summarize_now_usd < warm.summarize_later_usd
