"""What a provider does wrong, played at the wire to a whole session, over every lane: the turn ends well or says why.

Whatever happened, the next prompt is a request that a provider accepts.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import struct
import time
import warnings
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from mycode.cli.options import RunOptions
from mycode.cli.run import Run
from mycode.cli.wiring import Workplace
from mycode.core.entries import Entry
from mycode.core.events import Event, MessageAdded, QuestionAsked, Retrying, ToolFinished, TurnEnded
from mycode.core.messages import AssistantMessage, UserMessage
from mycode.core.tools import Approver
from mycode.core.usage import Usage
from tests.support.gates import Person
from tests.support.script import Answer, Call, Fault, call, fail, say
from tests.support.scripted_server import ScriptedServer

SOON = {"retry-after-ms": "5"}
MAKE = {"path": "made.txt", "content": "made\n"}


class Talk:
    """One session over one lane, and what its server was asked."""

    def __init__(self, place: Workplace, server: ScriptedServer) -> None:
        self.place = place
        self.server = server

    async def turn(self, text: str = "go") -> list[Event]:
        async with aclosing(self.place.session.prompt(text)) as events:
            return [event async for event in events]

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [seen.body for seen in self.server.asked]

    @property
    def log(self) -> list[Entry]:
        return list(self.place.session.history())


Opener = Callable[..., Talk]


@pytest.fixture
async def opened(lane: str) -> AsyncIterator[Opener]:
    places: list[tuple[Workplace, Run]] = []

    def open_talk(
        server: ScriptedServer, *, model: str = "", approver: Approver | None = None, settings: tuple[str, ...] = ()
    ) -> Talk:
        anthropic = lane == "litellm to anthropic"
        options = RunOptions(
            model=f"anthropic/{model or 'claude-opus-5'}" if anthropic else f"openai/{model or 'scripted'}",
            api_base=server.root if anthropic else server.url,
            transport="direct" if lane == "fast lane" else "litellm",
            permission_mode="bypassPermissions",
            settings=settings,
        )
        run = Run(options, {**os.environ, "MYCODE_API_KEY": "test-key"})
        place = Workplace(run, approver or Person())
        places.append((place, run))
        return Talk(place, server)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield open_talk
        for place, run in places:
            await place.aclose()
            run.close()


def the_end(events: list[Event]) -> TurnEnded:
    assert isinstance(events[-1], TurnEnded)
    return events[-1]


def answer(events: list[Event]) -> str:
    """What the model said at last."""
    said = [event.entry.body for event in events if isinstance(event, MessageAdded)]
    return next((body.text for body in reversed(said) if isinstance(body, AssistantMessage)), "")


def results(events: list[Event]) -> list[str]:
    return [event.result.text for event in events if isinstance(event, ToolFinished)]


def retries(events: list[Event]) -> list[Retrying]:
    return [event for event in events if isinstance(event, Retrying)]


def unsound(body: dict[str, Any]) -> list[str]:
    """What in a request a strict provider would reject, in either protocol."""
    faults: list[str] = []
    used: set[str] = set()
    waiting: list[str] = []
    for message in body["messages"]:
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        asked = [(one["id"], one["function"]["arguments"]) for one in message.get("tool_calls") or ()]
        asked += [(one["id"], json.dumps(one["input"])) for one in blocks if one["type"] == "tool_use"]
        done = [one["tool_use_id"] for one in blocks if one["type"] == "tool_result"]
        done += [message["tool_call_id"]] if message["role"] == "tool" else []
        if message.get("tool_calls") and any(one["type"] == "tool_use" for one in blocks):
            faults.append("calls as blocks and as calls")
        for one in done:
            faults += [] if one in waiting else [f"stray result {one}"]
            waiting = [other for other in waiting if other != one]
        if message["role"] != "tool":
            faults += [f"no result for {one}" for one in waiting]
            waiting = [call_id for call_id, _ in asked]
        for call_id, arguments in asked:
            faults += [] if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call_id) else [f"odd id {call_id}"]
            faults += [f"id used twice {call_id}"] if call_id in used else []
            faults += [] if isinstance(json.loads(arguments), dict) else [f"arguments of {call_id}"]
            used.add(call_id)
        texts = [one.get("text", "") for one in blocks if one["type"] == "text"]
        if message["role"] == "assistant" and not asked and not (texts or content):
            faults.append("empty answer")
        if any(not text.strip() for text in texts):
            faults.append("empty text")
    return faults + [f"no result for {one}" for one in waiting]


async def goes_on(talk: Talk) -> None:
    """The next prompt is answered, and every request so far was sound."""
    talk.server._left = [say("On we go.")]
    events = await talk.turn("and now?")
    assert (answer(events), the_end(events).reason) == ("On we go.", "done")
    assert [fault for body in talk.bodies for fault in unsound(body)] == []


# Calls


async def test_a_turn_left_in_the_middle_of_a_call_is_told_as_interrupted(opened: Opener) -> None:
    sleeps = call("execute_bash", {"command": "echo begun; exec sleep 1000"}, text="I wait.")
    async with ScriptedServer([sleeps, say("On we go.")]) as server:
        talk = opened(server)
        async with aclosing(talk.place.session.prompt("go")) as events:
            async for event in events:
                if type(event).__name__ == "ToolProgress":
                    break
        await goes_on(talk)
    assert "interrupted" in json.dumps(talk.bodies[-1]["messages"])


@pytest.mark.parametrize("fault", ["cut", "cut_midway", "drop_midway", "error_event", "malformed"])
async def test_nothing_of_a_broken_answer_is_run_or_kept_and_it_is_asked_again(opened: Opener, fault: Fault) -> None:
    broken = call("execute_bash", {"command": "echo ran >> made.txt"}, text="I begin.", fault=fault)
    whole = call("execute_bash", {"command": "echo ran >> made.txt"})
    async with ScriptedServer([broken, whole, say("Done.")]) as server:
        talk = opened(server)
        events = await talk.turn()
        assert (answer(events), the_end(events).reason, len(retries(events))) == ("Done.", "done", 1)
        assert retries(events)[0].discard
        assert Path("made.txt").read_text() == "ran\n"
        assert [entry.message.text for entry in talk.log if entry.message and "I begin" in entry.message.text] == []
        await goes_on(talk)


async def test_double_foreign_and_long_ids_are_run_apart_and_sent_as_providers_like_them(opened: Opener) -> None:
    made = [Call("create_file", {"path": f"{n}.txt", "content": n}, "functions.Bash:0") for n in "ab"]
    long = Call("create_file", {"path": "c.txt", "content": "c"}, "x" * 300)
    async with ScriptedServer([Answer(calls=(*made, long)), Answer(calls=(made[0], long)), say("Done.")]) as server:
        talk = opened(server)
        events = await talk.turn()
        assert [Path(f"{name}.txt").read_text() for name in "abc"] == ["a", "b", "c"]
        assert len(results(events)) == 5
        await goes_on(talk)


@pytest.mark.parametrize(
    ("arguments", "finish", "words"),
    [
        ('{"path": "made.txt", "content": oops}', "", "not valid JSON"),
        ('{"path": "made.txt", "content": "ma', "", "cut off after"),
        ('{"path": "made.txt", "content": "ma', "length", "reached its output limit"),
        ("", "", "the arguments are empty"),
        ("[1]", "", "do not fit"),
        ('{"path": 7, "content": "made"}', "", "do not fit"),
        ('{"path": "made.txt", "content": "made", "dangerously_skip_approval": true}', "", "do not fit"),
    ],
)
async def test_arguments_that_cannot_be_used_are_answered_and_never_guessed(
    opened: Opener, arguments: str, finish: str, words: str
) -> None:
    async with ScriptedServer([call("create_file", arguments, finish=finish), say("I see.")]) as server:
        talk = opened(server)
        events = await talk.turn()
        assert words in results(events)[0]
        assert not Path("made.txt").exists()
        await goes_on(talk)


async def test_three_unusable_calls_in_a_row_stop_the_turn(opened: Opener) -> None:
    async with ScriptedServer([call("create_file", "{oops") for _ in range(4)]) as server:
        talk = opened(server)
        events = await talk.turn()
        assert (the_end(events).reason, len(server.asked)) == ("failed", 3)
        await goes_on(talk)


async def test_a_tool_that_does_not_exist_is_answered_with_the_nearest(opened: Opener) -> None:
    async with ScriptedServer([call("creat_file", MAKE), say("I see.")]) as server:
        talk = opened(server)
        events = await talk.turn()
        assert "There is no tool named creat_file. Nearest: create_file" in results(events)[0]
        await goes_on(talk)


# Waiting


async def test_a_pause_is_as_long_as_the_provider_asks(opened: Opener) -> None:
    async with ScriptedServer([fail(429, "slow down", headers={"retry-after": "1"}), say("Done.")]) as server:
        talk = opened(server)
        began = time.monotonic()
        events = await talk.turn()
        assert (answer(events), [(one.status, one.delay) for one in retries(events)]) == ("Done.", [(429, 1.0)])
        assert time.monotonic() - began >= 1.0
        await goes_on(talk)


async def test_a_pause_can_be_left_and_one_that_is_too_long_is_not_begun(opened: Opener) -> None:
    script = [fail(429, "slow down", headers={"retry-after": seconds}) for seconds in ("300", "3600")]
    async with ScriptedServer(script) as server:
        talk = opened(server)
        waiting = asyncio.Event()

        async def turn() -> None:
            async with aclosing(talk.place.session.prompt("go")) as events:
                async for event in events:
                    if isinstance(event, Retrying):
                        waiting.set()

        task = asyncio.create_task(turn())
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        events = await talk.turn()
        assert (the_end(events).exit_code, retries(events)) == (75, [])
        assert "It asks to wait 60 minutes" in the_end(events).error
        await goes_on(talk)


@pytest.mark.parametrize("status", [500, 503, 529])
async def test_an_overloaded_provider_is_asked_again_and_given_up_in_the_end(opened: Opener, status: int) -> None:
    script = [fail(status, "overloaded", headers=SOON), say("Done."), *(fail(status, "overloaded"),) * 2]
    async with ScriptedServer(script) as server:
        talk = opened(server, settings=("model.retry_seconds=0.4",))
        events = await talk.turn()
        assert (answer(events), [one.status for one in retries(events)]) == ("Done.", [status])
        events = await talk.turn("again")
        assert (the_end(events).reason, the_end(events).exit_code) == ("failed", 75)
        assert len(server.asked) == 3  # nobody but us tries again
        await goes_on(talk)


async def test_silence_is_noticed_and_a_turn_can_be_left_in_it(opened: Opener) -> None:
    silent = Answer(fault="hang")
    async with ScriptedServer([silent, Answer(text="Half.", fault="hang_midway"), say("Done."), silent]) as server:
        talk = opened(server, settings=("model.first_byte_timeout=0.3", "model.idle_timeout=0.3"))
        events = await talk.turn()
        assert (answer(events), len(retries(events))) == ("Done.", 2)
        talk.place.model.inner._first_byte_timeout = 300.0  # type: ignore[attr-defined]
        before = len(server.asked)
        task = asyncio.create_task(talk.turn("again"))
        while len(server.asked) == before:
            await asyncio.sleep(0.01)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < 60
        await asyncio.wait_for(server.left_early.wait(), 20)
        await goes_on(talk)


@pytest.mark.parametrize(("status", "code"), [(401, 41), (403, 41), (404, 41), (400, 1)])
async def test_what_will_not_pass_is_told_after_one_request(opened: Opener, status: int, code: int) -> None:
    async with ScriptedServer([fail(status, "no, not at all")]) as server:
        talk = opened(server)
        events = await talk.turn()
        assert (the_end(events).exit_code, retries(events), len(server.asked)) == (code, [], 1)
        assert "no, not at all" in the_end(events).error
        await goes_on(talk)
    assert "no, not at all" not in json.dumps(talk.bodies[-1])


# Answers


@pytest.mark.parametrize("words", ["", "  \n "])
async def test_an_empty_answer_is_asked_again_twice_then_told_and_never_kept(opened: Opener, words: str) -> None:
    async with ScriptedServer([say(words), say(words), say("Done."), *(say(words),) * 3]) as server:
        talk = opened(server)
        events = await talk.turn()
        assert (answer(events), len(retries(events))) == ("Done.", 2)
        events = await talk.turn("again")
        assert (the_end(events).reason, len(retries(events)), len(server.asked)) == ("failed", 2, 6)
        assert "empty answer" in the_end(events).error
        await goes_on(talk)
        said = [entry.message.text for entry in talk.log if isinstance(entry.message, AssistantMessage)]
    assert said == ["Done.", "On we go."]


@pytest.mark.parametrize("words", ["", "I will not."])
async def test_a_refusal_is_an_ending_of_its_own_after_one_request(opened: Opener, words: str) -> None:
    async with ScriptedServer([say(words, finish="content_filter")]) as server:
        talk = opened(server)
        events = await talk.turn()
        assert (the_end(events).reason, len(server.asked), retries(events)) == ("refused", 1, [])
        assert "refused" in the_end(events).error
        await goes_on(talk)


async def test_an_answer_that_says_the_same_again_and_again_is_an_answer(opened: Opener) -> None:
    async with ScriptedServer([say("----- " * 400, piece=6)]) as server:
        events = await opened(server).turn()
    assert (answer(events).count("-----"), len(retries(events))) == (400, 0)


async def test_an_answer_cut_at_the_output_limit_says_so(opened: Opener) -> None:
    async with ScriptedServer([say("And then", finish="length")]) as server:
        talk = opened(server)
        events = await talk.turn()
        assert (answer(events), the_end(events).reason) == ("And then", "truncated")
        await goes_on(talk)


async def test_without_usage_the_count_is_an_estimate_and_cost_is_unknown(opened: Opener, lane: str) -> None:
    if lane == "litellm to anthropic":
        pytest.skip("that protocol always sends usage")
    async with ScriptedServer([say("Done.", no_usage=True)]) as server:
        talk = opened(server)
        events = await talk.turn()
        last = talk.log[-1].message
        assert isinstance(last, AssistantMessage)
        assert (last.usage, the_end(events).reason) == (None, "done")
        assert talk.place.session.usage().tokens > 0
        assert not talk.place.context.calibrations
        await goes_on(talk)


async def test_comments_metadata_and_unknown_chunks_are_passed_over(opened: Opener) -> None:
    async with ScriptedServer([call("create_file", MAKE, fault="noise"), say("Done.", fault="noise")]) as server:
        talk = opened(server)
        assert answer(await talk.turn()) == "Done."
        assert Path("made.txt").read_text() == "made\n"
        await goes_on(talk)


# Too long


def too_long(tokens: int) -> Answer:
    return fail(400, f"This model's maximum context length is {tokens} tokens. However, you requested 99999 tokens.")


async def test_a_conversation_that_is_too_long_is_folded_once_and_asked_again(opened: Opener) -> None:
    words = " ".join(f"word{number}" for number in range(3_000))
    script = [say(words), say(words), say(words), too_long(9_000), say("Done.")]
    async with ScriptedServer(script) as server:
        talk = opened(server, settings=("context.summary.strategy=rules",))
        for number in range(3):
            await talk.turn(f"tell {number}")
        events = await talk.turn("again")
        sizes = [len(json.dumps(body["messages"])) for body in talk.bodies[-2:]]
        assert (answer(events), the_end(events).reason, sizes[1] < sizes[0]) == ("Done.", "done", True)
        await goes_on(talk)
    assert "maximum context length" not in json.dumps(talk.bodies[-1])


async def test_a_fold_that_does_not_help_is_made_once_and_the_session_goes_on(opened: Opener) -> None:
    script = [say("word " * 1_500), *(too_long(9_000),) * 8]
    async with ScriptedServer(script) as server:
        talk = opened(server, settings=("context.summary.strategy=rules",))
        await talk.turn("tell")
        events = await talk.turn("again")
        assert the_end(events).reason == "context_full"
        assert len(server.asked) == 3
        await goes_on(talk)


# Thinking


async def test_what_was_thought_goes_back_untouched_in_its_turn_and_nowhere_else(opened: Opener, lane: str) -> None:
    if lane != "litellm to anthropic":
        pytest.skip("only that protocol signs what was thought")
    thought = 'Hm, "é" \\n 漢 \u2028 end '
    thinks = call("create_file", MAKE, reasoning=thought)
    async with ScriptedServer([thinks, say("Done.", reasoning="more")]) as server:
        talk = opened(server)
        await talk.turn()
        await goes_on(talk)
    within, later = ([one for one in blocks_of(body) if one["type"] == "thinking"] for body in talk.bodies[1:])
    assert within == [{"type": "thinking", "thinking": thought, "signature": "signed"}]
    assert later == []


async def test_thinking_that_the_provider_rejects_is_left_out_once_and_for_the_turn(opened: Opener, lane: str) -> None:
    if lane != "litellm to anthropic":
        pytest.skip("only that protocol signs what was thought")
    rejected = fail(400, "messages.1.content.0: `thinking` blocks in the latest assistant message cannot be modified.")
    async with ScriptedServer([call("create_file", MAKE, reasoning="hm"), rejected, say("Done.")]) as server:
        talk = opened(server)
        events = await talk.turn()
        assert (answer(events), len(server.asked)) == ("Done.", 3)
        await goes_on(talk)
    assert [len([one for one in blocks_of(body) if one["type"] == "thinking"]) for body in talk.bodies] == [0, 1, 0, 0]


def blocks_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of all messages."""
    return [one for message in body["messages"] if isinstance(message["content"], list) for one in message["content"]]


# Pictures


def picture(name: str, *, noise: int = 0, width: int = 1, height: int = 1) -> None:
    """A PNG file, with so many bytes that mean nothing."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    rows = chunk(b"IDAT", zlib.compress(b"\0" * ((width + 1) * height)))
    Path(name).write_bytes(b"\x89PNG\r\n\x1a\n" + head + chunk(b"teXt", os.urandom(noise)) + rows + chunk(b"IEND", b""))


def pictures(body: dict[str, Any]) -> int:
    return json.dumps(body["messages"]).count(";base64,") + sum(
        json.dumps(one).count('"type": "base64"') for one in body["messages"]
    )


SEES = {"fast lane": "gpt-4o", "litellm": "gpt-4o", "litellm to anthropic": "claude-opus-5"}


@pytest.mark.parametrize(
    ("status", "words"),
    [(400, "image exceeds 5 MB maximum"), (400, "too many images in this request"), (413, "payload too large")],
)
async def test_pictures_that_are_too_much_are_replaced_oldest_first_and_asked_again(
    opened: Opener, lane: str, status: int, words: str
) -> None:
    for name in ("a.png", "b.png"):
        picture(name, noise=1000)
    look = Answer(calls=(Call("read_file", {"path": "a.png"}), Call("read_file", {"path": "b.png"})))
    async with ScriptedServer([look, fail(status, words), say("I see one."), say("Still.")]) as server:
        talk = opened(server, model=SEES[lane])
        events = await talk.turn("look")
        assert (answer(events), len(server.asked)) == ("I see one.", 3)
        assert [pictures(body) for body in talk.bodies] == [0, 2, 1]
        await goes_on(talk)


async def test_pictures_are_sent_up_to_a_number_of_bytes_newest_first(opened: Opener, lane: str) -> None:
    for name in "abcde":
        picture(f"{name}.png", noise=3_000_000)
    small = Usage(1_000, 10)  # a provider does not count the letters of a picture
    looks = [call("read_file", {"path": f"{name}.png"}, usage=small) for name in "abcde"]
    async with ScriptedServer([*looks, say("I see.", usage=small)]) as server:
        talk = opened(server, model=SEES[lane])
        assert answer(await talk.turn("look")) == "I see."
        assert max(len(json.dumps(body)) for body in talk.bodies) < 20_000_000
        assert (pictures(talk.bodies[1]), pictures(talk.bodies[-1])) == (1, 3)
        await goes_on(talk)


@pytest.mark.parametrize(("noise", "width"), [(6_000_000, 10), (0, 9_000)])
async def test_a_picture_no_model_takes_is_told_when_it_is_read(
    opened: Opener, lane: str, noise: int, width: int
) -> None:
    picture("huge.png", noise=noise, width=width)
    async with ScriptedServer([call("read_file", {"path": "huge.png"}), say("I see.")]) as server:
        talk = opened(server, model=SEES[lane])
        events = await talk.turn("look")
        assert "too large" in results(events)[0]
        assert pictures(talk.bodies[-1]) == 0
        await goes_on(talk)


# Loops


async def test_a_repeated_call_is_told_then_asked_about(opened: Opener) -> None:
    async with ScriptedServer(lambda _: call("list_files", {"path": "."})) as server:
        talk = opened(server, approver=Person("Stop here"))
        events = await talk.turn()
        told = ["made 3 times" in text or "made 4 times" in text for text in results(events)]
        assert (told, the_end(events).reason) == ([False, False, True, True], "loop")
        assert len([event for event in events if isinstance(event, QuestionAsked)]) == 1
        server.script = []
        await goes_on(talk)


async def test_a_cycle_of_two_calls_is_told(opened: Opener) -> None:
    cycle = [call("list_files", {"path": "."}), call("execute_bash", {"command": "true"})]
    async with ScriptedServer([*cycle, *cycle, say("Done.")]) as server:
        events = await opened(server).turn()
    assert ["cycle of calls" in text for text in results(events)] == [False, False, False, True]


# The whole session


async def test_after_every_fault_in_turn_the_session_is_as_good_as_new(opened: Opener) -> None:
    """One session that meets them all; between them it always goes on."""
    faults: list[Answer] = [
        fail(401, "no"),
        call("create_file", "{oops"),
        say("", finish="content_filter"),
        call("create_file", MAKE, finish="length"),
        fail(400, "something odd"),
        say("x", finish="length"),
        too_long(100_000),
        fail(404, "no such model"),
    ]
    async with ScriptedServer([]) as server:
        talk = opened(server)
        for one in faults:
            server._left = [one]
            await talk.turn("go")
            await goes_on(talk)
        asked = [entry for entry in talk.log if isinstance(entry.message, UserMessage)]
    assert len(asked) == 2 * len(faults)
