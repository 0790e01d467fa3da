"""How chunks become a message, in the shapes that different servers send them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycode.core.errors import BadResponse, Unavailable
from mycode.core.messages import AssistantMessage, ToolCall, UserMessage
from mycode.core.models import ModelRequest, Price
from mycode.core.usage import Usage
from mycode.llm.answer import Events, Fold, cost_of, decode_event, known_ids, usage_of


def fold(*deltas: dict[str, Any], finish: str = "stop", known: frozenset[str] = frozenset()) -> AssistantMessage:
    one = Fold(model="p/m", known_ids=known, new_id=lambda: "new")
    for delta in deltas:
        one.add({"choices": [{"delta": delta}]})
    one.finish(finish)
    return one.message()


def piece(arguments: Any, name: str | None = None, call_id: str | None = None, index: int | None = 0) -> dict[str, Any]:
    call: dict[str, Any] = {"id": call_id, "function": {"name": name, "arguments": arguments}}
    return {"tool_calls": [call if index is None else {**call, "index": index}]}


@given(st.text(max_size=200).map(lambda text: text.replace("\r", "")), st.lists(st.integers(1, 30), max_size=40))
def test_events_are_the_same_however_the_bytes_are_cut(text: str, cuts: list[int]) -> None:
    data = b"".join(b": comment\r\ndata: " + json.dumps({"text": one}).encode() + b"\n\n" for one in (text, "second"))
    events = Events()
    found = []
    for cut in cuts:
        head, data = data[:cut], data[cut:]
        found += events.feed(head)
    found += events.feed(data)
    found += events.close()
    assert [decode_event(one) for one in found] == [{"text": text}, {"text": "second"}]


def test_an_event_without_its_last_empty_line_still_counts() -> None:
    events = Events()
    assert events.feed(b"event: x\ndata: [DONE]") == []
    assert events.close() == [b"[DONE]"]


def test_an_event_that_is_no_json_is_a_bad_response() -> None:
    with pytest.raises(BadResponse):
        decode_event(b'{"choices": [')


def test_half_a_surrogate_pair_in_an_event_becomes_a_replacement_sign() -> None:
    assert decode_event(b'{"text": "a\\ud83d"}') == {"text": "a\ufffd"}


def test_calls_that_all_carry_index_zero_stay_apart() -> None:
    message = fold(piece('{"a":1}', "f", "x"), piece('{"b":2}', "g", "y"))
    assert message.tool_calls == (ToolCall("x", "f", '{"a":1}'), ToolCall("y", "g", '{"b":2}'))


def test_calls_without_an_index_are_told_apart_by_their_ids() -> None:
    message = fold(piece('{"a"', "f", "x", index=None), piece(":1}", index=None), piece("{}", "g", "y", index=None))
    assert message.tool_calls == (ToolCall("x", "f", '{"a":1}'), ToolCall("y", "g", "{}"))


def test_arguments_sent_as_an_object_become_json() -> None:
    assert fold(piece({"a": 1}, "f", "x")).tool_calls == (ToolCall("x", "f", '{"a":1}'),)


def test_a_call_without_an_id_or_with_a_known_one_gets_its_own() -> None:
    assert fold(piece("{}", "f")).tool_calls[0].id == "new"
    assert fold(piece("{}", "f", "old"), known=frozenset({"old"})).tool_calls[0].id == "new"


def test_known_ids_are_those_of_the_request() -> None:
    request = ModelRequest("", (UserMessage("hi"), AssistantMessage("", (ToolCall("a", "f", ""),))))
    assert known_ids(request) == {"a"}


@pytest.mark.parametrize(
    ("reason", "calls", "finish"),
    [
        ("stop", False, "stop"),
        ("stop", True, "tool_calls"),
        ("tool_calls", False, "stop"),
        ("max_tokens", False, "length"),
        ("SAFETY", False, "refusal"),
        ("something new", False, "stop"),
    ],
)
def test_finish_reasons_of_all_tongues_become_five(reason: str, calls: bool, finish: str) -> None:
    deltas = [{"content": "text"}, *([piece("{}", "f", "x")] if calls else [])]
    assert fold(*deltas, finish=reason).finish == finish


def test_typed_parts_are_told_apart() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    message = fold({"content": [thought, {"type": "text", "text": "Hello."}]})
    assert (message.text, message.provider_data) == ("Hello.", {"reasoning": "hm"})


def test_thinking_blocks_are_put_together_with_their_signature() -> None:
    def block(text: str, signature: str | None = None) -> dict[str, Any]:
        return {"thinking_blocks": [{"type": "thinking", "thinking": text, "signature": signature}]}

    message = fold(block("one "), block("two"), block("", "signed"), block("next", "too"), {"content": "x"})
    assert message.provider_data["thinking_blocks"] == [
        {"type": "thinking", "thinking": "one two", "signature": "signed"},
        {"type": "thinking", "thinking": "next", "signature": "too"},
    ]


@pytest.mark.parametrize(
    "chunk", [None, [], "x", {}, {"choices": None}, {"choices": [None]}, {"choices": [{"delta": None}]}, {"x": 1}]
)
def test_chunks_of_unknown_shape_are_passed_over(chunk: Any) -> None:
    one = Fold(model="p/m", new_id=str)
    assert one.add(chunk) == []
    assert not one.whole(done=False)


def test_an_error_inside_the_stream_is_raised() -> None:
    with pytest.raises(Unavailable, match="engine overloaded"):
        Fold(model="p/m", new_id=str).add({"error": {"message": "engine overloaded", "code": 503}})


def test_a_done_mark_without_a_finish_reason_ends_text_but_not_half_a_call() -> None:
    text = Fold(model="p/m", new_id=str)
    text.add({"choices": [{"delta": {"content": "Hello."}}]})
    half = Fold(model="p/m", new_id=str)
    half.add({"choices": [{"delta": piece('{"a": ', "f", "x")}]})
    assert (text.whole(done=True), half.whole(done=True)) == (True, False)


def test_only_thinking_is_an_empty_answer() -> None:
    with pytest.raises(BadResponse):
        fold({"reasoning_content": "hm"})


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (
            {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 80}},
            Usage(100, 5, 80),
        ),
        ({"prompt_tokens": 100, "completion_tokens": 5, "prompt_cache_hit_tokens": 80}, Usage(100, 5, 80)),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 5,
                "cache_read_input_tokens": 80,
                "cache_creation_input_tokens": 7,
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(100, 5, 80, 7, 3),
        ),
        ({"prompt_tokens": 100, "completion_tokens": 5, "cost": 0.5}, Usage(100, 5, cost_usd=0.5)),
        ({"prompt_tokens": None, "completion_tokens": "many"}, None),
    ],
)
def test_usage_is_read_in_the_dialects_of_providers(usage: dict[str, Any], counted: Usage | None) -> None:
    assert usage_of(usage, None) == counted


def test_cost_counts_cached_and_written_tokens_at_their_own_prices() -> None:
    usage = Usage(1000, 10, cached_tokens=600, cache_write_tokens=100)
    assert cost_of(usage, Price(1.0, 2.0, 0.1, 1.25)) == pytest.approx(300 + 60 + 125 + 20)
    assert cost_of(usage, Price(1.0, 2.0)) == pytest.approx(1020)
    assert cost_of(usage, None) is None
