"""What the log keeps where secrets are not to be kept: the same entries with every secret masked."""

from __future__ import annotations

import json
from collections.abc import Callable

from msgspec.structs import replace

from mycode.core.entries import Body, Grant
from mycode.core.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from mycode.core.summaries import Pin

Redact = Callable[[str], str]


def masked(body: Body, redact: Redact) -> Body:
    """The body with its secrets masked. Summaries are masked when they are made; pictures stay as they are."""
    match body:
        case UserMessage(text=text) | ToolResult(text=text) | Pin(text=text):
            return replace(body, text=redact(text))
        case AssistantMessage():
            calls = tuple(replace(call, arguments=_arguments(call, redact)) for call in body.tool_calls)
            # Signed passages cannot be changed, only left out.
            known = json.dumps(body.provider_data, ensure_ascii=False, default=str)
            data = body.provider_data if redact(known) == known else {}
            return replace(body, text=redact(body.text), tool_calls=calls, provider_data=data)
        case Grant():
            return replace(body, title=redact(body.title), rule=body.rule and redact(body.rule))
        case _:
            return body


def _arguments(call: ToolCall, redact: Redact) -> str:
    """The arguments masked value by value, so that they are still JSON if they were."""
    try:
        values = json.loads(call.arguments)
        inside = _values(values, redact)
    except (ValueError, RecursionError):
        return redact(call.arguments)
    # What only the whole shows (a name beside its value) is masked too, unless that would break the JSON.
    text = call.arguments if inside == values else json.dumps(inside, ensure_ascii=False)
    plain = redact(text)
    try:
        json.loads(plain)
    except ValueError:
        return text
    return plain


def _values(value: object, redact: Redact) -> object:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact(str(key)): _values(item, redact) for key, item in value.items()}
    if isinstance(value, list):
        return [_values(item, redact) for item in value]
    return value
