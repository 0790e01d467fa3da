"""Doubles for what tools are given: a gate, an approver, an archive."""

from collections.abc import Callable
from contextlib import aclosing

from mycode.core.errors import CannotAsk
from mycode.core.events import ToolFinished
from mycode.core.messages import ToolCall
from mycode.core.tools import Action, Approval, ApprovalRequest, Question, Verdict
from mycode.tools.runner import Runner, RunnerEvent


class RuledGate:
    """Judges by a function (everything is allowed without one); keeps what it saw and what it was told to remember."""

    def __init__(self, rule: Callable[[Action], Verdict] | None = None) -> None:
        self._rule = rule or (lambda _: Verdict("allow", ""))
        self.judged: list[Action] = []
        self.remembered: list[str] = []

    def judge(self, action: Action) -> Verdict:
        self.judged.append(action)
        return self._rule(action)

    def remember(self, rule: str) -> None:
        self.remembered.append(rule)


class ScriptedApprover:
    """Gives prepared approvals and answers; without any left, nobody is there."""

    def __init__(self, *approvals: Approval, answers: tuple[str, ...] = ()) -> None:
        self._approvals = list(approvals)
        self._answers = list(answers)
        self.asked: list[ApprovalRequest | Question] = []

    async def decide(self, request: ApprovalRequest) -> Approval:
        self.asked.append(request)
        if not self._approvals:
            raise CannotAsk("nobody is there")
        return self._approvals.pop(0)

    async def answer(self, question: Question) -> str:
        self.asked.append(question)
        if not self._answers:
            raise CannotAsk("nobody is there")
        return self._answers.pop(0)


class MemoryArchive:
    """Keeps texts in a list; the handle is the position."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def keep(self, text: str) -> str:
        self.texts.append(text)
        return f"t{len(self.texts)}"


class NoSandbox:
    state = "off (a test)"
    active = False

    def wrap(self, argv: tuple[str, ...], cwd: str) -> tuple[str, ...]:
        return argv


async def events_of(runner: Runner, call: ToolCall, *, truncated: bool = False) -> list[RunnerEvent]:
    events: list[RunnerEvent] = []
    await listen(runner, call, events, truncated=truncated)
    return events


async def listen(runner: Runner, call: ToolCall, events: list[RunnerEvent], *, truncated: bool = False) -> None:
    """Adds the events of a call to `events`, so that those before an exception are seen too."""
    async with aclosing(runner.run(call, truncated=truncated)) as stream:
        async for event in stream:
            events += [event]


async def finished(runner: Runner, call: ToolCall, *, truncated: bool = False) -> ToolFinished:
    """How the call ended; exactly one such event, and it is the last."""
    *before, last = await events_of(runner, call, truncated=truncated)
    assert isinstance(last, ToolFinished)
    assert not any(isinstance(event, ToolFinished) for event in before)
    return last
