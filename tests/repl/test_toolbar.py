"""The status line: honest about what is not known, and never wider than the terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycode.core.usage import Usage
from mycode.core.visible import display_width
from mycode.repl.toolbar import Facts, Work, facts, status
from tests.support.scripted_session import ScriptedServices, ScriptedSession

KNOWN = Facts(model="openai/gpt-5-mini", context="context 34 %", cost="$0.012", mode="default")


def line(work: Work, width: int = 120) -> str:
    return "".join(text for _, text in status(work, KNOWN, width))


class Unpriced(ScriptedSession):
    def cost(self) -> Usage:
        return Usage(10, 10, cost_usd=None)


def test_what_is_not_known_is_said_to_be_so() -> None:
    assert facts(Unpriced(), ScriptedServices()) == Facts("test/model", "context ≈34 %", "cost unknown", "default")


def test_at_rest_it_shows_mode_context_cost_and_model() -> None:
    assert line(Work()) == "default · context 34 % · $0.012 · openai/gpt-5-mini"


def test_at_work_it_shows_what_for_how_long_and_what_waits() -> None:
    assert line(Work("Running pytest", 65.2, 2)) == (
        "⠹ Running pytest 1 min 05 s · Esc interrupts · queued 2 · default · context 34 % · $0.012 · openai/gpt-5-mini"
    )
    assert line(Work(hint="Ctrl-C again leaves")).startswith("Ctrl-C again leaves · default")


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (60, "⠋ Thinking 3 s · Esc interrupts · default · context 34 %"),
        (44, "⠋ Thinking 3 s · Esc interrupts · default"),
        (34, "⠋ Thinking 3 s · Esc interrupts"),
        (15, "⠋ Thinking 3 s"),
        (5, "⠋ Th…"),
        (1, "…"),
    ],
)
def test_what_matters_less_is_left_out_first(width: int, shown: str) -> None:
    assert line(Work("Thinking", 3.0), width) == shown


@given(st.text(max_size=40), st.floats(0, 1e6), st.integers(0, 99), st.integers(1, 300))
def test_it_always_fits(label: str, seconds: float, queued: int, width: int) -> None:
    assert display_width(line(Work(label, seconds, queued), width)) <= width
