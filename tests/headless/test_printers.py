"""A turn told to a program: every event that matters has its line, and the answer alone is the answer."""

import io
import json
from collections.abc import AsyncGenerator
from datetime import UTC, datetime

from mycode.core.entries import Entry
from mycode.core.errors import SessionError
from mycode.core.events import (
    ContextMasked,
    Event,
    MessageAdded,
    Retrying,
    SummaryFinished,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    Warned,
)
from mycode.core.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from mycode.core.summaries import MaskEpoch, SummaryRecord
from mycode.core.usage import Usage
from mycode.headless.envelope import Opening, Outcome
from mycode.headless.printers import Format, make_printer, print_turn

OPENING = Opening("s1", "/work", "p/m", ("read_file",), "default")
CALL = ToolCall("c1", "read_file", '{"path": "a"}')
RECORD = SummaryRecord("r1", 1.0, (1, 9), 0, "rules", "ratio", "text", tokens_before=900, tokens_after=300)


def _entry(seq: int, body: object) -> Entry:
    return Entry(seq, f"e{seq}", 1.0, body)  # type: ignore[arg-type]  # any body will do


EVENTS: list[Event] = [
    TurnStarted(1),
    MessageAdded(_entry(1, UserMessage("go"))),
    Retrying(1, 5, 2.0, "busy.", 503),
    MessageAdded(_entry(2, AssistantMessage("I look.", (CALL,), usage=Usage(10, 5)))),
    ToolStarted(CALL, "read_file a"),
    ToolFinished(CALL, ToolResult("c1", "refused: outside", is_error=True), 0.1, denied=True),
    MessageAdded(_entry(3, ToolResult("c1", "refused: outside", is_error=True))),
    ContextMasked(_entry(4, MaskEpoch({3: "x"})), 800, 600),
    SummaryFinished(_entry(5, RECORD), 0.2),
    Warned("mind the gap"),
    MessageAdded(_entry(6, AssistantMessage("All done."))),
    TurnEnded("denied", Usage(20, 9, cost_usd=None), 2, 1.5, "something was not permitted", 57),
]


async def _events(events: list[Event], error: Exception | None = None) -> AsyncGenerator[Event]:
    for event in events:
        yield event
    if error:
        raise error


async def _told(
    form: Format, events: list[Event] = EVENTS, error: Exception | None = None, *, partial: bool = False
) -> tuple[Outcome, str, str]:
    out, err = io.StringIO(), io.StringIO()
    printer = make_printer(
        form, out=out, err=err, opening=OPENING, partial=partial, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC)
    )
    outcome = await print_turn(_events(events, error), printer)
    return outcome, out.getvalue(), err.getvalue()


async def test_text_is_the_last_answer_and_the_rest_goes_elsewhere() -> None:
    outcome, out, err = await _told("text")
    assert (outcome, out) == (Outcome("All done.", 57, "something was not permitted"), "All done.\n")
    assert err.splitlines() == [
        "· busy. Trying again in 2 s (1 of 5)",
        "· read_file a",
        "  read_file: refused: outside",
        "· older tool results shortened: 800 -> 600 tokens",
        "  summarized: 900 -> 300 tokens",
        "! mind the gap",
        "mycode: something was not permitted",
    ]


async def test_json_is_one_object_that_tells_the_whole_ending() -> None:
    _, out, _ = await _told("json")
    assert json.loads(out) == {
        "type": "result",
        "subtype": "error_permission_denied",
        "is_error": True,
        "exit_code": 57,
        "num_turns": 2,
        "duration_ms": 1500,
        "result": "All done.",
        "error": "something was not permitted",
        "stop_reason": "denied",
        "total_cost_usd": None,
        "usage": {
            "input_tokens": 20,
            "output_tokens": 9,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 0,
            "reasoning_tokens": 0,
        },
        "permission_denials": [
            {
                "tool_name": "read_file",
                "tool_use_id": "c1",
                "tool_input": {"path": "a"},
                "message": "refused: outside",
            }
        ],
        "session_id": "s1",
        "model": "p/m",
    }


async def test_stream_json_has_a_line_for_everything_a_program_may_want() -> None:
    _, out, err = await _told("stream-json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [(line["type"], line.get("subtype")) for line in lines] == [
        ("system", "init"),
        ("user", None),
        ("system", "api_retry"),
        ("assistant", None),
        ("system", "permission_denied"),
        ("user", None),
        ("system", "context_masked"),
        ("system", "compact_boundary"),
        ("system", "informational"),
        ("assistant", None),
        ("result", "error_permission_denied"),
    ]
    assert {line["timestamp"] for line in lines} == {"2026-01-02T00:00:00.000Z"}
    assert lines[2] | {"timestamp": "", "session_id": ""} == {
        "type": "system",
        "subtype": "api_retry",
        "attempt": 1,
        "max_retries": 5,
        "retry_delay_ms": 2000,
        "error_status": 503,
        "error": "busy.",
        "timestamp": "",
        "session_id": "",
    }
    assert lines[7]["compact_metadata"] == {
        "trigger": "auto",
        "reason": "ratio",
        "depth": 0,
        "pre_tokens": 900,
        "post_tokens": 300,
    }
    assert err == ""


async def test_an_error_that_escapes_the_turn_is_an_ending_too() -> None:
    outcome, out, _ = await _told("json", EVENTS[:2], SessionError("the disk is full"))
    assert (outcome.exit_code, json.loads(out)["error"]) == (1, "the disk is full")
    assert json.loads(out)["subtype"] == "error_during_execution"


async def test_control_sequences_are_made_harmless() -> None:
    events: list[Event] = [
        MessageAdded(_entry(1, AssistantMessage("a\x1b[2Jb"))),
        TurnEnded("done", Usage(), 1),
    ]
    _, out, _ = await _told("text", events)
    assert "\x1b" not in out
