"""What a provider can say, and what arrives: the same over every lane."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from mycode.core.errors import (
    AuthError,
    BadRequest,
    BadResponse,
    ContextOverflow,
    ModelError,
    RateLimited,
    Unavailable,
    UnknownModel,
)
from mycode.core.events import ReasoningDelta, TextDelta
from mycode.core.messages import AssistantMessage
from mycode.core.usage import Usage
from mycode.llm.faults import Unreachable
from tests.llm.conftest import Opener, ask, collect
from tests.support.script import Answer, Call, call, fail, say
from tests.support.scripted_server import ScriptedServer


async def whole(opened: Opener, answer: Answer) -> AssistantMessage:
    async with ScriptedServer([answer]) as server:
        message = (await collect(opened(server)))[-1]
    assert isinstance(message, AssistantMessage)
    return message


async def failure(opened: Opener, *script: Answer, **timeouts: float) -> tuple[ModelError, list[str], int]:
    """The error, the text shown before it, and the number of requests that were made."""
    shown: list[str] = []

    async def consume(server: ScriptedServer) -> None:
        async with aclosing(opened(server, **timeouts).stream(ask())) as stream:
            async for item in stream:
                assert not isinstance(item, AssistantMessage)
                shown.append(item.text if isinstance(item, TextDelta) else "")

    async with ScriptedServer(script) as server:
        with pytest.raises(ModelError) as caught:
            await consume(server)
        return caught.value, shown, len(server.asked)


async def test_text_and_reasoning_stream_in_pieces_and_end_in_one_whole_message(opened: Opener) -> None:
    async with ScriptedServer([say("Hello, world.", reasoning="Greet.")]) as server:
        *deltas, message = await collect(opened(server))
    assert "".join(one.text for one in deltas if isinstance(one, TextDelta)) == "Hello, world."
    assert "".join(one.text for one in deltas if isinstance(one, ReasoningDelta)) == "Greet."
    assert len(deltas) >= 4
    assert isinstance(message, AssistantMessage)
    assert (message.text, message.finish, message.tool_calls) == ("Hello, world.", "stop", ())
    assert message.provider_data["reasoning"] == "Greet."


async def test_several_calls_of_one_step_are_put_together_from_their_fragments(opened: Opener) -> None:
    calls = (Call("read_file", {"path": "src/one.py"}, "a1"), Call("read_file", {"path": "src/two.py"}, "a2"))
    message = await whole(opened, Answer(text="Both.", calls=calls, piece=3))
    assert [(one.id, one.name, one.arguments) for one in message.tool_calls] == [
        ("a1", "read_file", '{"path":"src/one.py"}'),
        ("a2", "read_file", '{"path":"src/two.py"}'),
    ]
    assert message.finish == "tool_calls"


async def test_usage_is_the_providers_count_with_its_cost(opened: Opener, lane: str) -> None:
    message = await whole(opened, say("hi", usage=Usage(950, 20, cached_tokens=800)))
    assert message.usage is not None
    counted = message.usage
    assert (counted.input_tokens, counted.output_tokens, counted.cached_tokens) == (950, 20, 800)
    assert counted.cost_usd == pytest.approx(150 * 1e-6 + 800 * 1e-7 + 20 * 2e-6)


async def test_an_answer_without_usage_has_none(opened: Opener, lane: str) -> None:
    if lane == "litellm to anthropic":
        return  # that protocol always sends usage
    message = await whole(opened, say("hi", no_usage=True))
    assert message.usage is None


async def test_arguments_that_are_no_json_are_kept_as_they_came(opened: Opener) -> None:
    message = await whole(opened, call("read_file", '{"path": oops'))
    assert message.tool_calls[0].arguments == '{"path": oops'


async def test_arguments_cut_by_the_output_limit_are_marked_by_the_finish_reason(opened: Opener) -> None:
    message = await whole(opened, call("read_file", '{"path": "src/on', finish="length"))
    assert (message.finish, message.tool_calls[0].arguments) == ("length", '{"path": "src/on')


async def test_an_over_long_call_id_comes_back_short_and_with_its_result(opened: Opener, lane: str) -> None:
    from mycode.core.messages import ToolResult, UserMessage

    async with ScriptedServer([call("read_file", call_id="functions.x:0" * 9), say("Done.")]) as server:
        model = opened(server)
        first = (await collect(model))[-1]
        assert isinstance(first, AssistantMessage)
        await collect(model, ask("", UserMessage("hi"), first, ToolResult(first.tool_calls[0].id, "text")))
        body = str(server.asked[-1].body)
    assert "functions.x:0" not in body
    assert body.count("call_") >= 2


async def test_a_duplicate_call_id_is_given_a_new_one(opened: Opener) -> None:
    message = await whole(opened, Answer(calls=(Call("read_file", {}, "same"), Call("read_file", {}, "same"))))
    ids = [one.id for one in message.tool_calls]
    assert ids[0] == "same"
    assert len(set(ids)) == 2


async def test_a_refusal_is_an_answer_and_no_error(opened: Opener) -> None:
    message = await whole(opened, say("I will not.", finish="content_filter"))
    assert (message.text, message.finish) == ("I will not.", "refusal")


async def test_metadata_comments_and_unknown_chunks_are_passed_over(opened: Opener) -> None:
    assert (await whole(opened, say("Hello, world.", fault="noise"))).text == "Hello, world."


async def test_a_finish_reason_that_comes_twice_changes_nothing(opened: Opener) -> None:
    assert (await whole(opened, say("Hello, world.", fault="repeat"))).text == "Hello, world."


async def test_a_finish_reason_without_a_done_mark_is_a_whole_answer(opened: Opener) -> None:
    assert (await whole(opened, say("Hello, world.", fault="no_done"))).finish == "stop"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BadRequest),
        (401, AuthError),
        (403, AuthError),
        (404, UnknownModel),
        (429, RateLimited),
        (500, Unavailable),
        (503, Unavailable),
        (529, Unavailable),
    ],
)
async def test_each_status_is_one_kind_of_error_after_one_request(
    opened: Opener, status: int, kind: type[ModelError]
) -> None:
    error, shown, requests = await failure(opened, fail(status, "because of this"))
    assert type(error) is kind
    assert error.status == status
    assert (shown, requests) == ([], 1)
    assert "because of this" in str(error)
    assert "litellm" not in str(error).lower()
    assert "\n" not in str(error)


async def test_a_wait_that_the_provider_names_is_kept(opened: Opener) -> None:
    error, _, _ = await failure(opened, fail(429, "slow down", headers={"retry-after": "7"}))
    assert error.retry_after == 7


async def test_a_wait_named_only_in_the_text_is_kept(opened: Opener) -> None:
    error, _, _ = await failure(opened, fail(429, "Rate limit reached. Please try again in 1.5s."))
    assert error.retry_after == 1.5


@pytest.mark.parametrize(
    ("text", "limit", "requested"),
    [
        ("This model's maximum context length is 8192 tokens. However, you sent 9000 tokens.", 8192, 9000),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000, 210_000),
        ("context_length_exceeded", None, None),
    ],
)
async def test_a_request_beyond_the_window_is_an_overflow_with_its_numbers(
    opened: Opener, text: str, limit: int | None, requested: int | None
) -> None:
    error, _, _ = await failure(opened, fail(400, text))
    assert isinstance(error, ContextOverflow)
    assert (error.limit, error.requested) == (limit, requested)


async def test_a_page_of_html_becomes_a_sentence(opened: Opener) -> None:
    error, _, _ = await failure(opened, Answer(status=502, body="<html><h1>Bad gateway</h1><p>nginx</p></html>"))
    assert "<" not in str(error)
    assert "Bad gateway" in str(error)


@pytest.mark.parametrize("fault", ["cut", "cut_midway", "drop_midway", "error_event", "malformed"])
async def test_a_stream_that_breaks_gives_no_message_and_may_be_tried_again(opened: Opener, fault: str) -> None:
    answer = call("read_file", {"path": "src/one.py"}, text="Hello there.", fault=fault)
    error, shown, requests = await failure(opened, answer)
    assert error.retryable
    assert requests == 1
    assert "Hello there.".startswith("".join(shown))


async def test_a_call_is_never_taken_from_a_stream_without_a_finish_reason(opened: Opener) -> None:
    error, _, _ = await failure(opened, call("read_file", {"path": "src/one.py"}, fault="cut"))
    assert type(error) is Unavailable
    assert "cut off" in str(error)


async def test_an_overload_told_in_the_middle_of_a_stream_says_so(opened: Opener) -> None:
    error, _, _ = await failure(opened, say("Hello, world. " * 5, fault="error_event"))
    assert type(error) is Unavailable
    assert "overloaded" in str(error)


async def test_an_empty_answer_is_a_bad_response(opened: Opener) -> None:
    error, _, _ = await failure(opened, say(""))
    assert type(error) is BadResponse


async def test_silence_before_the_first_byte_is_noticed(opened: Opener) -> None:
    error, _, _ = await failure(opened, say("", fault="hang"), first=0.3)
    assert type(error) is Unavailable
    assert "sent nothing for 0.3 seconds" in str(error)


async def test_silence_between_bytes_is_noticed(opened: Opener) -> None:
    error, shown, _ = await failure(opened, say("Hello, world. " * 5, fault="hang_midway"), idle=0.3)
    assert type(error) is Unavailable
    assert "in the middle" in str(error)
    assert "".join(shown)


async def test_a_refused_connection_is_told_at_once(opened: Opener) -> None:
    async with ScriptedServer([]) as server:
        pass
    with pytest.raises(Unreachable):
        await collect(opened(server))


async def test_cancelling_in_the_middle_closes_the_connection(opened: Opener) -> None:
    async with ScriptedServer([say("Hello, world. " * 50, pause=0.05)]) as server:
        model = opened(server)
        begun = asyncio.Event()

        async def consume() -> None:
            async with aclosing(model.stream(ask())) as stream:
                async for _ in stream:
                    begun.set()

        task = asyncio.create_task(consume())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.left_early.wait(), 5)
        assert server.asked[0].closed


async def test_leaving_the_stream_early_closes_the_connection(opened: Opener) -> None:
    async with ScriptedServer([say("Hello, world. " * 50, pause=0.05)]) as server:
        async with aclosing(opened(server).stream(ask())) as stream:
            await anext(stream)
        await asyncio.wait_for(server.left_early.wait(), 5)


async def test_after_any_error_the_next_request_is_answered(opened: Opener) -> None:
    script = [fail(500), say("x", fault="cut"), say("", fault=""), say("Here again.")]
    async with ScriptedServer(script) as server:
        model = opened(server)
        for _ in range(3):
            with pytest.raises(ModelError):
                await collect(model)
        message = (await collect(model))[-1]
    assert isinstance(message, AssistantMessage)
    assert message.text == "Here again."
