"""How a turn is told to a program: plain text, one JSON object, or one JSON line per event.

The answer alone goes to standard output, everything else to standard error. The JSON lines follow the envelope that
wrappers of other agents already parse (`docs/events.md`), with an ISO `timestamp` on each.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, TextIO

import msgspec
from msgspec import Struct

from mycode.core.errors import MycodeError
from mycode.core.events import (
    ApprovalAsked,
    ContextMasked,
    Event,
    MessageAdded,
    ReasoningDelta,
    Retrying,
    SummaryFinished,
    SummaryStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    Warned,
)
from mycode.core.messages import AssistantMessage, ToolResult, UserMessage
from mycode.core.summaries import SummaryRecord
from mycode.core.usage import Usage
from mycode.core.visible import plain

Format = Literal["text", "json", "stream-json"]
_SUBTYPES = {
    "done": "success",
    "turn_limit": "error_max_turns",
    "budget": "error_max_budget_usd",
    "denied": "error_permission_denied",
    "cannot_ask": "error_cannot_ask",
    "truncated": "error_truncated",
    "refused": "error_refused",
}


class Opening(Struct, frozen=True):
    """What the first line of stream-json tells: where the run takes place and with what."""

    session_id: str
    cwd: str
    model: str
    tools: tuple[str, ...]
    permission_mode: str


class Outcome(Struct, frozen=True):
    """How a run ended: the last answer, the sentence if it failed, and the exit code of the process."""

    text: str
    exit_code: int
    error: str = ""


class Printer(Protocol):
    """Tells events as they come, and the end once."""

    def show(self, event: Event) -> None: ...

    def close(self, outcome: Outcome, ended: TurnEnded | None) -> None: ...


async def print_turn(events: AsyncIterator[Event], printer: Printer) -> Outcome:
    """Feeds one turn to a printer. An error that escapes the turn ends it like any other failure."""
    text, ended, outcome = "", None, None
    try:
        async with aclosing(events) as stream:  # type: ignore[type-var]  # turns are generators
            async for event in stream:
                match event:
                    case MessageAdded(entry=entry) if isinstance(entry.body, AssistantMessage):
                        text = entry.body.text or text
                    case TurnEnded():
                        ended = event
                        outcome = Outcome(text, event.exit_code, event.error)
                    case _:
                        pass
                printer.show(event)
    except MycodeError as error:
        outcome = Outcome(text, error.exit_code, str(error))
    outcome = outcome or Outcome(text, 1, "The turn ended without saying how.")
    printer.close(outcome, ended)
    return outcome


def make_printer(
    form: Format, *, out: TextIO, err: TextIO, opening: Opening, partial: bool = False, clock: Callable[[], datetime]
) -> Printer:
    """The printer of a format; `partial` adds the deltas to stream-json."""
    match form:
        case "text":
            return TextPrinter(out, err)
        case "json":
            return JsonPrinter(out, err, opening)
        case "stream-json":
            return StreamPrinter(out, opening, partial=partial, clock=clock)


def utc_now() -> datetime:
    return datetime.now(UTC)


class TextPrinter:
    """The last answer on standard output; what is being done as one line each on standard error."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = out
        self._err = err

    def show(self, event: Event) -> None:
        line = _progress(event)
        if line:
            print(plain(line), file=self._err, flush=True)

    def close(self, outcome: Outcome, ended: TurnEnded | None) -> None:  # noqa: ARG002  the protocol's shape
        if outcome.text:
            print(plain(outcome.text), file=self._out, flush=True)
        if outcome.error:
            print(f"mycode: {plain(outcome.error)}", file=self._err, flush=True)


class JsonPrinter:
    """One object at the end, of the same shape as the last line of stream-json."""

    def __init__(self, out: TextIO, err: TextIO, opening: Opening) -> None:
        self._out = out
        self._progress = TextPrinter(out, err)
        self._opening = opening
        self._denials: list[dict[str, Any]] = []

    def show(self, event: Event) -> None:
        self._denials.extend(_denial(event))
        self._progress.show(event)

    def close(self, outcome: Outcome, ended: TurnEnded | None) -> None:
        _write(self._out, _result(outcome, ended, self._opening, self._denials))


class StreamPrinter:
    """One line per event that a program may want."""

    def __init__(
        self, out: TextIO, opening: Opening, *, partial: bool = False, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self._out = out
        self._opening = opening
        self._partial = partial
        self._clock = clock
        self._denials: list[dict[str, Any]] = []
        self._say(
            {
                "type": "system",
                "subtype": "init",
                "cwd": opening.cwd,
                "model": opening.model,
                "tools": list(opening.tools),
                "permissionMode": opening.permission_mode,
            }
        )

    def show(self, event: Event) -> None:
        self._denials.extend(_denial(event))
        for line in _lines(event, partial=self._partial):
            self._say(line)

    def close(self, outcome: Outcome, ended: TurnEnded | None) -> None:
        self._say(_result(outcome, ended, self._opening, self._denials))

    def _say(self, line: dict[str, Any]) -> None:
        stamp = self._clock().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        _write(self._out, {**line, "session_id": self._opening.session_id, "timestamp": stamp})


def _progress(event: Event) -> str:
    match event:
        case ToolStarted(title=title):
            return f"· {title}"
        case ToolFinished(call=call, result=result) if result.is_error:
            return f"  {call.name}: {(result.text.splitlines() or [''])[0]}"
        case SummaryStarted(messages=messages, trigger=trigger):
            return f"· summarizing {messages} messages (context {trigger.ratio:.0%} full)"
        case SummaryFinished(entry=entry) if isinstance(entry.body, SummaryRecord):
            return f"  summarized: {entry.body.tokens_before} -> {entry.body.tokens_after} tokens"
        case ContextMasked(tokens_before=before, tokens_after=after):
            return f"· older tool results shortened: {before} -> {after} tokens"
        case Retrying(attempt=attempt, attempts=attempts, delay=delay, error=error):
            return f"· {error} Trying again in {delay:.0f} s ({attempt} of {attempts})"
        case Warned(text=text):
            return f"! {text}"
        case _:
            return ""


def _lines(event: Event, *, partial: bool) -> list[dict[str, Any]]:
    match event:
        case MessageAdded(entry=entry):
            return [{**line, "uuid": entry.id} for line in _message(entry.body if entry.message else None)]
        case TextDelta(text=text) if partial:
            return [{"type": "stream_event", "event": {"type": "text_delta", "text": text}}]
        case ReasoningDelta(text=text) if partial:
            return [{"type": "stream_event", "event": {"type": "thinking_delta", "thinking": text}}]
        case SummaryFinished(entry=entry) if isinstance(entry.body, SummaryRecord):
            record = entry.body
            trigger = "manual" if record.trigger == "manual" else "auto"
            metadata = {
                "trigger": trigger,
                "reason": record.trigger,
                "depth": record.depth,
                "pre_tokens": record.tokens_before,
                "post_tokens": record.tokens_after,
            }
            return [{"type": "system", "subtype": "compact_boundary", "compact_metadata": metadata}]
        case ContextMasked(tokens_before=before, tokens_after=after):
            return [{"type": "system", "subtype": "context_masked", "pre_tokens": before, "post_tokens": after}]
        case Retrying():
            return [
                {
                    "type": "system",
                    "subtype": "api_retry",
                    "attempt": event.attempt,
                    "max_retries": event.attempts,
                    "retry_delay_ms": round(event.delay * 1000),
                    "error_status": event.status,
                    "error": event.error,
                }
            ]
        case ApprovalAsked(request=request):
            return [
                {
                    "type": "system",
                    "subtype": "permission_asked",
                    "tool_use_id": request.call_id,
                    "title": request.action.title,
                    "reason": request.verdict.reason,
                }
            ]
        case ToolFinished() if event.denied:
            return [{"type": "system", "subtype": "permission_denied", **_denial(event)[0]}]
        case Warned(text=text):
            return [{"type": "system", "subtype": "informational", "message": text}]
        case _:
            return []


def _message(body: object) -> list[dict[str, Any]]:
    match body:
        case UserMessage(text=text):
            return [{"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": text}]}}]
        case AssistantMessage():
            blocks: list[dict[str, Any]] = []
            if reasoning := body.provider_data.get("reasoning"):
                blocks.append({"type": "thinking", "thinking": reasoning})
            if body.text:
                blocks.append({"type": "text", "text": body.text})
            blocks += [
                {"type": "tool_use", "id": call.id, "name": call.name, "input": _arguments(call.arguments)}
                for call in body.tool_calls
            ]
            message = {"role": "assistant", "model": body.model, "content": blocks, "usage": _usage(body.usage)}
            return [{"type": "assistant", "message": message, "parent_tool_use_id": None}]
        case ToolResult():
            block = {
                "type": "tool_result",
                "tool_use_id": body.call_id,
                "content": body.text,
                "is_error": body.is_error,
            }
            return [{"type": "user", "message": {"role": "user", "content": [block]}}]
        case _:
            return []


def _arguments(text: str) -> object:
    try:
        return msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return text


def _usage(usage: Usage | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }


def _denial(event: Event) -> list[dict[str, Any]]:
    if isinstance(event, ToolFinished) and event.denied:
        call = event.call
        return [
            {
                "tool_name": call.name,
                "tool_use_id": call.id,
                "tool_input": _arguments(call.arguments),
                "message": event.result.text,
            }
        ]
    return []


def _result(
    outcome: Outcome, ended: TurnEnded | None, opening: Opening, denials: list[dict[str, Any]]
) -> dict[str, Any]:
    reason = ended.reason if ended else "failed"
    return {
        "type": "result",
        "subtype": _SUBTYPES.get(reason, "error_during_execution"),
        "is_error": outcome.exit_code != 0,
        "exit_code": outcome.exit_code,
        "num_turns": ended.steps if ended else 0,
        "duration_ms": round(ended.seconds * 1000) if ended else 0,
        "result": outcome.text,
        "error": outcome.error,
        "stop_reason": reason,
        "total_cost_usd": ended.usage.cost_usd if ended else None,
        "usage": _usage(ended.usage if ended else None),
        "permission_denials": denials,
        "session_id": opening.session_id,
        "model": opening.model,
    }


def _write(out: TextIO, line: dict[str, Any]) -> None:
    out.write(msgspec.json.encode(line).decode() + "\n")
    out.flush()
