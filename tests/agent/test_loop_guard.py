"""The model is told when it repeats itself, and the person is asked when it goes on."""

from hypothesis import given
from hypothesis import strategies as st

from mycode.agent.loop_guard import LoopGuard
from mycode.core.messages import ToolCall


def _guard(*calls: tuple[str, str]) -> LoopGuard:
    guard = LoopGuard()
    for number, (name, arguments) in enumerate(calls):
        guard = guard.add(ToolCall(f"c{number}", name, arguments))
    return guard


def test_the_third_same_call_is_told_to_the_model_and_the_fifth_asks_the_person() -> None:
    same = ("grep", '{"pattern": "x"}')
    seen = [(_guard(*[same] * times).advice != "", _guard(*[same] * times).must_ask) for times in range(1, 6)]
    assert seen == [(False, False), (False, False), (True, False), (True, False), (True, True)]


def test_the_order_and_spacing_of_arguments_do_not_hide_a_repetition() -> None:
    guard = _guard(("t", '{"a": 1, "b": 2}'), ("t", '{"b":2,"a":1}'), ("t", '{ "a":1, "b":2 }'))
    assert guard.repeats == 3


def test_a_cycle_of_two_calls_counts_by_rounds() -> None:
    one, two = ("read_file", '{"path": "a"}'), ("read_file", '{"path": "b"}')
    assert _guard(*[one, two] * 3).repeats == 3
    told = [_guard(*[one, two, one, two][:count]).advice != "" for count in range(1, 5)]
    assert told == [False, False, False, True]


def test_waiting_for_a_command_in_the_background_is_no_loop_before_it_has_taken_very_long() -> None:
    look, wait = ("shell_job", '{"id": "b1"}'), ("execute_bash", '{"command": "sleep 5"}')
    for round_ in ([look], [wait, look]):
        guards = [_guard(*round_ * times) for times in (1, 5, 9, 40)]
        alarms = [(guard.advice != "", guard.must_ask) for guard in guards]
        assert alarms[:3] == [(False, False)] * 3
        assert alarms[-1] == (True, True)


def test_arguments_that_are_not_json_are_compared_as_text() -> None:
    assert _guard(("t", "{oops"), ("t", "{oops")).repeats == 2


@given(st.lists(st.integers(), unique=True, max_size=30))
def test_calls_that_all_differ_never_alarm(numbers: list[int]) -> None:
    guard = _guard(*[("t", f'{{"n": {number}}}') for number in numbers])
    assert (guard.repeats <= 1, guard.advice, guard.must_ask) == (True, "", False)
