"""One turn of the conversation, told as a stream of events: ask the model, run its calls, ask again until it is done.

Features do not enter here: they are a tool, a policy of the context engine, or a consumer of the events.
"""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from msgspec import structs

from mycode.agent.limits import Limits, stop
from mycode.agent.loop_guard import LoopGuard
from mycode.context.manager import ContextManager
from mycode.core.errors import CannotAsk, ContextOverflow, ModelError, MycodeError
from mycode.core.events import (
    ApprovalGiven,
    EndReason,
    Event,
    MessageAdded,
    QuestionAsked,
    SummaryFinished,
    ToolFinished,
    TurnEnded,
    TurnStarted,
    Warned,
)
from mycode.core.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from mycode.core.models import Model, ModelRequest, ToolSpec
from mycode.core.summaries import SummaryRecord
from mycode.core.tools import Approver, Question
from mycode.core.usage import NO_USAGE, Usage
from mycode.tools.runner import Runner

BAD_CALLS_IN_A_ROW = 3
_GO_ON, _STOP = "Go on", "Stop here"


class Agent:
    """Runs turns of one session. Owns nothing but the parts it was given; what must last is in the context manager."""

    def __init__(
        self,
        *,
        model: Model,
        context: ContextManager,
        runner: Runner,
        approver: Approver,
        system: str,
        tools: tuple[ToolSpec, ...],
        limits: Limits,
        spent: Usage = NO_USAGE,
    ) -> None:
        self.model = model
        self._context = context
        self._runner = runner
        self._approver = approver
        self._system = system
        self._tools = tools
        self._limits = limits
        self._spent = spent

    async def run_turn(self, prompt: UserMessage, turn: int) -> AsyncGenerator[Event]:
        """From `TurnStarted` to `TurnEnded`. A failure is an ending with a sentence, never an exception.

        Cancelling (closing the generator) is the only other way out; what was left open is repaired when it is read.
        """
        started = time.monotonic()
        state = _Turn()
        yield TurnStarted(turn)
        yield MessageAdded(self._context.append(prompt))
        try:
            while not state.reason:
                async with aclosing(self._step(state)) as events:
                    async for event in events:
                        yield event
        except CannotAsk as error:
            state.end("cannot_ask", error)
        except ContextOverflow as error:
            state.end("context_full", error)
        except MycodeError as error:
            state.end("failed", error)
        self._spent += state.usage
        yield TurnEnded(
            reason=state.reason or "done",
            usage=state.usage,
            steps=state.steps,
            seconds=time.monotonic() - started,
            error=state.error,
            exit_code=state.exit_code,
        )

    async def _step(self, state: "_Turn") -> AsyncGenerator[Event]:
        """One model call and its tools."""
        async with aclosing(self._make_room()) as events:
            async for event in events:
                if (usage := _summary_usage(event)) is not None:
                    state.usage += usage
                yield event
        limit = stop(
            self._limits,
            steps=state.steps,
            spent=self._spent + state.usage,
            next_tokens=self._context.usage().tokens,
            info=self.model.info,
        )
        if limit is not None:
            state.stop_at(limit, self._limits)
            return
        answer: AssistantMessage | None = None
        request = ModelRequest(
            system=self._system,
            messages=self._context.fit(),
            tools=self._tools,
            max_output_tokens=self._context.usage().reserve or None,
        )
        try:
            async with aclosing(self.model.stream(request)) as stream:
                async for item in stream:
                    if isinstance(item, AssistantMessage):
                        answer = item
                    else:
                        yield item
        except ContextOverflow as error:
            if state.overflowed:
                raise
            state.overflowed = True
            async with aclosing(self._context.overflow(error)) as events:
                async for event in events:
                    yield event
            return
        if answer is None:
            message = "The model ended its stream without an answer. Try again."
            raise ModelError(message)
        state.steps += 1
        state.overflowed = False
        if answer.usage is not None:
            self._context.observe(answer.usage)
        state.usage += answer.usage or Usage()
        yield MessageAdded(self._context.append(answer))
        self._context.precompute()
        for call in answer.tool_calls:
            async with aclosing(self._call(call, state, truncated=answer.finish == "length")) as events:
                async for event in events:
                    yield event
            if state.reason:
                return
        if not answer.tool_calls:
            state.finish(answer)

    async def _make_room(self) -> AsyncGenerator[Event]:
        trigger = self._context.due()
        if trigger is None:
            return
        async with aclosing(self._context.summarize(trigger)) as events:
            async for event in events:
                yield event

    async def _call(self, call: ToolCall, state: "_Turn", *, truncated: bool) -> AsyncGenerator[Event]:
        state.guard = state.guard.add(call)
        if state.guard.must_ask:
            question = Question(
                f"The model has made the same call of {call.name} {state.guard.repeats} times. Go on?", (_GO_ON, _STOP)
            )
            yield QuestionAsked(call.id, question)
            if not await self._may_go_on(question):
                state.end("loop", MycodeError(f"Stopped: {call.name} was called again and again without a change."))
                return
            state.guard = LoopGuard()
        refused = stopped_by_person = False
        async with aclosing(self._runner.run(call, truncated=truncated)) as events:
            async for event in events:
                match event:
                    case ApprovalGiven(approval=approval):
                        refused = approval.answer == "no"
                        stopped_by_person = refused and not approval.comment
                    case ToolFinished():
                        state.note(event, by_person=refused)
                        event = structs.replace(event, result=_advised(event.result, state.guard))
                    case _:
                        pass
                yield event
                if isinstance(event, ToolFinished):
                    yield MessageAdded(self._context.append(event.result))
        if stopped_by_person:
            state.end("denied", MycodeError(f"{call.name} was refused; tell the model what to do instead."))
        elif state.malformed >= BAD_CALLS_IN_A_ROW:
            text = f"The model sent {state.malformed} unusable tool calls in a row; the turn was stopped."
            yield Warned(text)
            state.end("failed", MycodeError(text))

    async def _may_go_on(self, question: Question) -> bool:
        try:
            return await self._approver.answer(question) == _GO_ON
        except CannotAsk:
            return False


class _Turn:
    """What is known of a turn while it runs."""

    def __init__(self) -> None:
        self.usage = NO_USAGE
        self.steps = 0
        self.guard = LoopGuard()
        self.reason: EndReason | None = None
        self.error = ""
        self.exit_code = 0
        self.denied = False
        self.malformed = 0
        self.overflowed = False

    def end(self, reason: EndReason, error: MycodeError) -> None:
        self.reason, self.error = reason, str(error)
        self.exit_code = EXIT_CODES.get(reason, error.exit_code)

    def stop_at(self, limit: EndReason, limits: Limits) -> None:
        text = (
            f"Stopped after {self.steps} steps, as --max-turns asks. Say “go on” to continue."
            if limit == "turn_limit"
            else f"Stopped: the next request could pass the budget of ${limits.max_budget_usd:.2f}."
        )
        self.end(limit, MycodeError(text))

    def finish(self, answer: AssistantMessage) -> None:
        if answer.finish == "refusal":
            self.end("refused", MycodeError("The model refused to answer. Ask in another way, or another model."))
        elif answer.finish == "length":
            text = (
                "The answer was cut off at the output limit. Say “go on” for the rest; "
                "context.window.reserved_output_tokens gives answers more room."
            )
            self.end("truncated", MycodeError(text))
        elif self.denied:
            self.end("denied", MycodeError("The turn finished, but at least one tool call was not permitted."))
        else:
            self.reason = "done"

    def note(self, event: ToolFinished, *, by_person: bool) -> None:
        """What a person refused in so many words is part of the talk, not something to be told at the end."""
        self.denied = self.denied or (event.denied and not by_person)
        self.malformed = self.malformed + 1 if event.malformed else 0


EXIT_CODES: dict[EndReason, int] = {
    "done": 0,
    "turn_limit": 53,
    "budget": 56,
    "denied": 57,
    "refused": 1,
    "truncated": 1,
    "cannot_ask": 59,
    "context_full": 1,
    "loop": 54,
    "interrupted": 130,
}


def _advised(result: ToolResult, guard: LoopGuard) -> ToolResult:
    return structs.replace(result, text=result.text + guard.advice) if guard.advice else result


def _summary_usage(event: Event) -> Usage | None:
    """What a summary by a model cost; it counts towards the turn and the budget."""
    if isinstance(event, SummaryFinished) and isinstance(event.entry.body, SummaryRecord):
        return event.entry.body.usage
    return None
