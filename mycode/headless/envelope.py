"""The JSON lines in which a turn is told to other programs (pure); `docs/events.md` lists them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from mycode.core.events import (
    ApprovalAsked,
    ContextMasked,
    Event,
    MessageAdded,
    ReasoningDelta,
    Retrying,
    SummaryFinished,
    TextDelta,
    ToolFinished,
    TurnEnded,
    Warned,
)
from mycode.core.messages import AssistantMessage, ToolResult, UserMessage
from mycode.core.summaries import MaskEpoch, SummaryRecord
from mycode.core.usage import Usage

Line = dict[str, Any]
_SUBTYPES = {
    "done": "success",
    "turn_limit": "error_max_turns",
    "budget": "error_max_budget_usd",
    "denied": "error_permission_denied",
    "cannot_ask": "error_cannot_ask",
    "truncated": "error_truncated",
    "refused": "error_refused",
    "interrupted": "error_interrupted",
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


def lines(event: Event, *, partial: bool) -> list[Line]:
    """The lines an event is told in, without session and time; `partial` tells deltas, too."""
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
        case ContextMasked(entry=entry, tokens_before=before, tokens_after=after):
            reason = entry.body.trigger if isinstance(entry.body, MaskEpoch) else None
            sizes = {"reason": reason, "pre_tokens": before, "post_tokens": after}
            return [{"type": "system", "subtype": "context_masked", **sizes}]
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
            return [{"type": "system", "subtype": "permission_denied", **denials(event)[0]}]
        case Warned(text=text):
            return [{"type": "system", "subtype": "informational", "message": text}]
        case _:
            return []


def _message(body: object) -> list[Line]:
    match body:
        case UserMessage(text=text):
            return [{"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": text}]}}]
        case AssistantMessage():
            blocks: list[Line] = []
            if reasoning := body.provider_data.get("reasoning"):
                blocks.append({"type": "thinking", "thinking": reasoning})
            if body.text:
                blocks.append({"type": "text", "text": body.text})
            blocks += [
                {"type": "tool_use", "id": call.id, "name": call.name, "input": _arguments(call.arguments)}
                for call in body.tool_calls
            ]
            message = {"role": "assistant", "model": body.model, "content": blocks, "usage": usage_object(body.usage)}
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


def usage_object(usage: Usage | None) -> Line | None:
    if usage is None:
        return None
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }


def denials(event: Event) -> list[Line]:
    """The entry of `permission_denials` that an event makes, if any."""
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


def result(outcome: Outcome, ended: TurnEnded | None, opening: Opening, denials: list[Line]) -> Line:
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
        "usage": usage_object(ended.usage if ended else None),
        "permission_denials": denials,
        "session_id": opening.session_id,
        "model": opening.model,
    }
