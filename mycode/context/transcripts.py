"""Transcripts as other programs write them, read into our messages: OpenAI-style lists and Anthropic-style blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from mycode.core.errors import InputError
from mycode.core.messages import AssistantMessage, Message, ToolCall, ToolResult, UserMessage

MESSAGE_OVERHEAD = 4
CALL_OVERHEAD = 8


class Item(Struct, frozen=True):
    """One message of a transcript: its place in the list, the dict as it came, and what it says in our nouns.

    `messages` is empty for system messages; one dict with several tool results gives several messages.
    """

    index: int
    raw: dict[str, Any]
    messages: tuple[Message, ...]

    @property
    def is_system(self) -> bool:
        return not self.messages

    @property
    def is_person(self) -> bool:
        """Whether a person speaks here, and no tool result comes back with it."""
        return bool(self.messages) and all(isinstance(message, UserMessage) for message in self.messages)


def read_items(messages: object) -> list[Item]:
    """Reads a transcript of either style. Raises InputError that names the message which cannot be read."""
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        raise InputError("A transcript is a list of messages; this is " + _article(messages) + ".")
    return [_item(index, raw) for index, raw in enumerate(messages)]


def steps(items: Sequence[Item]) -> list[list[Item]]:
    """Groups that must stay together: an answer with the results of its calls; everything else stands alone."""
    out: list[list[Item]] = []
    for item in items:
        if out and any(isinstance(m, ToolResult) for m in item.messages):
            out[-1].append(item)
        else:
            out.append([item])
    return out


def is_whole(step: Sequence[Item]) -> bool:
    """Whether every call in a step has exactly one result in it, and every result its call."""
    calls = [c.id for item in step for m in item.messages if isinstance(m, AssistantMessage) for c in m.tool_calls]
    results = [m.call_id for item in step for m in item.messages if isinstance(m, ToolResult)]
    return sorted(calls) == sorted(results) and len(set(calls)) == len(calls)


def tokens(raw: Mapping[str, Any], count: Callable[[str], int]) -> int:
    """What one message costs: its texts, 4 for being a message, and 8 for each call beside its name and arguments."""
    total = MESSAGE_OVERHEAD
    for text in _texts(raw.get("content")):
        total += count(text)
    for call in raw.get("tool_calls") or ():
        function = call.get("function") or call
        total += count(str(function.get("name") or "")) + count(_arguments(function)) + CALL_OVERHEAD
    if isinstance(content := raw.get("content"), list):
        for block in content:
            if isinstance(block, Mapping) and block.get("type") == "tool_use":
                total += count(str(block.get("name"))) + count(_json(block.get("input"))) + CALL_OVERHEAD
    return total


def with_text(item: Item, index: int, text: str) -> dict[str, Any]:
    """The item's dict with the text of one of its messages replaced; a shape it does not know becomes plain text."""
    raw, content = item.raw, item.raw.get("content")
    if not isinstance(content, list):
        return {**raw, "content": text}
    target = item.messages[index]
    if isinstance(target, ToolResult):
        return {
            **raw,
            "content": [
                {**block, "content": text}
                if isinstance(block, Mapping)
                and block.get("type") == "tool_result"
                and block.get("tool_use_id") == target.call_id
                else block
                for block in content
            ]
            if any(isinstance(block, Mapping) and block.get("type") == "tool_result" for block in content)
            else text,
        }
    others = [b for b in content if not (isinstance(b, Mapping) and b.get("type") == "text")]
    return {**raw, "content": [*others, {"type": "text", "text": text}]}


def _item(index: int, raw: object) -> Item:
    if not isinstance(raw, Mapping):
        raise InputError(f"Message {index} is {_article(raw)}, not an object with a role and a content.")
    role = raw.get("role")
    if not isinstance(role, str | None):
        raise InputError(f"Message {index} has a role that is {_article(role)}, not a text.")
    if role in {"system", "developer"}:
        _check_content(index, raw)
        return Item(index, dict(raw), ())
    if role not in {"user", "assistant", "tool", "function"}:
        shown = f"the role {role!r}" if role is not None else "no role"
        raise InputError(f"Message {index} has {shown}; known are system, developer, user, assistant and tool.")
    _check_content(index, raw)
    if role == "assistant":
        return Item(index, dict(raw), (_assistant(index, raw),))
    if role in {"tool", "function"}:
        call_id = raw.get("tool_call_id") or raw.get("name")
        if not isinstance(call_id, str):
            raise InputError(f"Message {index} is a tool result without tool_call_id, so its call cannot be found.")
        return Item(index, dict(raw), (ToolResult(call_id, _plain(raw.get("content"))),))
    return Item(index, dict(raw), _user(index, raw))


def _assistant(index: int, raw: Mapping[str, Any]) -> AssistantMessage:
    calls: list[ToolCall] = []
    found = raw.get("tool_calls")
    if found is not None and not isinstance(found, list):
        raise InputError(f"Message {index} has tool_calls that are {_article(found)}, not a list.")
    for number, call in enumerate(found or ()):
        function = call.get("function", call) if isinstance(call, Mapping) else None
        if (
            not isinstance(call, Mapping)
            or not isinstance(function, Mapping)
            or not isinstance(function.get("name"), str)
        ):
            raise InputError(f"Message {index} has a tool call ({number}) without a function name.")
        if not isinstance(call.get("id"), str):
            raise InputError(f"Message {index} has a tool call ({number}) without an id.")
        calls.append(ToolCall(call["id"], function["name"], _arguments(function)))
    if isinstance(legacy := raw.get("function_call"), Mapping) and isinstance(legacy.get("name"), str):
        calls.append(ToolCall(legacy["name"], legacy["name"], _arguments(legacy)))
    content = raw.get("content")
    if isinstance(content, list):
        for block in content:
            if block.get("type") == "tool_use":
                if not isinstance(block.get("id"), str) or not isinstance(block.get("name"), str):
                    raise InputError(f"Message {index} has a tool_use block without an id or a name.")
                calls.append(ToolCall(block["id"], block["name"], _json(block.get("input"))))
    return AssistantMessage(_plain(content), tuple(calls), "tool_calls" if calls else "stop")


def _user(index: int, raw: Mapping[str, Any]) -> tuple[Message, ...]:
    content = raw.get("content")
    if not isinstance(content, list):
        return (UserMessage(content or ""),)
    out: list[Message] = []
    for block in content:
        if block.get("type") == "tool_result":
            if not isinstance(block.get("tool_use_id"), str):
                raise InputError(f"Message {index} has a tool_result block without tool_use_id.")
            out.append(ToolResult(block["tool_use_id"], _plain(block.get("content")), bool(block.get("is_error"))))
    text = _plain([block for block in content if block.get("type") != "tool_result"])
    if text or not out:
        out.append(UserMessage(text))
    return tuple(out)


def _check_content(index: int, raw: Mapping[str, Any]) -> None:
    content = raw.get("content")
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise InputError(f"Message {index} has a content that is {_article(content)}, not text or a list of blocks.")
    for block in content:
        if not isinstance(block, Mapping):
            raise InputError(
                f"Message {index} has a content block that is {_article(block)}, not an object with a type."
            )


def _plain(content: object) -> str:
    return "\n".join(_texts(content))


def _texts(content: object) -> list[str]:
    """The readable texts of a content, results included; pictures and the like are named, never copied."""
    if content is None:
        return []
    if isinstance(content, str):
        return [content] if content else []
    if not isinstance(content, list):
        return [str(content)]
    out: list[str] = []
    for block in content:
        if isinstance(block, str):
            out.append(block)
        elif isinstance(block, Mapping):
            kind = block.get("type")
            if isinstance(block.get("text"), str):
                out.append(block["text"])
            elif kind == "tool_result":
                out += _texts(block.get("content"))
            elif kind not in {"tool_use", "thinking", "redacted_thinking"}:
                out.append(f"[{kind or 'block'}]")
    return out


def _arguments(function: Mapping[str, Any]) -> str:
    value = function.get("arguments")
    return value if isinstance(value, str) else _json(value)


def _json(value: object) -> str:
    return msgspec.json.encode(value if value is not None else {}).decode()


def _article(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "nothing"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else f"a {type(value).__name__}")
