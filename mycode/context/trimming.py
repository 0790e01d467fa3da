"""The hard limit: what goes first when a request would not fit, so that it always does (R1, R22)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from mycode.context.budget import MESSAGE_OVERHEAD, Count, message_tokens
from mycode.context.projection import Shown
from mycode.core.messages import AssistantMessage, ContextNote, ToolResult, UserMessage, ViewMessage

Stub = Callable[[Shown], str]
"""What stands in for a tool result that is trimmed."""


def trim(shown: Sequence[Shown], room: int, count: Count, stub: Stub, keep: int = 2) -> list[Shown]:
    """A view of at most `room` tokens made from `shown`, whose tokens are all counted.

    In this order, and only as far as needed: old tool results become a line; the oldest exchanges go, marked by one
    note; results of the newest exchange become a line; every long text is cut, head and tail; notes go. The newest
    user message goes last of all: it is cut only if it alone is larger than the room. The call of every result stays.
    """
    view = list(shown)
    total = sum(item.tokens for item in view)
    if total <= room:
        return view
    newest = max((i for i, item in enumerate(view) if isinstance(item.message, UserMessage)), default=-1)
    tail = _tail_start(view, keep)
    for index in _results(view, 0, tail):
        if total <= room:
            return view
        total += _stub(view, index, count, stub)
    view = _drop_oldest(view, room, tail, newest, count)
    total = sum(item.tokens for item in view)
    if total <= room:
        return view
    for index in _results(view, 0, len(view)):
        if total <= room:
            return view
        if view[index].tokens > 200:
            total += _stub(view, index, count, stub)
    return _cut_all(view, room, count)


def _tail_start(view: Sequence[Shown], keep: int) -> int:
    index = max(0, len(view) - keep)
    while index > 0 and isinstance(view[index].message, ToolResult):
        index -= 1
    return index


def _results(view: Sequence[Shown], start: int, stop: int) -> list[int]:
    return [i for i in range(start, stop) if isinstance(view[i].message, ToolResult)]


def _stub(view: list[Shown], index: int, count: Count, stub: Stub) -> int:
    item = view[index]
    assert isinstance(item.message, ToolResult)
    smaller = _counted(replace(item, message=replace(item.message, text=stub(item), images=())), count)
    if smaller.tokens >= item.tokens:
        return 0
    view[index] = smaller
    return smaller.tokens - item.tokens


def _drop_oldest(view: list[Shown], room: int, tail: int, newest: int, count: Count) -> list[Shown]:
    """Drops whole exchanges from the oldest on, before `tail`, but neither notes nor the newest user message."""
    mark = _counted(
        Shown(ContextNote("(messages are left out here because the request would not fit)", "omitted")), count
    )
    total = sum(item.tokens for item in view)
    gone: set[int] = set()
    index = 0
    while index < tail and total + mark.tokens > room:
        item = view[index]
        if index == newest or (isinstance(item.message, ContextNote) and item.message.source != "omitted"):
            index += 1
            continue
        end = index + 1
        if isinstance(item.message, AssistantMessage):
            while end < len(view) and isinstance(view[end].message, ToolResult):
                end += 1
        gone.update(range(index, end))
        total -= sum(view[i].tokens for i in range(index, end))
        index = end
    if not gone:
        return view
    first = min(gone)
    out: list[Shown] = []
    for i, item in enumerate(view):
        if i == first:
            out.append(mark)
        if i not in gone:
            out.append(item)
    return out


def _cut_all(view: list[Shown], room: int, count: Count) -> list[Shown]:
    """Cuts the longest texts to one size that makes everything fit; the newest user message as late as possible."""
    newest = max((i for i, item in enumerate(view) if isinstance(item.message, UserMessage)), default=-1)
    spared = {newest} if newest >= 0 and view[newest].tokens <= room * 3 // 4 else set()
    for limit in (4000, 2000, 1000, 500, 250, 120, 60, 30):
        candidate = [item if i in spared else _cut(item, limit, count) for i, item in enumerate(view)]
        if sum(item.tokens for item in candidate) <= room:
            return candidate
    return _last_resort(view, newest, room, count)


def _last_resort(view: list[Shown], newest: int, room: int, count: Count) -> list[Shown]:
    """The newest user message alone, whole if it fits, else as much of it as does."""
    if newest < 0:
        return [_cut_to(item, room, count) for item in view[:1] if isinstance(item.message, ContextNote)]
    tail: list[Shown] = []
    item = view[newest]
    if item.tokens > room:
        return [_cut_to(item, room, count)]
    left = room - item.tokens
    end = len(view)
    start = newest + 1
    group = start
    for i in range(start, end):
        if isinstance(view[i].message, AssistantMessage):
            group = i
    if group < end:
        last = [_cut(one, 30, count) for one in view[group:end]]
        if sum(one.tokens for one in last) <= left:
            tail = last
    return [item, *tail]


def _cut(item: Shown, limit: int, count: Count) -> Shown:
    """The item with every text in it cut to about `limit` tokens."""
    if item.tokens <= limit + 2 * MESSAGE_OVERHEAD:
        return item
    message = item.message
    changed: ViewMessage
    if isinstance(message, AssistantMessage):
        # Arguments are JSON: an object with a note in place of the long ones stays readable to every provider.
        calls = tuple(
            call if count(call.arguments) <= limit else replace(call, arguments='{"_":"arguments left out"}')
            for call in message.tool_calls
        )
        changed = replace(
            message, text=head_and_tail(message.text, limit, count, item.seq), tool_calls=calls, provider_data={}
        )
    elif isinstance(message, ContextNote):
        changed = replace(message, text=head_and_tail(message.text, limit, count, 0))
    else:
        images = () if limit <= 500 else message.images
        text = message.text if images or not message.images else f"{message.text} [picture left out]".lstrip()
        changed = replace(message, text=head_and_tail(text, limit, count, item.seq), images=images)
    smaller = _counted(replace(item, message=changed), count)
    return smaller if smaller.tokens < item.tokens else item


def _cut_to(item: Shown, room: int, count: Count) -> Shown:
    limit = max(1, room)
    cut = _cut(item, limit, count)
    while cut.tokens > room and limit > 1:
        limit = limit * 3 // 4
        cut = _cut(item, limit, count)
    return cut


def head_and_tail(text: str, limit: int, count: Count, seq: int) -> str:
    """The text cut to at most `limit` tokens or so: two thirds head, one third tail, and where the rest is."""
    size = count(text)
    if size <= limit:
        return text
    handle = f"; history_expand m{seq}" if seq else ""
    mark = f"\n[… {size - limit} tokens left out{handle} …]\n"
    room = limit - count(mark)
    if room <= 0:
        return text[: max(0, limit * 2)]
    per_token = max(1.0, len(text) / size)
    chars = int(room * per_token)
    while True:
        head = text[: chars * 2 // 3]
        tail = text[len(text) - chars // 3 :] if chars // 3 else ""
        if count(head) + count(tail) <= room or chars <= 4:
            return head + mark + tail
        chars = chars * 4 // 5


def _counted(item: Shown, count: Count) -> Shown:
    return replace(item, tokens=message_tokens(item.message, count))
