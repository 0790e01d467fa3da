"""Each panel, word for word, at three widths without colour and as plain labelled lines (`pinned/NAME-WIDTH.txt`)."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import RenderableType

from mycode.core.summaries import ContextUsage, SummaryRecord
from mycode.core.tools import Question
from mycode.render.panels.approval import approval_panel, question_panel
from mycode.render.panels.audit import audit_panel
from mycode.render.panels.context import Forecast, context_panel, context_short
from mycode.render.panels.history import history_panel, summaries_panel
from mycode.render.panels.summary import summary_panel
from mycode.render.screen import Canvas
from tests.support.panel_values import (
    AT,
    AUDIT,
    COMMAND,
    EDIT,
    HOSTILE,
    ITEMS,
    MESSAGES,
    RECORD,
    SUMMARIES,
    USAGE,
)

PINNED = Path(__file__).parent / "pinned"
Panel = Callable[[int, bool], RenderableType]

PANELS: dict[str, Panel] = {
    "context": lambda width, flat: context_panel(
        USAGE, width=width, items=ITEMS, forecast=Forecast(11, 0.0154, 0.061, 0.124), plain_text=flat
    ),
    "summary": lambda _, flat: summary_panel(
        RECORD, handle="s1", messages_before=78, messages_after=23, plain_text=flat
    ),
    "history": lambda width, flat: history_panel(MESSAGES, SUMMARIES, total=59, width=width, plain_text=flat),
    "history-full": lambda width, flat: history_panel(
        MESSAGES, SUMMARIES, total=59, width=width, full=True, page=(2, 2), plain_text=flat
    ),
    "audit": lambda width, flat: audit_panel(AUDIT, width=width, plain_text=flat),
    "summaries": lambda _, flat: summaries_panel(SUMMARIES, plain_text=flat),
    "approval-command": lambda _, flat: approval_panel(COMMAND, plain_text=flat),
    "approval-edit": lambda _, flat: approval_panel(EDIT, plain_text=flat),
}


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("name", PANELS)
def test_a_panel_reads_as_pinned_at_this_width_without_colour(name: str, width: int) -> None:
    shown = Canvas(width, color=False).text(PANELS[name](width, False))

    assert shown == (PINNED / f"{name}-{width}.txt").read_text()


@pytest.mark.parametrize("name", PANELS)
def test_a_panel_has_a_plain_form_without_boxes(name: str) -> None:
    shown = Canvas(10_000, plain=True).text(PANELS[name](80, True))

    assert shown == (PINNED / f"{name}-plain.txt").read_text()
    assert not set(shown) & set("╭╮╰╯│─━")


@pytest.mark.parametrize("width", [1, 7, 39, 300])
@pytest.mark.parametrize("name", PANELS)
def test_a_panel_is_never_wider_than_its_terminal(name: str, width: int) -> None:
    canvas = Canvas(width, color=False)

    lines = canvas.text(PANELS[name](width, False)).splitlines()

    assert max(len(line) for line in lines) <= max(width, 10)


@pytest.mark.parametrize("name", PANELS)
def test_nothing_foreign_reaches_the_terminal_as_a_control_sequence(name: str) -> None:
    assert "\x1b[2K" in HOSTILE

    colored = Canvas(80).text(PANELS[name](80, False))

    assert "\x1b[2K" not in colored
    assert "\x1b[1A" not in colored
    assert "\u202e" not in colored


def test_a_panel_says_the_same_with_and_without_colour() -> None:
    import re

    colored = Canvas(80).text(PANELS["context"](80, False))

    assert "\x1b[" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == Canvas(80, color=False).text(PANELS["context"](80, False))


def test_an_empty_context_has_a_panel_too() -> None:
    usage = ContextUsage(model="m", window=0, reserve=0, tokens=0, window_known=False)

    shown = Canvas(60, plain=True).text(context_panel(usage, width=60, plain_text=True))

    assert shown == "Context\nm: 0 of 0 (a guess) tokens, 0 %; 0 kept for the answer\nIn view: 0 messages\n"


def test_what_does_not_fit_is_told() -> None:
    full = replace(USAGE, cut=250_000)
    text = Canvas(80, plain=True).text(context_panel(full, width=80, plain_text=True))
    assert "\n250k tokens more do not fit and are left out of the next request.\n" in text


def test_an_estimate_is_marked_as_one() -> None:
    exact = ContextUsage(model="m", window=100, reserve=0, tokens=34)
    guess = ContextUsage(model="m", window=100, reserve=0, tokens=34, exact=False)

    assert (context_short(exact), context_short(guess)) == ("34 %", "≈34 %")


def test_a_summary_that_was_taken_back_says_so() -> None:
    two = (*SUMMARIES, replace(SUMMARIES[0], seq=70))
    undone = {SUMMARIES[0].seq}
    listed = Canvas(100, plain=True).text(
        history_panel(MESSAGES, two, total=59, width=100, undone=undone, plain_text=True)
    )
    shown = Canvas(100, plain=True).text(summaries_panel(two, undone=undone, plain_text=True))

    heads = [line for line in (listed + shown).splitlines() if line.startswith(("[Summary", "s1:", "s2:"))]
    assert [head.endswith(("(taken back):", "(taken back)")) for head in heads] == [True, False, True, False]


def test_a_preview_says_that_nothing_has_changed() -> None:
    record = SummaryRecord("r", AT, (1, 3), 1, "rules", "manual", "text")

    shown = Canvas(80, plain=True).text(summary_panel(record, preview=True, plain_text=True))

    assert shown.startswith("Preview: nothing is changed yet\nStands for: m1-m3\nTokens saved: ~0 (0 → 0)\n")


def test_an_audit_of_some_rows_leaves_out_what_the_others_would_tell() -> None:
    shown = Canvas(80, plain=True).text(audit_panel(AUDIT[7:8], width=80, plain_text=True))

    assert shown == "\n    63 2025-11-21 04:40:22 left out m56, m58, by hand, sha256 3f2a9c0d51e7\n"


def test_a_question_numbers_its_options_and_reveals_what_hides() -> None:
    shown = Canvas(80, color=False).text(question_panel(Question("Which\x1b[8m?", ("red", "green"))))

    assert shown == "\n? Which␛[8m?\n  1. red\n  2. green\n"


def test_where_lines_have_no_end_long_messages_are_still_shown_by_their_beginning() -> None:
    usage = ContextUsage(model="m", window=100, reserve=0, tokens=34)
    said = [replace(entry, body=replace(entry.body, text="word " * 2000)) for entry in MESSAGES[:1]]
    item = Canvas(10_000, plain=True).text(context_panel(usage, width=10_000, items=said, plain_text=True))
    line = Canvas(10_000, plain=True).text(history_panel(said, total=1, width=10_000, plain_text=True))

    assert max(len(row) for row in (item + line).splitlines()) <= 200
