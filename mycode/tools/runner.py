"""One tool call from raw text to result: understood, permitted, run, clipped."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

import msgspec
from msgspec import Struct, structs

from mycode.core.errors import CannotAsk, MycodeError, ToolError
from mycode.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    QuestionAsked,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from mycode.core.messages import ToolCall, ToolResult
from mycode.core.tools import Action, Approval, ApprovalRequest, Approver, Archive, Display, Gate, ToolOutput, Verdict
from mycode.tools.output import clip
from mycode.tools.registry import AnyTool, Registry, parameters

RunnerEvent = ToolStarted | ApprovalAsked | ApprovalGiven | QuestionAsked | ToolProgress | ToolFinished

_log = logging.getLogger(__name__)
_PROGRESS_KEPT = 64_000


class Runner:
    """Runs the calls a model asks for, one at a time.

    A failure of any kind is a result the model can read. `limit` gives the characters a result may have just now.
    """

    def __init__(
        self, registry: Registry, gate: Gate, approver: Approver, archive: Archive, limit: Callable[[], int]
    ) -> None:
        self._registry = registry
        self._gate = gate
        self._approver = approver
        self._archive = archive
        self._limit = limit

    async def run(self, call: ToolCall, *, truncated: bool = False) -> AsyncGenerator[RunnerEvent]:
        """`ToolStarted` first and one `ToolFinished` last, unless the consumer stops listening (use `aclosing`).

        `truncated` says that the answer was cut at the output limit: nothing of it is run, since nobody can tell what
        is missing. `CannotAsk` passes on, after the call was answered.
        """
        try:
            tool, args = self._understand(call, truncated=truncated)
        except ToolError as error:
            yield ToolStarted(call, call.name)
            yield self._finished(call, _Ended(str(error), is_error=True), malformed=True)
            return
        try:
            action = tool.plan(args)
        except Exception as error:  # noqa: BLE001  # a tool must not end a session
            yield ToolStarted(call, call.name)
            yield self._finished(call, _failed(call.name, error))
            return

        yield ToolStarted(call, action.title)
        if action.fails and self._may_read(action):
            yield self._finished(call, _Ended(action.fails, is_error=True))
            return
        try:
            verdict = self._gate.judge(action)
        except Exception as error:  # noqa: BLE001  # what cannot be judged is not run
            yield self._finished(call, _failed(call.name, error), denied=True)
            return
        comment, approved = "", None
        if verdict.decision == "deny":
            yield self._finished(call, _Ended(_denial(verdict), is_error=True), denied=True)
            return
        if verdict.decision == "ask":
            request = ApprovalRequest(call.id, action, verdict)
            yield ApprovalAsked(request)
            try:
                approval = await self._approver.decide(request)
            except CannotAsk:
                text = f"Not run: this needs a person's approval and nobody can be asked. {verdict.reason}".strip()
                yield self._finished(call, _Ended(text, is_error=True), denied=True)
                raise
            if approval.answer == "always" and (rule := approval.rule or verdict.offer):
                self._gate.remember(rule)
            yield ApprovalGiven(call.id, approval)
            if approval.answer == "no":
                yield self._finished(call, _Ended(_refusal(approval), is_error=True), denied=True)
                return
            comment, approved = approval.comment, action

        progress = _Progress()
        started = time.monotonic()
        task = asyncio.create_task(self._run(tool, args, approved, progress.report))
        task.add_done_callback(progress.close)
        try:
            while (news := await progress.next()) is not None:
                yield ToolProgress(call.id, news)
        finally:
            await _settle(task)
        ended = _Ended("The tool was interrupted from within.", is_error=True) if task.cancelled() else task.result()
        if comment:
            ended = structs.replace(ended, text=f"{ended.text}\n\nThe person allowed this and said: {comment}")
        yield self._finished(call, ended, seconds=time.monotonic() - started)
        if ended.cannot_ask is not None:
            raise ended.cannot_ask

    def _understand(self, call: ToolCall, *, truncated: bool) -> tuple[AnyTool, Struct]:
        """The tool and its checked arguments. Nothing is ever mended or guessed."""
        tool = self._registry.get(call.name)
        if tool is None:
            near = self._registry.nearest(call.name)
            hint = f"Nearest: {', '.join(near)}." if near else f"Tools: {', '.join(self._registry.names())}."
            message = f"There is no tool named {call.name}. {hint}"
            raise ToolError(message)
        if truncated:
            message = (
                f"Not run: the answer reached its output limit, so the arguments of {call.name} may be cut off. "
                "Send the call again, in smaller parts if it is long."
            )
            raise ToolError(message)
        if not call.arguments.strip():
            message = f"Not run: the arguments are empty. {_takes(tool)}"
            raise ToolError(message)
        try:
            return tool, msgspec.json.decode(call.arguments, type=tool.Args)
        except msgspec.ValidationError as error:
            message = f"Not run: the arguments do not fit: {error}. {_takes(tool, str(error))}"
            raise ToolError(message) from error
        except (msgspec.DecodeError, UnicodeError) as error:
            cut = "truncated" in str(error) and not call.arguments.rstrip().endswith("}")
            what = f"cut off after {len(call.arguments)} characters" if cut else f"not valid JSON ({error})"
            message = f"Not run: the arguments are {what}. Send the whole call again."
            raise ToolError(message) from error

    def _may_read(self, action: Action) -> bool:
        """Whether what the action names may be read, so that why it fails may be told without asking anybody."""
        names = tuple(dict.fromkeys((*action.reads, *action.writes)))
        look = structs.replace(action, effect="read", reads=names, writes=(), displays=(), fails="")
        return self._gate.judge(look).decision == "allow"

    async def _run(self, tool: AnyTool, args: Struct, approved: Action | None, report: Callable[[str], None]) -> _Ended:
        try:
            # while the person was thinking, a link may have come to lead elsewhere
            if approved is not None and _targets(tool.plan(args)) != _targets(approved):
                message = f"Not run: what {tool.name} would touch changed meanwhile. Send the call again."
                raise ToolError(message)
            output: ToolOutput = await tool.run(args, report)
        except CannotAsk as error:
            return _Ended(str(error), is_error=True, cannot_ask=error)
        except Exception as error:  # noqa: BLE001  # a tool must not end a session
            return _failed(tool.name, error)
        return _Ended(output.text, output=output)

    def _finished(
        self, call: ToolCall, ended: _Ended, *, seconds: float = 0.0, denied: bool = False, malformed: bool = False
    ) -> ToolFinished:
        text = clip(ended.text, self._limit(), self._keep) or "(no output)"
        images = ended.output.images if ended.output else ()
        display: Display | None = ended.output.display if ended.output else None
        result = ToolResult(call.id, text, is_error=ended.is_error, images=images)
        return ToolFinished(call, result, seconds, display=display, denied=denied, malformed=malformed)

    def _keep(self, text: str) -> str:
        try:
            return self._archive.keep(text)
        except Exception as error:  # noqa: BLE001  # what was done must be told even if the disk is full
            _log.error("a long tool result could not be kept", exc_info=error)
            return "(could not be kept)"


class _Ended(Struct, frozen=True):
    """How a call ended, before it is clipped."""

    text: str
    is_error: bool = False
    output: ToolOutput | None = None
    cannot_ask: CannotAsk | None = None


class _Progress:
    """Progress on its way from the tool to the listener; what a slow listener misses is the oldest."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: list[str] = []
        self._size = 0
        self._news = asyncio.Event()
        self._closed = False

    def report(self, text: str) -> None:
        """Takes text from any thread."""
        if text:
            self._loop.call_soon_threadsafe(self._add, text)

    def close(self, _task: asyncio.Task[Any]) -> None:
        # after everything that was reported before the tool ended
        self._loop.call_soon(self._end)

    async def next(self) -> str | None:
        """All that was reported since the last call, None when the tool has ended."""
        while not self._waiting:
            if self._closed:
                return None
            self._news.clear()
            await self._news.wait()
        text = "".join(self._waiting)
        self._waiting.clear()
        self._size = 0
        return text

    def _add(self, text: str) -> None:
        self._waiting.append(text)
        self._size += len(text)
        while self._size > _PROGRESS_KEPT and len(self._waiting) > 1:
            self._size -= len(self._waiting.pop(0))
        self._news.set()

    def _end(self) -> None:
        self._closed = True
        self._news.set()


async def _settle(task: asyncio.Task[_Ended]) -> None:
    """Returns when the task has ended, stopping it if need be: no tool outlives its call."""
    cancelled = False
    while not task.done():
        task.cancel()
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


def _failed(name: str, error: Exception) -> _Ended:
    """A tool's own sentence, or one for the unforeseen, whose details are for the log."""
    if isinstance(error, ToolError | MycodeError):
        return _Ended(str(error), is_error=True)
    _log.error("%s failed", name, exc_info=error)
    return _Ended(f"{name} failed unexpectedly ({type(error).__name__}); the log has details.", is_error=True)


def _denial(verdict: Verdict) -> str:
    return f"Not permitted: {verdict.reason}" + (f" (rule {verdict.rule})" if verdict.rule else "")


def _refusal(approval: Approval) -> str:
    if approval.comment:
        return f"The person refused this call and said: {approval.comment}"
    return "The person refused this call. Do not repeat it."


def _targets(action: Action) -> tuple[object, ...]:
    return (action.reads, action.writes, action.command, action.url)


def _takes(tool: AnyTool, error: str = "") -> str:
    """The part of the tool's schema that the error speaks of (all of it when it names no part)."""
    part, name = parameters(tool.Args), tool.name
    place = re.search(r"`\$([^`]*)`$", error)
    for key, index in re.findall(r"\.(\w+)|(\[)", place[1] if place else ""):
        inner = part.get("items") if index else part.get("properties", {}).get(key)
        if inner is None:
            break
        part, name = inner, f"{name}{'[]' if index else f'.{key}'}"
    return f"{name} takes {msgspec.json.encode(part).decode()}"
