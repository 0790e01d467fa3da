"""A tool call is understood, permitted, run and answered exactly once, whatever happens."""

import asyncio
import json
import logging
from contextlib import aclosing

import pytest
from msgspec import Struct, structs

from mycode.core.errors import CannotAsk, ToolError
from mycode.core.events import ApprovalAsked, ApprovalGiven, ToolFinished, ToolProgress, ToolStarted
from mycode.core.messages import ToolCall, ToolResult
from mycode.core.tools import Action, Approval, ApprovalRequest, Report, TextDisplay, ToolOutput, Verdict
from mycode.tools.registry import Registry
from mycode.tools.runner import Runner, RunnerEvent
from tests.support.tool_doubles import MemoryArchive, RuledGate, ScriptedApprover, events_of, finished, listen


class EchoArgs(Struct, frozen=True, forbid_unknown_fields=True):
    text: str
    times: int = 1


class Echo:
    """Says its text again; what it does on the way is handed in."""

    name = "echo"
    description = "Say it again."
    Args = EchoArgs

    def __init__(self, *, before=None, plan=None) -> None:
        self._before = before
        self._plan = plan
        self.ran: list[EchoArgs] = []
        self.planned = 0

    def plan(self, args: EchoArgs) -> Action:
        self.planned += 1
        action = Action("echo", "execute", f"echo {args.text}", command=args.text)
        return self._plan(action, self.planned) if self._plan else action

    async def run(self, args: EchoArgs, report: Report) -> ToolOutput:
        self.ran.append(args)
        if self._before is not None:
            await self._before(report)
        return ToolOutput("\n".join([args.text] * args.times), TextDisplay("echoed"))


def call(arguments: object, name: str = "echo") -> ToolCall:
    return ToolCall("c1", name, arguments if isinstance(arguments, str) else json.dumps(arguments))


def runner(tool: Echo | None = None, *, gate=None, approver=None, archive=None, limit: int = 10_000) -> Runner:
    return Runner(
        Registry([tool or Echo()]),
        gate or RuledGate(),
        approver or ScriptedApprover(),
        archive or MemoryArchive(),
        lambda: limit,
    )


def asking(offer: str | None = None) -> RuledGate:
    return RuledGate(lambda _: Verdict("ask", "not seen before", offer=offer))


async def test_an_allowed_call_starts_and_finishes_with_its_output() -> None:
    asked = call({"text": "hi", "times": 2})
    events = await events_of(runner(), asked)
    assert isinstance(events[-1], ToolFinished)
    assert [structs.replace(events[0]), structs.replace(events[1], seconds=0.0)] == [
        ToolStarted(asked, "echo hi"),
        ToolFinished(asked, ToolResult("c1", "hi\nhi"), 0.0, display=TextDisplay("echoed")),
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "Not run: the arguments are empty. echo takes {"),
        ("  \n", "Not run: the arguments are empty."),
        ('{"text": "a', "Not run: the arguments are cut off after 11 characters. Send the whole call again."),
        ("{'text': 1}", "Not run: the arguments are not valid JSON"),
        ('{"text": "a"} {}', "Not run: the arguments are not valid JSON"),
        ('{"text": "\\ud800"}', "Not run: the arguments are not valid JSON"),
        ('{"text": 1}', 'Expected `str`, got `int` - at `$.text`. echo.text takes {"type":"string"}'),
        ('{"text": "a", "times": "3"}', "Expected `int`, got `str` - at `$.times`"),
        ('{"text": "a", "sudo": true}', "unknown field `sudo`"),
        ("{}", 'missing required field `text`. echo takes {"type":"object"'),
        ("[]", "Expected `object`, got `array`"),
        ('"{\\"text\\": \\"a\\"}"', "Expected `object`, got `str`"),
    ],
)
async def test_arguments_that_do_not_fit_are_answered_and_never_guessed(arguments: str, said: str) -> None:
    tool = Echo()
    ended = await finished(runner(tool), call(arguments))
    assert said in ended.result.text
    assert (ended.result.is_error, ended.malformed, ended.denied, tool.ran, tool.planned) == (True, True, False, [], 0)


async def test_a_call_from_an_answer_cut_at_the_output_limit_is_not_run() -> None:
    tool = Echo()
    ended = await finished(runner(tool), call({"text": "rm -r build"}), truncated=True)
    assert "output limit" in ended.result.text
    assert ended.malformed
    assert not tool.ran


async def test_an_unknown_tool_is_answered_with_the_nearest_names() -> None:
    ended = await finished(runner(), call({}, name="Ecko"))
    assert ended.result.text == "There is no tool named Ecko. Nearest: echo."
    assert ended.malformed


async def test_a_denied_call_is_not_run_and_says_by_which_rule() -> None:
    tool = Echo()
    gate = RuledGate(lambda _: Verdict("deny", "echo is forbidden here", rule="echo *"))
    ended = await finished(runner(tool, gate=gate), call({"text": "hi"}))
    assert ended.result == ToolResult("c1", "Not permitted: echo is forbidden here (rule echo *)", is_error=True)
    assert ended.denied
    assert not tool.ran


async def test_a_person_is_asked_and_the_answer_is_an_event() -> None:
    gate, asked = asking(offer="echo hi"), call({"text": "hi"})
    events = await events_of(runner(gate=gate, approver=ScriptedApprover(Approval("once"))), asked)
    request = ApprovalRequest("c1", gate.judged[0], Verdict("ask", "not seen before", offer="echo hi"))
    assert events[:3] == [ToolStarted(asked, "echo hi"), ApprovalAsked(request), ApprovalGiven("c1", Approval("once"))]
    assert gate.remembered == []


@pytest.mark.parametrize(("rule", "remembered"), [(None, ["echo hi"]), ("echo *", ["echo *"])])
async def test_always_is_remembered_by_the_gate(rule: str | None, remembered: list[str]) -> None:
    gate = asking(offer="echo hi")
    await finished(runner(gate=gate, approver=ScriptedApprover(Approval("always", rule=rule))), call({"text": "hi"}))
    assert gate.remembered == remembered


async def test_a_refusal_carries_the_comment_word_for_word() -> None:
    tool = Echo()
    approver = ScriptedApprover(Approval("no", comment="use `printf`\ninstead"))
    ended = await finished(runner(tool, gate=asking(), approver=approver), call({"text": "hi"}))
    assert ended.result.text == "The person refused this call and said: use `printf`\ninstead"
    assert (ended.denied, tool.ran) == (True, [])


async def test_a_comment_on_a_yes_reaches_the_model_too() -> None:
    approver = ScriptedApprover(Approval("once", comment="but be quick"))
    ended = await finished(runner(gate=asking(), approver=approver), call({"text": "hi"}))
    assert ended.result.text == "hi\n\nThe person allowed this and said: but be quick"


async def test_where_nobody_can_be_asked_the_call_is_answered_before_the_error_passes_on() -> None:
    seen: list[RunnerEvent] = []
    with pytest.raises(CannotAsk):
        await listen(runner(gate=asking()), call({"text": "hi"}), seen)
    assert isinstance(seen[-1], ToolFinished)
    assert seen[-1].denied
    assert "nobody can be asked" in seen[-1].result.text


async def test_a_call_whose_targets_changed_while_the_person_thought_is_not_run() -> None:
    tool = Echo(plan=lambda action, times: structs.replace(action, writes=(f"/target/{times}",)))
    ended = await finished(
        runner(tool, gate=asking(), approver=ScriptedApprover(Approval("once"))), call({"text": "hi"})
    )
    assert "changed meanwhile" in ended.result.text
    assert not tool.ran


async def test_a_known_failure_is_told_without_asking_where_the_files_may_be_read() -> None:
    tool = Echo(plan=lambda action, _: structs.replace(action, writes=("/a",), fails="no such line"))
    gate = RuledGate(lambda action: Verdict("allow" if action.effect == "read" else "ask", ""))
    ended = await finished(runner(tool, gate=gate), call({"text": "hi"}))
    assert ended.result == ToolResult("c1", "no such line", is_error=True)


async def test_a_known_failure_is_not_told_where_the_files_may_not_be_read() -> None:
    tool = Echo(plan=lambda action, _: structs.replace(action, writes=("/a",), fails="the file says: secret"))
    ended = await finished(runner(tool, gate=RuledGate(lambda _: Verdict("deny", "private"))), call({"text": "hi"}))
    assert ended.result.text == "Not permitted: private"


async def test_a_tools_own_refusal_is_its_sentence() -> None:
    async def refuse(_: Report) -> None:
        raise ToolError("Say it differently.")

    ended = await finished(runner(Echo(before=refuse)), call({"text": "hi"}))
    assert ended.result == ToolResult("c1", "Say it differently.", is_error=True)
    assert not ended.malformed


async def test_an_unforeseen_failure_is_one_sentence_and_its_details_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def break_down(_: Report) -> None:
        raise ZeroDivisionError("private detail")

    with caplog.at_level(logging.ERROR):
        ended = await finished(runner(Echo(before=break_down)), call({"text": "hi"}))
    assert ended.result.text == "echo failed unexpectedly (ZeroDivisionError); the log has details."
    assert "private detail" in caplog.text


async def test_a_plan_that_fails_is_an_answer_too() -> None:
    def refuse(_action: Action, _times: int) -> Action:
        raise ToolError("The path is empty.")

    ended = await finished(runner(Echo(plan=refuse)), call({"text": "hi"}))
    assert ended.result == ToolResult("c1", "The path is empty.", is_error=True)


async def test_progress_arrives_while_the_tool_runs() -> None:
    go_on = asyncio.Event()

    async def work(report: Report) -> None:
        report("one ")
        await go_on.wait()
        report("two ")
        await asyncio.to_thread(report, "three")

    seen: list[str] = []
    async with aclosing(runner(Echo(before=work)).run(call({"text": "hi"}))) as stream:
        async for event in stream:
            if isinstance(event, ToolProgress):
                seen.append(event.text)
                go_on.set()
    assert seen[0] == "one "
    assert "".join(seen) == "one two three"


async def test_a_slow_listener_gets_the_newest_progress_only() -> None:
    async def flood(report: Report) -> None:
        for number in range(1000):
            report(f"{number:0999}\n")

    events = await events_of(runner(Echo(before=flood)), call({"text": "hi"}))
    progress = "".join(event.text for event in events if isinstance(event, ToolProgress))
    assert len(progress) <= 64_000
    assert progress.endswith(f"{999:0999}\n")


async def test_cancelling_the_listener_stops_the_tool_and_leaves_no_task() -> None:
    running, stopped = asyncio.Event(), asyncio.Event()

    async def work(_: Report) -> None:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # even cleaning up that takes a moment is waited for
            stopped.set()

    before = asyncio.all_tasks()
    listener = asyncio.create_task(events_of(runner(Echo(before=work)), call({"text": "hi"})))
    await running.wait()
    listener.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listener
    assert stopped.is_set()
    assert asyncio.all_tasks() <= before


async def test_closing_the_stream_in_the_middle_stops_the_tool() -> None:
    stopped = asyncio.Event()

    async def work(report: Report) -> None:
        report("started")
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with aclosing(runner(Echo(before=work)).run(call({"text": "hi"}))) as stream:
        async for event in stream:
            if isinstance(event, ToolProgress):
                break
    assert stopped.is_set()


async def test_a_tool_that_cancels_itself_is_answered() -> None:
    async def give_up(_: Report) -> None:
        raise asyncio.CancelledError

    ended = await finished(runner(Echo(before=give_up)), call({"text": "hi"}))
    assert ended.result == ToolResult("c1", "The tool was interrupted from within.", is_error=True)


async def test_long_output_is_clipped_and_kept_whole() -> None:
    archive = MemoryArchive()
    ended = await finished(runner(archive=archive, limit=1000), call({"text": "a line of twenty c", "times": 500}))
    assert len(ended.result.text) <= 1000
    assert "lines omitted, whole text: history_expand t1" in ended.result.text
    assert archive.texts == ["\n".join(["a line of twenty c"] * 500)]


async def test_a_result_that_cannot_be_kept_is_told_all_the_same() -> None:
    class FullDisk(MemoryArchive):
        def keep(self, text: str) -> str:
            raise OSError(28, "No space left on device")

    ended = await finished(runner(archive=FullDisk(), limit=1000), call({"text": "a line", "times": 500}))
    assert "history_expand (could not be kept)" in ended.result.text


async def test_what_cannot_be_judged_is_not_run() -> None:
    def confused(_: Action) -> Verdict:
        raise RecursionError

    tool = Echo()
    ended = await finished(runner(tool, gate=RuledGate(confused)), call({"text": "hi"}))
    assert (ended.denied, ended.result.is_error, tool.ran) == (True, True, [])


async def test_no_output_is_said() -> None:
    ended = await finished(runner(), call({"text": ""}))
    assert ended.result.text == "(no output)"
