"""What holds for every view, whatever was said and done before: each promise named, each breach described."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mycode.core.messages import AssistantMessage, ContextNote, ToolResult, UserMessage, ViewMessage

View = Sequence[ViewMessage]
Invariant = Callable[[View], Iterator[str]]


def each_call_has_one_adjacent_result(view: View) -> Iterator[str]:
    index = 0
    while index < len(view):
        message = view[index]
        index += 1
        if isinstance(message, ToolResult):
            yield f"item {index - 1}: the result of {message.call_id!r} follows no call"
        elif isinstance(message, AssistantMessage):
            expected = [call.id for call in message.tool_calls]
            found: list[str] = []
            while index < len(view) and len(found) < len(expected):
                result = view[index]
                if not isinstance(result, ToolResult):
                    break
                found.append(result.call_id)
                index += 1
            if found != expected:
                yield f"item {index - 1}: calls {expected} are answered by {found}"


def no_view_opens_with_an_answer(view: View) -> Iterator[str]:
    if view and isinstance(view[0], AssistantMessage | ToolResult):
        yield f"item 0: the view opens with a {type(view[0]).__name__}"


def no_answer_follows_an_answer(view: View) -> Iterator[str]:
    for index in range(1, len(view)):
        before, message = view[index - 1], view[index]
        if isinstance(message, AssistantMessage) and isinstance(before, AssistantMessage):
            yield f"item {index}: two answers in a row"


def no_message_is_empty(view: View) -> Iterator[str]:
    for index, message in enumerate(view):
        empty = False
        match message:
            case AssistantMessage():
                empty = not message.text.strip() and not message.tool_calls
            case UserMessage():
                empty = not message.text.strip() and not message.images
            case ContextNote():
                empty = not message.text.strip()
            case ToolResult():
                pass  # a tool may well have nothing to say
        if empty:
            yield f"item {index}: an empty {type(message).__name__}"


def passages_stand_in_their_order(view: View) -> Iterator[str]:
    """Memory, pins and summary open the view in this order; a footer closes it."""
    rank = {"memory": 0, "pins": 1, "summary": 2}
    opening: list[int] = []
    for message in view:
        if not isinstance(message, ContextNote) or message.source not in rank:
            break
        opening.append(rank[message.source])
    if opening != sorted(opening):
        yield f"the view opens with passages in the order {opening}"
    for index, message in enumerate(view):
        if isinstance(message, ContextNote) and message.source == "footer" and index != len(view) - 1:
            yield f"item {index}: a footer that is not last"
        late = isinstance(message, ContextNote) and message.source in {"memory", "pins"} and index >= len(opening)
        if late:
            yield f"item {index}: memory or pins after the opening"


ALWAYS: tuple[Invariant, ...] = (
    each_call_has_one_adjacent_result,
    no_view_opens_with_an_answer,
    no_answer_follows_an_answer,
    no_message_is_empty,
    passages_stand_in_their_order,
)


def broken(view: View) -> tuple[str, ...]:
    """Every breach in the view, as sentences that begin with the name of the promise; empty for every good view."""
    return tuple(f"{check.__name__}: {breach}" for check in ALWAYS for breach in check(view))
