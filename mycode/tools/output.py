"""How a tool's text is shown to the model when it is too long: its head, its tail, and where the whole of it is."""

from __future__ import annotations

from collections.abc import Callable

_HEAD_SHARE = 0.6


def clip(text: str, limit: int, keep: Callable[[str], str]) -> str:
    """`text` in at most about `limit` characters; what is cut out is named, the whole text kept under a handle."""
    if len(text) <= limit:
        return text
    handle = keep(text)
    room = limit - 100  # the line that says what is missing
    head_room = max(0, int(room * _HEAD_SHARE))
    head = _whole_lines_from_start(text, head_room)
    tail = _whole_lines_from_end(text, max(0, room - head_room))
    middle = text[len(head) : len(text) - len(tail)]
    lines = middle.count("\n") + (not middle.endswith("\n"))
    amount = f"{lines:,} lines" if lines > 1 else f"{len(middle):,} characters"
    mark = f"… {amount} omitted, whole text: history_expand {handle}\n"
    return f"{head}{'' if not head or head.endswith(chr(10)) else chr(10)}{mark}{tail}"


def _whole_lines_from_start(text: str, room: int) -> str:
    """Up to `room` characters, ending at a line end unless that would throw away more than half."""
    end = text.rfind("\n", 0, room) + 1
    return text[: end if end > room // 2 else room]


def _whole_lines_from_end(text: str, room: int) -> str:
    start = len(text) - room
    at = text.find("\n", start - 1 if start else 0) + 1
    return text[at if 0 < at < start + room // 2 else start :]
