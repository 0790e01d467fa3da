"""What a provider is sent: always something it accepts, whatever the history."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mycode.core.messages import AssistantMessage, ContextNote, Image, ToolCall, ToolResult, UserMessage, ViewMessage
from mycode.core.models import ModelRequest, ToolSpec
from mycode.llm.wire import Dialect, note_text, request_body, without_images, without_thinking

PLAIN = Dialect()
TOOL = ToolSpec("read_file", "Reads.", {"type": "object"})


def sent(*messages: ViewMessage, dialect: Dialect = PLAIN, full_name: str = "p/m", **more: Any) -> list[dict[str, Any]]:
    body = request_body(ModelRequest("", messages), model="m", full_name=full_name, dialect=dialect, **more)
    found: list[dict[str, Any]] = body["messages"]
    return found


def test_a_whole_request_is_written_as_the_protocol_has_it() -> None:
    call = ToolCall("c1", "read_file", '{"path":"a"}')
    request = ModelRequest(
        "Be brief.",
        (UserMessage("hi"), AssistantMessage("Looking.", (call,), "tool_calls"), ToolResult("c1", "text")),
        (TOOL,),
        max_output_tokens=100,
    )
    assert request_body(request, model="m", dialect=PLAIN, effort="low") == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": "Looking.",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path":"a"}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "text"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "read_file", "description": "Reads.", "parameters": {"type": "object"}},
            }
        ],
        "max_tokens": 100,
        "reasoning_effort": "low",
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_neighbouring_user_messages_and_notes_are_joined() -> None:
    messages = sent(ContextNote("Earlier.", "summary"), UserMessage("Go on."), ContextNote("todo", "footer"))
    assert messages == [
        {
            "role": "user",
            "content": "<summary>\nEarlier.\n</summary>\n\nGo on.\n\n<footer>\ntodo\n</footer>",
        }
    ]


@given(st.text(alphabet="<>/ summary\tSUMARY\nmemoy", max_size=60))
def test_no_text_closes_the_tag_it_stands_in(text: str) -> None:
    whole = note_text(ContextNote(text, "summary"))
    assert len(re.findall(r"(?i)<\s*/?\s*summary", whole)) == 2


def test_a_note_after_tool_results_joins_them_where_no_user_may_follow() -> None:
    call = AssistantMessage("", (ToolCall("c1", "f", "{}"),))
    dialect = Dialect(tool_then_user=False)
    assert sent(call, ToolResult("c1", "text"), ContextNote("todo", "footer"), dialect=dialect)[-1] == {
        "role": "tool",
        "tool_call_id": "c1",
        "content": "text\n\n<footer>\ntodo\n</footer>",
    }


ids = st.one_of(st.sampled_from(["", "a", "call_1", "functions.x:0", "x" * 90, "é"]), st.text(max_size=80))
arguments = st.sampled_from(["{}", '{"a": 1}', "", "[1]", '{"a": ', "null"])
histories = st.lists(st.lists(st.tuples(ids, arguments), min_size=0, max_size=3), min_size=1, max_size=6)


@given(histories)
def test_any_history_of_calls_is_sent_with_valid_unique_ids_and_arguments_that_are_objects(
    steps: list[list[tuple[str, str]]],
) -> None:
    messages: list[ViewMessage] = [UserMessage("hi")]
    for calls in steps:
        messages.append(AssistantMessage("", tuple(ToolCall(i, "f", a) for i, a in calls)))
        messages += [ToolResult(i, "done") for i, _ in calls]
    asked: list[str] = []
    answered: list[str] = []
    for message in sent(*messages):
        for call in message.get("tool_calls", ()):
            asked.append(call["id"])
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
        if message["role"] == "tool":
            answered.append(message["tool_call_id"])
        assert message.get("content") or message.get("tool_calls")
    assert asked == answered
    assert len(set(asked)) == len(asked)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", one) for one in asked)


def test_half_a_surrogate_pair_does_not_keep_a_request_from_being_sent() -> None:
    assert sent(UserMessage("a \ud83d b"), AssistantMessage("ok"), UserMessage("\ud83d\ude00")) == [
        {"role": "user", "content": "a \ufffd b"},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": "\U0001f600"},
    ]


def test_an_empty_answer_in_the_history_is_left_out() -> None:
    assert sent(UserMessage("a"), AssistantMessage(""), UserMessage("b")) == [{"role": "user", "content": "a\n\nb"}]


def test_the_cache_is_marked_on_system_tools_and_the_last_stable_message() -> None:
    request = ModelRequest(
        "Be brief.", (UserMessage("one"), AssistantMessage("two"), ContextNote("todo", "footer")), (TOOL, TOOL)
    )
    body = request_body(request, model="m", dialect=Dialect(cache_markers=True))
    mark = {"type": "ephemeral"}
    assert body["messages"] == [
        {"role": "system", "content": [{"type": "text", "text": "Be brief.", "cache_control": mark}]},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": [{"type": "text", "text": "two", "cache_control": mark}]},
        {"role": "user", "content": "<footer>\ntodo\n</footer>"},
    ]
    assert ["cache_control" in tool for tool in body["tools"]] == [False, True]


def test_the_mark_stays_off_a_footer_joined_to_the_last_user_message() -> None:
    content = sent(UserMessage("one"), ContextNote("todo", "footer"), dialect=Dialect(cache_markers=True))[0]["content"]
    assert [("cache_control" in part) for part in content] == [True, False]


def thinking(model: str) -> AssistantMessage:
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
    return AssistantMessage("x", (ToolCall("c", "f", "{}"),), model=model, provider_data={"thinking_blocks": blocks})


def test_thinking_goes_back_within_the_turn_to_the_model_that_thought_it() -> None:
    signed = Dialect(signed=True)
    now = (UserMessage("hi"), thinking("p/m"), ToolResult("c", "done"))
    assert "thinking_blocks" in sent(*now, dialect=signed)[1]
    assert "thinking_blocks" not in sent(*now, dialect=signed, full_name="p/other")[1]
    assert "thinking_blocks" not in sent(*now, UserMessage("next"), dialect=signed)[1]


def test_a_request_can_be_made_without_its_thinking() -> None:
    body = {"model": "m", "messages": sent(UserMessage("hi"), thinking("p/m"), dialect=Dialect(signed=True))}
    lighter = without_thinking(body)
    assert lighter is not None
    assert "thinking_blocks" not in lighter["messages"][1]
    assert without_thinking(lighter) is None


PICTURE = Image("/tmp/p.png", "image/png", "ab", 3)


def test_a_picture_is_sent_as_data_and_a_tools_picture_after_its_results() -> None:
    url = "data:image/png;base64," + base64.b64encode(b"png").decode()
    messages = sent(
        AssistantMessage("", (ToolCall("c", "f", "{}"),)),
        ToolResult("c", "a picture", images=(PICTURE,)),
        load_image=lambda _: b"png",
    )
    assert messages[1:] == [
        {"role": "tool", "tool_call_id": "c", "content": "a picture"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Images of the tool result above:"},
                {"type": "image_url", "image_url": {"url": url}},
            ],
        },
    ]


def test_a_model_that_sees_nothing_is_told_of_the_picture() -> None:
    messages = sent(UserMessage("look", (PICTURE,)), dialect=Dialect(vision=False), load_image=lambda _: b"png")
    assert messages[0]["content"] == "look\n\n[image /tmp/p.png: this model sees no images]"


def test_the_newest_pictures_fit_the_byte_budget() -> None:
    old, new = Image("/old", "image/png", "1", 8), Image("/new", "image/png", "2", 8)
    messages = sent(
        UserMessage("a", (old,)),
        AssistantMessage("b"),
        UserMessage("c", (new,)),
        dialect=Dialect(image_bytes=10),
        load_image=lambda _: b"png",
    )
    assert messages[0]["content"] == "a\n\n[image /old: it was left out to make room]"
    assert messages[2]["content"][1]["type"] == "image_url"


def test_a_request_can_be_made_with_fewer_pictures_until_none_is_left() -> None:
    body: dict[str, Any] | None = {
        "messages": sent(UserMessage("a", (PICTURE, Image("/q", "image/png", "cd", 3))), load_image=lambda _: b"png")
    }
    rounds = 0
    while (lighter := without_images(body)) is not None:  # type: ignore[arg-type]
        body, rounds = lighter, rounds + 1
    assert rounds == 2
    assert "image_url" not in json.dumps(body)


def test_a_shape_is_asked_for_instead_of_tools() -> None:
    request = ModelRequest("", (UserMessage("x"),), (TOOL,), json_schema={"title": "A shape", "type": "object"})
    body = request_body(request, model="m", dialect=PLAIN)
    assert "tools" not in body
    assert body["response_format"]["json_schema"]["name"] == "A_shape"
    assert request_body(request, model="m", dialect=Dialect(json_schema=False))["response_format"] == {
        "type": "json_object"
    }
