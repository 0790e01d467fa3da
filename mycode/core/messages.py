"""What is said in a conversation: by the user, by the model, and by the tools.

The system prompt is a parameter of a request (`core.models.ModelRequest`), never a message of the history.
All values are frozen, survive a JSON round trip, and are told apart by the field `kind`.
"""

from typing import Any, Literal

from msgspec import Struct

from mycode.core.usage import Usage

FinishReason = Literal["stop", "tool_calls", "length", "refusal", "interrupted"]


class Image(Struct, frozen=True):
    """A picture kept outside the message: `path` of the stored bytes, its type, sha256 (hex) and size in bytes."""

    path: str
    media_type: str
    sha256: str
    size: int


class ToolCall(Struct, frozen=True):
    """One call the model asks for; `arguments` is the JSON text as it came, unchecked until the runner validates it."""

    id: str
    name: str
    arguments: str


class UserMessage(Struct, frozen=True, tag_field="kind", tag="user"):
    """What the person said (or the shell piped in)."""

    text: str
    images: tuple[Image, ...] = ()


class AssistantMessage(Struct, frozen=True, tag_field="kind", tag="assistant"):
    """One whole answer of the model.

    `usage` is what the provider reported (None when it did not); `provider_data` is what only the adapter that made
    it understands (reasoning text under "reasoning", signed thinking blocks, ...), sent back untouched or dropped.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    finish: FinishReason = "stop"
    model: str = ""
    usage: Usage | None = None
    provider_data: dict[str, Any] = {}


class ToolResult(Struct, frozen=True, tag_field="kind", tag="tool"):
    """The answer to one tool call, as the model reads it. A failure is a result too: `is_error`."""

    call_id: str
    text: str
    is_error: bool = False
    images: tuple[Image, ...] = ()


class ContextNote(Struct, frozen=True, tag_field="kind", tag="note"):
    """A passage that only a view holds: laid in by the context engine, told apart by `source`, never by its text (C15).

    Providers that know no such role get it as a user message inside a tag named after `source` (C14).
    """

    text: str
    source: Literal["summary", "memory", "pins", "footer", "omitted"]
    record_id: str = ""


Message = UserMessage | AssistantMessage | ToolResult
ViewMessage = UserMessage | AssistantMessage | ToolResult | ContextNote
