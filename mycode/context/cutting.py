"""Where the past may be folded: never between a call and its results, and only forwards."""

from __future__ import annotations

from collections.abc import Sequence

from mycode.context.projection import Row
from mycode.core.messages import AssistantMessage, ToolResult, UserMessage


def legal(rows: Sequence[Row], index: int) -> bool:
    """Whether a cut before `rows[index]` leaves every result, even one still to come, on the side of its call."""
    for i in range(index, len(rows)):
        if isinstance(rows[i].message, ToolResult):
            return False
        if isinstance(rows[i].message, AssistantMessage):
            return True
    return index == len(rows) or not _is_open(rows, index)


def _is_open(rows: Sequence[Row], stop: int) -> bool:
    """Whether calls of the newest answer before `stop` have no result yet."""
    answered: list[str] = []
    for i in range(stop - 1, -1, -1):
        message = rows[i].message
        if isinstance(message, ToolResult):
            answered.append(message.call_id)
        elif isinstance(message, AssistantMessage):
            return any(call.id not in answered for call in message.tool_calls)
    return False


def newest_user(rows: Sequence[Row]) -> int | None:
    """Index of the newest thing the person really said."""
    for index in range(len(rows) - 1, -1, -1):
        message = rows[index].message
        if isinstance(message, UserMessage) and (message.text.strip() or message.images):
            return index
    return None


def choose_cut(rows: Sequence[Row], keep: int, floor: int, max_tail_tokens: int) -> int:
    """How many of the oldest rows a fold takes (0: none).

    Keeps the newest `keep` messages if they hold at most `max_tail_tokens`, fewer otherwise, never fewer than `floor`;
    moves back to a legal boundary where there is one, forwards if going back would keep everything.
    """
    keep = max(keep, floor)
    held = 0
    index = len(rows)
    while index > 0 and len(rows) - index < keep:
        cost = rows[index - 1].tokens
        if len(rows) - index >= floor and held + cost > max_tail_tokens:
            break
        held += cost
        index -= 1
    return _settle(rows, index)


def _settle(rows: Sequence[Row], index: int) -> int:
    back = index
    while back > 0 and not legal(rows, back):
        back -= 1
    if back > 0:
        return back
    forward = index
    while forward < len(rows) and not legal(rows, forward):
        forward += 1
    return forward if 0 < forward < len(rows) else 0
