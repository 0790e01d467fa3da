"""Models that play and record."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mycode.core.errors import BadRequest, InputError, ModelError, RateLimited
from mycode.core.events import ReasoningDelta, TextDelta
from mycode.core.messages import AssistantMessage, ToolCall
from mycode.core.models import ModelItem
from mycode.core.usage import Usage
from mycode.llm.scripted import Failure, RecordingModel, Reply, ScriptedModel, load_cassette
from tests.llm.conftest import ask, collect
from tests.support.script import call, fail, replies, say

CALL = ToolCall("c1", "read_file", '{"path":"a"}')


async def test_a_script_is_played_in_order_and_remembers_what_was_asked() -> None:
    model = ScriptedModel([Reply(text="One.", calls=(CALL,), usage=Usage(3, 4)), Reply(text="Two.")])
    first, second = await collect(model, ask("a")), await collect(model, ask("b"))
    assert first == [
        TextDelta("One."),
        AssistantMessage("One.", (CALL,), "tool_calls", "scripted/demo", Usage(3, 4)),
    ]
    assert second[-1] == AssistantMessage("Two.", model="scripted/demo")
    assert model.requests == [ask("a"), ask("b")]


async def test_deltas_have_the_size_that_was_asked_for() -> None:
    items = await collect(ScriptedModel([Reply(text="abcde", reasoning="xyz", piece=2)]))
    assert items[:-1] == [
        ReasoningDelta("xy"),
        ReasoningDelta("z"),
        TextDelta("ab"),
        TextDelta("cd"),
        TextDelta("e"),
    ]


async def test_calls_without_ids_get_the_same_ones_on_every_play() -> None:
    script = [Reply(calls=(ToolCall("", "a", "{}"), ToolCall("", "b", "{}")))]
    plays = [(await collect(ScriptedModel(script)))[-1] for _ in range(2)]
    assert plays[0] == plays[1]
    assert isinstance(plays[0], AssistantMessage)
    assert [one.id for one in plays[0].tool_calls] == ["call_1_1", "call_1_2"]


async def test_a_script_that_is_over_says_so() -> None:
    with pytest.raises(BadRequest, match="The script is over: it holds 0 answers"):
        await collect(ScriptedModel([]))


async def test_a_function_can_be_the_script() -> None:
    model = ScriptedModel(lambda request: Reply(text=request.messages[0].text))  # type: ignore[union-attr]
    assert (await collect(model, ask("echo")))[-1] == AssistantMessage("echo", model="scripted/demo")


async def test_a_scripted_wait_can_be_cancelled() -> None:
    task = asyncio.create_task(collect(ScriptedModel([Reply(text="late", delay=3600)])))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_test_script_plays_on_the_double_too() -> None:
    script = replies(call("read_file", {"path": "a"}), fail(429, "slow", headers={"retry-after": "3"}), say("Hi."))
    model = ScriptedModel(script)
    first = (await collect(model))[-1]
    assert isinstance(first, AssistantMessage)
    assert first.tool_calls[0].arguments == '{"path":"a"}'
    with pytest.raises(RateLimited) as caught:
        await collect(model)
    assert caught.value.retry_after == 3


async def record(path: Path, *script: Reply) -> list[list[ModelItem] | str]:
    model = RecordingModel(ScriptedModel(script), path)
    return [await outcome(model) for _ in script]


async def outcome(model: ScriptedModel | RecordingModel) -> list[ModelItem] | str:
    try:
        return await collect(model)
    except ModelError as error:
        return f"{type(error).__name__}: {error} {error.status} {error.retry_after}"


async def test_a_replay_is_the_recorded_session_again(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    recorded = await record(
        path,
        Reply(text="Hello.", reasoning="Greet.", usage=Usage(5, 2, cost_usd=0.1), piece=2, provider_data={"x": [1]}),
        Reply(text="Hal", error=Failure("Unavailable", "cut", 503)),
        Reply(error=Failure("RateLimited", "slow down", 429, 2.5)),
        Reply(calls=(CALL,)),
        Reply(text="cut h", finish="length"),
    )
    cassette = load_cassette(path)
    assert [await outcome(cassette) for _ in recorded] == recorded
    assert cassette.info.window == 128_000


async def test_a_cassette_holds_nothing_of_what_was_asked(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    model = RecordingModel(ScriptedModel([Reply(text="Hello.")]), path)
    await collect(model, ask("my secret is 1234"))
    assert "1234" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_reply_whose_request_is_asked_out_of_order_is_found(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    model = RecordingModel(ScriptedModel([Reply(text="first"), Reply(text="second")]), path)
    await collect(model, ask("a"))
    await collect(model, ask("b"))
    cassette = load_cassette(path)
    texts = [(await collect(cassette, ask(word)))[-1] for word in ("b", "never asked")]
    assert [one.text for one in texts if isinstance(one, AssistantMessage)] == ["second", "first"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"text": "a"}\n{"text": ', "line 2"),
        ('{"text": "a"}\n\n{"text": 7}', "line 3"),
        ('{"error": {"kind": "Nonsense", "message": "x"}}', "line 1"),
        ('{"cassette": 9}', "version 9"),
    ],
)
def test_a_broken_cassette_names_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_cassette(path)


def test_a_missing_cassette_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_cassette(tmp_path / "none.jsonl")


async def test_a_cassette_written_by_hand_plays(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text(
        '{"cassette": 1, "model": "openai/gpt-5", "window": 5000}\n# a remark\n\n'
        '{"text": "Hi.", "usage": {"input_tokens": 8, "output_tokens": 1}}\n'
    )
    cassette = load_cassette(path)
    assert (await collect(cassette))[-1] == AssistantMessage("Hi.", model="openai/gpt-5", usage=Usage(8, 1))
    assert (cassette.info.name, cassette.info.window) == ("openai/gpt-5", 5000)


async def test_a_cassette_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    model = RecordingModel(ScriptedModel([Reply(text="x")]), tmp_path / "no" / "one.jsonl")
    with pytest.raises(InputError, match="cannot be written"):
        await collect(model)
