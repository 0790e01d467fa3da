"""How a request is written in the chat-completions format, for every lane.

Pure: the bytes of images come in through a function. What goes out is always a history that a provider accepts: ids
short and unique, arguments that are JSON, no empty messages, user messages joined.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from mycode.core.messages import AssistantMessage, ContextNote, Image, ToolCall, ToolResult, UserMessage, ViewMessage
from mycode.core.models import ModelRequest
from mycode.core.patterns import pattern

ImageLoader = Callable[[Image], bytes | None]


class Dialect(Struct, frozen=True):
    """What a provider wants said differently.

    `cache_markers`: wants its prompt cache marked. `output_field`: name of the output limit. `usage_option`: takes
    `stream_options`. `reasoning_field`: takes its own reasoning back under that name within a turn. `signed`: takes
    signed thinking blocks and call fields back. `keep_ids`: its call ids carry data and must not be changed.
    """

    vision: bool = True
    cache_markers: bool = False
    output_field: str = "max_tokens"
    usage_option: bool = True
    reasoning_field: str = ""
    signed: bool = False
    keep_ids: bool = False
    json_schema: bool = True
    tool_then_user: bool = True
    image_bytes: int = 12_000_000


def request_body(
    request: ModelRequest,
    *,
    model: str,
    full_name: str = "",
    dialect: Dialect,
    load_image: ImageLoader | None = None,
    effort: str | None = None,
) -> dict[str, Any]:
    """The body of a streaming request; thinking of an earlier turn or of another model than `full_name` is left out."""
    body: dict[str, Any] = {"model": model, "messages": _messages(request, full_name, dialect, load_image)}
    if request.tools and request.json_schema is None:
        body["tools"] = [_tool(spec.name, spec.description, spec.parameters) for spec in request.tools]
        if dialect.cache_markers:
            body["tools"][-1]["cache_control"] = _EPHEMERAL
    if request.json_schema is not None:
        body["response_format"] = _response_format(request.json_schema, dialect)
    if request.max_output_tokens is not None:
        body[dialect.output_field] = request.max_output_tokens
    if effort:
        body["reasoning_effort"] = effort
    body["stream"] = True
    if dialect.usage_option:
        body["stream_options"] = {"include_usage": True}
    mended: dict[str, Any] = sound(body)
    return mended


def sound(value: Any) -> Any:
    """The same value without halves of surrogate pairs, which no JSON on a wire may hold."""
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return _mended(value)
    return value


def without_thinking(body: dict[str, Any]) -> dict[str, Any] | None:
    """The same request without any thinking sent back, or None if it held none."""
    fields = ("thinking_blocks", "reasoning_content", "reasoning", "reasoning_details")
    messages = [{name: value for name, value in one.items() if name not in fields} for one in body["messages"]]
    return None if messages == body["messages"] else {**body, "messages": messages}


def without_images(body: dict[str, Any]) -> dict[str, Any] | None:
    """The same request with its oldest half of the images as notes, or None if it held none."""
    places = [
        (at, index)
        for at, message in enumerate(body["messages"])
        if isinstance(message.get("content"), list)
        for index, part in enumerate(message["content"])
        if part.get("type") == "image_url"
    ]
    if not places:
        return None
    messages = list(body["messages"])
    for at, index in places[: (len(places) + 1) // 2]:
        content = list(messages[at]["content"])
        content[index] = {"type": "text", "text": "[an image was here; it was left out to make room]"}
        messages[at] = {**messages[at], "content": content}
    return {**body, "messages": messages}


# ------------------------------------------------------------------------------------------------------- the request

_EPHEMERAL = {"type": "ephemeral"}
_SOURCES = "summary|memory|pins|footer|omitted"
_ID = pattern(r"[A-Za-z0-9_-]{1,64}")


def _messages(
    request: ModelRequest, full_name: str, dialect: Dialect, load_image: ImageLoader | None
) -> list[dict[str, Any]]:
    ids = _Ids(keep=dialect.keep_ids)
    images = _Images(request.messages, dialect, load_image)
    turn = _turn_start(request.messages)
    stable = _last_stable(request.messages) if dialect.cache_markers else -1
    out: list[dict[str, Any]] = []
    pending: list[dict[str, Any]] = []  # images of tool results, shown after the last result of the group
    for index, message in enumerate(request.messages):
        if not isinstance(message, ToolResult) and pending:
            _add_user(out, pending)
            pending = []
        match message:
            case UserMessage():
                _add_user(out, [*_text(message.text), *images.parts(message.images)])
            case ContextNote():
                _add_note(out, note_text(message), dialect)
            case AssistantMessage():
                # What was thought is sent back within the running turn only, to the model that thought it.
                own = index > turn and message.model == full_name
                if said := _assistant(message, ids, dialect if own else None):
                    out.append(said)
            case ToolResult():
                text = message.text or "(no output)"
                out.append({"role": "tool", "tool_call_id": ids.answer(message.call_id), "content": text})
                if message.images:
                    pending += [*_text("Images of the tool result above:"), *images.parts(message.images)]
        if index == stable and out:
            _mark(out[-1])
    if pending:
        _add_user(out, pending)
    system = _text(request.system)
    if system and dialect.cache_markers:
        system[0]["cache_control"] = _EPHEMERAL
    head: list[dict[str, Any]] = [{"role": "system", "content": _content(system)}] if system else []
    return head + [{**one, "content": _content(one["content"])} if one["role"] == "user" else one for one in out]


def note_text(note: ContextNote) -> str:
    """The note inside a tag named after its source, which nothing inside it can close or open (C14)."""
    inside = re.sub(rf"(?i)<(?=\s*/?\s*(?:{_SOURCES})\b)", "&lt;", note.text)
    return f"<{note.source}>\n{inside}\n</{note.source}>"


def _assistant(message: AssistantMessage, ids: _Ids, dialect: Dialect | None) -> dict[str, Any] | None:
    ids.step()
    calls = [_call(call, ids) for call in message.tool_calls]
    if not calls and not message.text.strip():
        return None
    out: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    if calls:
        out["tool_calls"] = calls
    if dialect is None:
        return out
    if dialect.signed:
        if blocks := message.provider_data.get("thinking_blocks"):
            out["thinking_blocks"] = blocks
        fields = message.provider_data.get("call_fields", {})
        for call, wire in zip(message.tool_calls, calls, strict=True):
            if call.id in fields:
                wire["provider_specific_fields"] = fields[call.id]
    if dialect.reasoning_field:
        if details := message.provider_data.get("reasoning_details"):
            out["reasoning_details"] = details
        elif thought := message.provider_data.get("reasoning"):
            out[dialect.reasoning_field] = thought
    return out


def _call(call: ToolCall, ids: _Ids) -> dict[str, Any]:
    try:
        whole = isinstance(msgspec.json.decode(call.arguments), dict)
    except msgspec.DecodeError:
        whole = False
    # Several providers reject a history whose arguments are no JSON object, long after the runner said so.
    arguments = call.arguments if whole else msgspec.json.encode({"invalid_arguments": call.arguments}).decode()
    return {"id": ids.ask(call.id), "type": "function", "function": {"name": call.name, "arguments": arguments}}


class _Ids:
    """Call ids as a provider takes them: letters, digits, `_` and `-`, at most 64, each asked and answered once."""

    def __init__(self, *, keep: bool) -> None:
        self._keep = keep
        self._used: set[str] = set()
        self._open: dict[str, list[str]] = {}

    def step(self) -> None:
        """What follows answers the calls of a new message."""
        self._open.clear()

    def ask(self, call_id: str) -> str:
        wire = call_id
        if not self._keep and not _ID.fullmatch(call_id):
            wire = "call_" + hashlib.sha256(call_id.encode()).hexdigest()[:24]
        base, number = wire, 1
        while wire in self._used:
            number += 1
            wire = f"{base[:58]}_{number}"
        self._used.add(wire)
        self._open.setdefault(call_id, []).append(wire)
        return wire

    def answer(self, call_id: str) -> str:
        if not self._open.get(call_id):
            self.ask(call_id)
        return self._open[call_id].pop(0)


class _Images:
    """Pictures as data URLs, the newest first served until the byte budget of the request is used up."""

    def __init__(self, messages: tuple[ViewMessage, ...], dialect: Dialect, load: ImageLoader | None) -> None:
        self._load = load if dialect.vision else None
        self._why = "this model sees no images" if load and not dialect.vision else "it was left out to make room"
        self._kept: set[str] = set()
        left = dialect.image_bytes
        for message in reversed(messages):
            for image in getattr(message, "images", ()):
                if image.sha256 not in self._kept and image.size <= left:
                    self._kept.add(image.sha256)
                    left -= image.size

    def parts(self, images: tuple[Image, ...]) -> list[dict[str, Any]]:
        return [self._part(image) for image in images]

    def _part(self, image: Image) -> dict[str, Any]:
        data = self._load(image) if self._load and image.sha256 in self._kept else None
        if data is None:
            return {"type": "text", "text": f"[image {image.path}: {self._why}]"}
        url = f"data:{image.media_type};base64,{base64.b64encode(data).decode()}"
        return {"type": "image_url", "image_url": {"url": url}}


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _add_user(out: list[dict[str, Any]], parts: list[dict[str, Any]]) -> None:
    """Joins neighbours: the templates of many local models insist on turns that alternate."""
    if not parts:
        return
    if out and out[-1]["role"] == "user":
        out[-1]["content"] = [*out[-1]["content"], *parts]
    else:
        out.append({"role": "user", "content": parts})


def _add_note(out: list[dict[str, Any]], text: str, dialect: Dialect) -> None:
    if out and out[-1]["role"] == "tool" and not dialect.tool_then_user:
        out[-1]["content"] += f"\n\n{text}"
    else:
        _add_user(out, _text(text))


def _content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Plain text where nothing but text is there: every server understands that."""
    if all(set(part) == {"type", "text"} for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def _turn_start(messages: tuple[ViewMessage, ...]) -> int:
    return max((index for index, one in enumerate(messages) if isinstance(one, UserMessage)), default=-1)


def _last_stable(messages: tuple[ViewMessage, ...]) -> int:
    """The last message that the next request will hold unchanged: the footer changes with every step."""
    volatile = ("footer",)
    return max(
        (i for i, one in enumerate(messages) if not (isinstance(one, ContextNote) and one.source in volatile)),
        default=-1,
    )


def _mark(message: dict[str, Any]) -> None:
    content = message["content"]
    if isinstance(content, list):
        content[-1] = {**content[-1], "cache_control": _EPHEMERAL}
    elif message["role"] == "tool":
        message["cache_control"] = _EPHEMERAL
    elif content:
        message["content"] = [{"type": "text", "text": content, "cache_control": _EPHEMERAL}]


def _tool(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_mended(name): _mended(one) for name, one in value.items()}
    return [_mended(one) for one in value] if isinstance(value, list) else value


def _response_format(schema: dict[str, Any], dialect: Dialect) -> dict[str, Any]:
    if not dialect.json_schema:
        return {"type": "json_object"}
    name = re.sub(r"[^A-Za-z0-9_-]", "_", str(schema.get("title", "answer")))[:64]
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}
