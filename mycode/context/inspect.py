"""What a transcript is made of: who takes how many tokens, what stands in it twice, what masking would save."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from msgspec import Struct

from mycode.context.digests import line, tool_summary
from mycode.core.messages import AssistantMessage, Message, ToolCall, ToolResult, UserMessage


class Share(Struct, frozen=True):
    """A role or tool with its messages and tokens; for a tool, those of its results."""

    name: str
    messages: int
    tokens: int


class Large(Struct, frozen=True):
    """One of the largest messages: its place in the list, what it is, and its tokens."""

    index: int
    name: str
    tokens: int


class Inspection(Struct, frozen=True):
    """The make-up of a transcript; shares are sorted by tokens, largest first."""

    messages: int
    tokens: int
    roles: tuple[Share, ...]
    tools: tuple[Share, ...]
    largest: tuple[Large, ...]
    duplicates: int
    duplicate_tokens: int
    maskable: int
    maskable_saves: int


def describe(messages: Sequence[Message], count: Callable[[str], int], *, keep: int = 10) -> Inspection:
    """Describes a transcript; masking means one-line digests for all results but those in the newest `keep`."""
    calls: dict[str, ToolCall] = {}
    roles: dict[str, list[int]] = defaultdict(list)
    tools: dict[str, list[int]] = defaultdict(list)
    large: list[Large] = []
    seen: set[str] = set()
    duplicates = duplicate_tokens = maskable = saves = 0
    for index, message in enumerate(messages):
        size = _size(message, count)
        name = "user"
        match message:
            case UserMessage():
                roles["user"].append(size)
            case AssistantMessage(tool_calls=made):
                calls.update({call.id: call for call in made})
                roles["assistant"].append(size)
                name = "assistant"
            case ToolResult(call_id=call_id, text=text):
                call = calls.get(call_id)
                name = call.name if call else "unknown tool"
                roles["tool results"].append(size)
                tools[name].append(size)
                if len(text) > 80 and text in seen:
                    duplicates += 1
                    duplicate_tokens += size
                seen.add(text)
                saved = size - count(line(tool_summary(call, message))) - 4
                if index < len(messages) - keep and saved > 0:
                    maskable += 1
                    saves += saved
        large.append(Large(index, name, size))
    return Inspection(
        len(messages),
        sum(item.tokens for item in large),
        _shares(roles),
        _shares(tools),
        tuple(sorted(large, key=lambda item: -item.tokens)[:10]),
        duplicates,
        duplicate_tokens,
        maskable,
        saves,
    )


def _size(message: Message, count: Callable[[str], int]) -> int:
    size = 4 + count(message.text)
    if isinstance(message, AssistantMessage):
        size += sum(count(call.name) + count(call.arguments) + 8 for call in message.tool_calls)
    return size


def _shares(groups: dict[str, list[int]]) -> tuple[Share, ...]:
    return tuple(
        sorted((Share(name, len(sizes), sum(sizes)) for name, sizes in groups.items()), key=lambda s: -s.tokens)
    )
