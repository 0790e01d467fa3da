"""What only the fast lane has to see to: its connections, and requests made lighter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from mycode.core.errors import AuthError, BadRequest, ContextOverflow
from mycode.core.messages import AssistantMessage, Image, UserMessage
from mycode.core.models import ModelRequest
from mycode.llm.catalog import describe
from mycode.llm.chat_completions import ChatCompletionsModel
from mycode.llm.wire import Dialect
from tests.llm.conftest import ask, collect
from tests.support.script import Answer, fail, say
from tests.support.scripted_server import ScriptedServer

Opener = Callable[..., ChatCompletionsModel]


@pytest.fixture
async def open_lane() -> AsyncIterator[Opener]:
    models: list[ChatCompletionsModel] = []

    def open_lane(server: ScriptedServer, **more: object) -> ChatCompletionsModel:
        info = describe("openai/scripted")
        models.append(ChatCompletionsModel(info, base_url=server.url, model="scripted", **more))  # type: ignore[arg-type]
        return models[-1]

    yield open_lane
    for model in models:
        await model.aclose()


async def text_of(model: ChatCompletionsModel, request: ModelRequest | None = None) -> str:
    message = (await collect(model, request))[-1]
    assert isinstance(message, AssistantMessage)
    return message.text


async def test_the_steps_of_a_turn_share_one_connection(open_lane: Opener) -> None:
    async with ScriptedServer(lambda _: say("Hello.")) as server:
        model = open_lane(server)
        for _ in range(4):
            await collect(model)
        assert (len(server.asked), server.connections) == (4, 1)


async def test_a_connection_is_kept_after_an_error_answer(open_lane: Opener) -> None:
    async with ScriptedServer([fail(400), say("Hello.")]) as server:
        model = open_lane(server)
        with pytest.raises(BadRequest):
            await collect(model)
        assert await text_of(model) == "Hello."
        assert server.connections == 1


async def test_a_kept_connection_that_the_server_dropped_is_replaced_unseen(open_lane: Opener) -> None:
    async with ScriptedServer([say("One."), say("", fault="drop"), say("Two.")]) as server:
        model = open_lane(server)
        await collect(model)
        assert await text_of(model) == "Two."
        assert server.connections == 2


async def test_two_requests_at_once_have_two_connections(open_lane: Opener) -> None:
    async with ScriptedServer(lambda _: say("Hello.", delay=0.05)) as server:
        model = open_lane(server)
        texts = await asyncio.gather(text_of(model), text_of(model))
        assert texts == ["Hello.", "Hello."]
        assert server.connections == 2


async def test_a_model_may_be_used_again_after_it_was_closed(open_lane: Opener) -> None:
    async with ScriptedServer(lambda _: say("Hello.")) as server:
        model = open_lane(server)
        await collect(model)
        await model.aclose()
        assert await text_of(model) == "Hello."


async def test_a_body_that_never_ends_after_its_done_mark_is_not_waited_for(open_lane: Opener) -> None:
    event = 'data: {"choices": [{"delta": {"content": "Hello."}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'

    async def never_ending(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + event.encode())
        await writer.drain()
        while await reader.read(1024):
            pass
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(never_ending, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        model = open_lane(ScriptedServer([], port=port))
        assert await text_of(model) == "Hello."
        await model.aclose()


async def test_a_redirect_is_told_and_not_followed(open_lane: Opener) -> None:
    moved = Answer(status=307, body="", headers={"location": "https://elsewhere.example/v1"})
    async with ScriptedServer([moved]) as server:
        with pytest.raises(BadRequest, match="sends requests on"):
            await collect(open_lane(server))


async def test_pictures_that_are_too_many_are_taken_out_oldest_first(open_lane: Opener, tmp_path: Path) -> None:
    pictures = tuple(Image(str(tmp_path / name), "image/png", name, 3) for name in "ab")
    script = [fail(400, "too many images in the request"), say("I see one.")]
    async with ScriptedServer(script) as server:
        model = open_lane(server, dialect=Dialect(vision=True), load_image=lambda _: b"png")
        assert await text_of(model, ask("", UserMessage("look", pictures))) == "I see one."
        kinds = [[part["type"] for part in seen.body["messages"][-1]["content"]] for seen in server.asked]
    assert kinds == [["text", "image_url", "image_url"], ["text", "text", "image_url"]]


async def test_the_key_is_sent_as_a_bearer_token_and_never_in_the_body(open_lane: Opener) -> None:
    async with ScriptedServer([say("Hello.")]) as server:
        await collect(open_lane(server, api_key="sk-1"))
    assert server.asked[0].headers["authorization"] == "Bearer sk-1"
    assert "sk-1" not in str(server.asked[0].body)


async def test_a_key_that_no_header_can_hold_is_a_sentence(open_lane: Opener) -> None:
    async with ScriptedServer([say("Hello.")]) as server:
        for key in ("two\nlines", "schlüssel"):
            with pytest.raises(BadRequest, match="may not stand there"):
                await collect(open_lane(server, api_key=key))
    assert server.asked == []


async def test_a_key_that_is_only_a_stand_in_does_not_garble_what_the_provider_says(open_lane: Opener) -> None:
    said = "maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens"
    async with ScriptedServer([fail(400, said), fail(401, "wrong key: x")]) as server:
        model = open_lane(server, api_key="x")
        with pytest.raises(ContextOverflow) as overflow:
            await collect(model)
        with pytest.raises(AuthError) as refused:
            await collect(model)
    assert overflow.value.limit == 8192
    assert "wrong key: [the key]" in str(refused.value)


async def test_a_key_that_the_provider_repeats_is_not_shown(open_lane: Opener) -> None:
    async with ScriptedServer([fail(401, "wrong key sk-12345")]) as server:
        with pytest.raises(AuthError) as caught:
            await collect(open_lane(server, api_key="sk-12345"))
    assert "sk-12345" not in str(caught.value)
