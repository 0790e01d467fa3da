import msgspec
import pytest

from mycode.context.policy import (
    Auto,
    Keep,
    Masking,
    Measure,
    Policy,
    Precompute,
    Window,
    due,
    fold_target,
    reserve,
    summary_budget,
    window,
)
from mycode.core.errors import ConfigError
from mycode.core.summaries import Trigger
from tests.support.context_doubles import model_info

DEFAULTS = Policy()


def measure(tokens: int, **parts: object) -> Measure:
    base: dict[str, object] = {"tokens": tokens, "window": 1000, "budget": 1000, "messages": 20}
    return Measure(**(base | parts))  # type: ignore[arg-type]  # a few of its fields


def test_the_ratio_fires_exactly_at_the_trigger():
    assert due(DEFAULTS, measure(799)) is None
    assert due(DEFAULTS, measure(800)) == Trigger("ratio", 0.8, 800)


def test_the_message_count_fires_only_above_the_threshold_and_half_a_window():
    assert due(DEFAULTS, measure(500, messages=50)) is None
    assert due(DEFAULTS, measure(499, messages=51)) is None
    assert due(DEFAULTS, measure(500, messages=51)) == Trigger("messages", 0.5, 500)


def test_an_absolute_cap_holds_in_a_large_window():
    policy = Policy(auto=Auto(max_tokens=300))
    assert due(policy, measure(300)) == Trigger("tokens", 0.3, 300)


def test_few_messages_are_left_alone_short_of_an_emergency():
    assert due(DEFAULTS, measure(900, messages=11)) is None
    assert due(DEFAULTS, measure(1000, messages=2)) == Trigger("emergency", 1.0, 1000, emergency=True)


def test_cooldown_holds_a_trigger_back_but_not_an_emergency():
    after = {"folds": 1, "since_fold": 3, "after_last_fold": 0.3}
    assert due(DEFAULTS, measure(900, **after)) is None
    assert due(DEFAULTS, measure(900, **(after | {"since_fold": 4}))) is not None
    assert due(DEFAULTS, measure(1000, **after)) == Trigger("emergency", 1.0, 1000, emergency=True)


def test_hysteresis_holds_a_trigger_back_while_usage_never_fell_below_reset():
    stuck = {"folds": 1, "since_fold": 6, "after_last_fold": 0.75}
    assert due(DEFAULTS, measure(850, **stuck)) is None
    assert due(DEFAULTS, measure(850, **(stuck | {"after_last_fold": 0.69}))) is not None
    assert due(DEFAULTS, measure(850, **(stuck | {"since_fold": 12}))) is not None


def test_what_no_longer_leaves_room_for_an_answer_is_an_emergency():
    assert due(DEFAULTS, measure(701, budget=700)) == Trigger("emergency", 0.701, 701, emergency=True)


def test_halt_at_the_depth_limit_stops_triggers():
    policy = Policy(auto=Auto(on_depth_limit="halt", max_depth=3))
    assert due(policy, measure(900, depth=2, folds=1, since_fold=50)) is not None
    assert due(policy, measure(900, depth=3, folds=1, since_fold=50)) is None


def test_switched_off_only_an_emergency_is_named():
    policy = Policy(auto=Auto(enabled=False))
    assert due(policy, measure(990)) is None
    assert due(policy, measure(1000)) == Trigger("emergency", 1.0, 1000, emergency=True)


def test_a_periodic_refresh_may_be_asked_for():
    policy = Policy(auto=Auto(force_refresh_after_messages=30))
    assert due(policy, measure(10, messages=29, since_fold=29)) is None
    assert due(policy, measure(10, messages=30, since_fold=30)) == Trigger("messages", 0.01, 10)


def test_the_reason_of_the_question_names_the_trigger():
    assert due(DEFAULTS, measure(850), "resume") == Trigger("resume", 0.85, 850)
    assert due(DEFAULTS, measure(100), "resume") is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: Auto(trigger_ratio=0.7, reset_ratio=0.7),
        lambda: Auto(trigger_ratio=1.5),
        lambda: Auto(max_depth=0),
        lambda: Auto(cooldown_messages=-1),
        lambda: Auto(emergency_ratio=1.2),
        lambda: Keep(recent_messages=1),
        lambda: Keep(recent_share=2.0),
        lambda: Window(max_context_tokens=1000, target_context_tokens=1000),
        lambda: Window(safety_margin=0.5),
        lambda: Masking(min_tokens=0),
        lambda: Policy(precompute=Precompute(ratio=0.9)),
    ],
)
def test_a_wrong_setting_is_refused_with_a_sentence_that_names_it(make):
    with pytest.raises(ConfigError, match=r"^The setting context\.\w+\.\w+ = .+ is wrong: it .+\.$"):
        make()


def test_settings_come_from_plain_tables():
    policy = msgspec.convert(
        {"auto": {"trigger_ratio": 0.6, "reset_ratio": 0.4}, "keep": {"recent_messages": 6}}, Policy
    )
    assert (policy.auto.trigger_ratio, policy.keep.recent_messages, policy.keep.floor) == (0.6, 6, 2)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"auto": {"triger_ratio": 0.6}}, Policy)


def test_a_declared_window_beats_the_catalog():
    assert window(Policy(window=Window(max_context_tokens=64_000)), model_info(200_000)) == 64_000
    assert window(DEFAULTS, model_info(200_000)) == 200_000


def test_the_reserve_is_modest_in_small_windows():
    assert reserve(DEFAULTS, model_info(200_000, output_limit=64_000)) == 20_000
    assert reserve(DEFAULTS, model_info(2_000, output_limit=64_000)) == 333


@pytest.mark.parametrize("window", [2_000, 8_000, 32_000, 128_000, 200_000, 1_000_000])
def test_the_ratio_is_reached_before_the_room_for_the_answer_is_touched(window: int):
    info = model_info(window, output_limit=64_000)
    assert window - reserve(DEFAULTS, info) > DEFAULTS.auto.trigger_ratio * window


def test_a_fold_aims_below_reset_or_below_the_declared_target():
    assert fold_target(DEFAULTS, model_info(100_000, output_limit=10_000)) == 63_000
    declared = Policy(window=Window(max_context_tokens=180_000, target_context_tokens=150_000))
    assert fold_target(declared, model_info(200_000)) == 150_000


def test_the_smallest_limit_bounds_a_summary():
    assert summary_budget(DEFAULTS, 180_000, 100_000) == 8_000
    assert summary_budget(DEFAULTS, 20_000, 100_000) == 2_000
    assert summary_budget(DEFAULTS, 180_000, 1_000) == 300
    assert summary_budget(DEFAULTS, 180_000, 1_000, previous=500) == 800
