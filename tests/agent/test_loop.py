"""One turn, told as events: every way it can go, with a scripted model and everything else real."""

import itertools
import json
from contextlib import aclosing
from pathlib import Path

import pytest

from mycode.agent.limits import Limits
from mycode.agent.loop import Agent
from mycode.context.manager import ContextManager
from mycode.context.policy import Policy
from mycode.core.events import Event, MessageAdded, QuestionAsked, Retrying, ToolFinished, TurnEnded, TurnStarted
from mycode.core.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from mycode.core.models import ModelInfo, Price
from mycode.core.tools import Approval
from mycode.core.usage import Usage
from mycode.llm.retry import RetryingModel
from mycode.llm.scripted import Failure, Reply, ScriptedModel
from mycode.tools.edit import EditFile
from mycode.tools.files import CreateFile, ReadFile
from mycode.tools.registry import Registry
from mycode.tools.runner import Runner
from mycode.tools.workspace import Workspace
from tests.support.gates import AskingGate, OpenGate, Person, RefusingGate

INFO = ModelInfo("scripted/m", "scripted", window=50_000, output_limit=2_000, price=Price(1e-6, 2e-6))


class Words:
    """Counts a token for every four characters."""

    exact = True

    def count(self, text: str) -> int:
        return (len(text) + 3) // 4


class Kept:
    """An archive in memory."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def keep(self, text: str) -> str:
        self.texts.append(text)
        return f"t{len(self.texts)}"


class Bench:
    """An agent on a workbench: what it is made of, and how a turn went."""

    def __init__(
        self,
        folder: Path,
        script: list[Reply],
        *,
        gate: OpenGate | None = None,
        person: Person | None = None,
        limits: Limits | None = None,
        info: ModelInfo = INFO,
    ) -> None:
        ids, ticks = itertools.count(1), itertools.count(1)
        workspace = Workspace(folder)
        registry = Registry([ReadFile(workspace, lambda: 10_000), CreateFile(workspace), EditFile(workspace)])
        self.scripted = ScriptedModel(script, info)
        self.context = ContextManager(
            policy=Policy(),
            counter=Words(),
            info=info,
            system="system",
            tools=registry.specs(),
            clock=lambda: float(next(ticks)),
            new_id=lambda: f"id{next(ids)}",
        )
        person = person or Person()
        self.agent = Agent(
            model=RetryingModel(self.scripted, budget=0.0),
            context=self.context,
            runner=Runner(registry, gate or OpenGate(), person, Kept(), lambda: 10_000),
            approver=person,
            system="system",
            tools=registry.specs(),
            limits=limits or Limits(),
        )

    async def turn(self, text: str = "go") -> list[Event]:
        async with aclosing(self.agent.run_turn(UserMessage(text), 1)) as events:
            return [event async for event in events]


def _call(name: str, **arguments: object) -> ToolCall:
    return ToolCall("", name, json.dumps(arguments))


def _messages(events: list[Event]) -> list[object]:
    return [event.entry.body for event in events if isinstance(event, MessageAdded)]


def _end(events: list[Event]) -> TurnEnded:
    assert isinstance(events[-1], TurnEnded)
    return events[-1]


async def test_a_plain_answer_is_a_turn_of_one_step(workspace: Path) -> None:
    usage = Usage(input_tokens=10, output_tokens=2, cost_usd=0.5)
    events = await Bench(workspace, [Reply(text="Hello.", usage=usage)]).turn("hi")
    assert events[0] == TurnStarted(1)
    assert _messages(events) == [
        UserMessage("hi"),
        AssistantMessage("Hello.", model="scripted/m", usage=usage),
    ]
    end = _end(events)
    assert (end.reason, end.steps, end.usage, end.exit_code) == ("done", 1, usage, 0)


async def test_a_call_is_run_and_its_result_goes_back_to_the_model(workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    bench = Bench(workspace, [Reply(calls=(_call("read_file", path="a.txt"),)), Reply(text="It says one.")])
    events = await bench.turn()
    result = _messages(events)[2]
    assert isinstance(result, ToolResult)
    assert "one" in result.text
    assert bench.scripted.requests[1].messages[-1] == result
    assert _end(events).reason == "done"


async def test_every_started_call_has_one_finish_and_messages_are_the_history(workspace: Path) -> None:
    calls = (_call("create_file", path="b.txt", content="x"), _call("nonsense"), ToolCall("", "read_file", "{oops"))
    bench = Bench(workspace, [Reply(calls=calls), Reply(text="done")])
    events = await bench.turn()
    finished = [event for event in events if isinstance(event, ToolFinished)]
    assert [event.malformed for event in finished] == [False, True, True]
    assert (workspace / "b.txt").read_text() == "x"
    view = bench.context.view()
    assert [type(message) for message in view] == [type(message) for message in _messages(events)]


async def test_a_refusal_without_a_word_ends_the_turn_and_with_a_word_it_goes_on(workspace: Path) -> None:
    script = [Reply(calls=(_call("create_file", path="c", content="x"),)), Reply(text="All right.")]
    silent = await Bench(workspace, script, gate=AskingGate(), person=Person(Approval("no"))).turn()
    spoken = await Bench(workspace, script, gate=AskingGate(), person=Person(Approval("no", "use d"))).turn()
    assert (_end(silent).reason, _end(silent).steps) == ("denied", 1)
    assert (_end(spoken).reason, _end(spoken).error, _end(spoken).steps) == ("done", "", 2)
    assert any(isinstance(body, ToolResult) and "use d" in body.text for body in _messages(spoken))
    assert not (workspace / "c").exists()


async def test_a_denied_call_is_told_to_the_model_and_shows_in_the_exit_code(workspace: Path) -> None:
    script = [Reply(calls=(_call("create_file", path="c", content="x"),)), Reply(text="I may not.")]
    end = _end(await Bench(workspace, script, gate=RefusingGate()).turn())
    assert (end.reason, end.exit_code, end.steps) == ("denied", 57, 2)


async def test_a_question_that_cannot_be_put_ends_the_turn_with_its_own_code(workspace: Path) -> None:
    script = [Reply(calls=(_call("create_file", path="c", content="x"),))]
    events = await Bench(workspace, script, gate=AskingGate()).turn()
    assert (_end(events).reason, _end(events).exit_code) == ("cannot_ask", 59)
    assert isinstance(_messages(events)[-1], ToolResult)


async def test_the_step_limit_stops_before_the_next_request(workspace: Path) -> None:
    calls = [Reply(calls=(_call("read_file", path=f"{n}.txt"),)) for n in range(5)]
    bench = Bench(workspace, calls, limits=Limits(max_steps=2))
    end = _end(await bench.turn())
    assert (end.reason, end.exit_code, len(bench.scripted.requests)) == ("turn_limit", 53, 2)


async def test_the_budget_stops_before_the_request_that_could_pass_it(workspace: Path) -> None:
    costly = Reply(calls=(_call("read_file", path="x"),), usage=Usage(input_tokens=100, cost_usd=0.9))
    bench = Bench(workspace, [costly, costly], limits=Limits(max_budget_usd=0.9))
    end = _end(await bench.turn())
    assert (end.reason, end.exit_code, len(bench.scripted.requests)) == ("budget", 56, 1)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (Failure("AuthError", "no key", 401), 41),
        (Failure("UnknownModel", "no such model", 404), 41),
        (Failure("BadRequest", "bad", 400), 1),
        (Failure("Unavailable", "overloaded", 529), 75),
        (Failure("RateLimited", "slow down", 429), 75),
    ],
)
async def test_a_failing_model_ends_the_turn_and_the_next_one_works(
    workspace: Path, failure: Failure, code: int
) -> None:
    bench = Bench(workspace, [Reply(error=failure), Reply(text="Back again.")])
    end = _end(await bench.turn())
    assert (end.reason, end.exit_code, failure.message in end.error) == ("failed", code, True)
    assert _end(await bench.turn()).reason == "done"


async def test_an_answer_cut_at_the_output_limit_is_not_called_done(workspace: Path) -> None:
    end = _end(await Bench(workspace, [Reply(text="half an ans", finish="length")]).turn())
    assert (end.reason, end.exit_code, "Say “go on” for the rest" in end.error) == ("truncated", 1, True)


async def test_a_refusal_by_the_model_is_its_own_ending(workspace: Path) -> None:
    end = _end(await Bench(workspace, [Reply(text="I will not.", finish="refusal")]).turn())
    assert (end.reason, end.error) == ("refused", "The model refused to answer. Ask in another way, or another model.")


async def test_calls_of_a_cut_answer_are_not_run(workspace: Path) -> None:
    call = ToolCall("", "create_file", '{"path": "x", "content": "ab')
    events = await Bench(workspace, [Reply(calls=(call,), finish="length"), Reply(text="sorry")]).turn()
    assert [event.malformed for event in events if isinstance(event, ToolFinished)] == [True]
    assert not (workspace / "x").exists()


async def test_three_unusable_calls_in_a_row_stop_the_turn(workspace: Path) -> None:
    replies = [Reply(calls=(ToolCall("", "read_file", "{" * n),)) for n in range(1, 6)]
    end = _end(await Bench(workspace, replies).turn())
    assert (end.reason, end.steps) == ("failed", 3)


async def test_a_repeated_call_is_told_then_asked_about(workspace: Path) -> None:
    same = Reply(calls=(_call("read_file", path="none.txt"),))
    bench = Bench(workspace, [same] * 6, person=Person("Stop here"))
    events = await bench.turn()
    results = [body.text for body in _messages(events) if isinstance(body, ToolResult)]
    assert ["has now been made" in text for text in results] == [False, False, True, True]
    assert len([event for event in events if isinstance(event, QuestionAsked)]) == 1
    assert _end(events).reason == "loop"


async def test_a_person_may_let_a_repetition_go_on(workspace: Path) -> None:
    same = Reply(calls=(_call("read_file", path="none.txt"),))
    events = await Bench(workspace, [*[same] * 5, Reply(text="ok")], person=Person("Go on")).turn()
    assert _end(events).reason == "done"


async def test_an_overflow_is_answered_once_by_a_smaller_request(workspace: Path) -> None:
    overflow = Reply(error=Failure("ContextOverflow", "too long", 400, limit=20_000))
    bench = Bench(workspace, [*[Reply(text="word " * 900)] * 20, overflow, Reply(text="fits now")])
    for _ in range(20):
        await bench.turn("tell me more " * 50)
    end = _end(await bench.turn("and now?"))
    first, second = bench.scripted.requests[-2:]
    sizes = [sum(len(getattr(message, "text", "")) for message in request.messages) for request in (first, second)]
    assert end.reason == "done"
    assert sizes[1] < sizes[0]


async def test_an_overflow_that_repeats_ends_the_turn_and_not_the_session(workspace: Path) -> None:
    overflow = Reply(error=Failure("ContextOverflow", "too long", 400))
    bench = Bench(workspace, [overflow, overflow, Reply(text="hello")])
    assert _end(await bench.turn()).reason == "context_full"
    assert _end(await bench.turn("short")).reason == "done"


async def test_leaving_in_the_middle_leaves_a_view_that_can_be_sent(workspace: Path) -> None:
    script = [Reply(calls=(_call("read_file", path="a"), _call("read_file", path="b"))), Reply(text="ok")]
    bench = Bench(workspace, script)
    async with aclosing(bench.agent.run_turn(UserMessage("go"), 1)) as events:
        async for event in events:
            if isinstance(event, ToolFinished):
                break
    events_after = await bench.turn("again")
    calls = [c for m in bench.scripted.requests[-1].messages if isinstance(m, AssistantMessage) for c in m.tool_calls]
    results = [m for m in bench.scripted.requests[-1].messages if isinstance(m, ToolResult)]
    assert sorted(call.id for call in calls) == sorted(result.call_id for result in results)
    assert _end(events_after).reason == "done"


async def test_a_retry_is_seen_before_the_failure(workspace: Path) -> None:
    busy = Reply(error=Failure("Unavailable", "busy", 503))
    bench = Bench(workspace, [busy, Reply(text="here")])
    bench.agent.model = RetryingModel(bench.scripted, budget=30.0, sleep=_no_sleep)
    events = await bench.turn()
    assert [event.attempt for event in events if isinstance(event, Retrying)] == [1]
    assert _end(events).reason == "done"


async def _no_sleep(_seconds: float) -> None:
    return
