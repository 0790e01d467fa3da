"""A long transcript made short without a model, so that what will be needed again is still in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycode.context import reuse
from mycode.context.names import Names
from mycode.context.passages import Passage, Reader
from mycode.context.selection import read_digest, select
from mycode.context.transcripts import MESSAGE_OVERHEAD, Item, is_whole, read_items, steps, tokens, with_text
from mycode.core.errors import InputError
from mycode.core.messages import AssistantMessage, ToolCall, ToolResult, UserMessage

Count = Callable[[str], int]
TITLE = "[Earlier conversation, folded: per message what it was, then its lines and names worth keeping]\n"
FIRST_SHARE = 0.15
TIGHT_ROOM, TIGHT_TAIL_SHARE, TAIL_SHARE = 0.12, 0.2, 0.3
"""What part of the room the newest steps get; less where the room is a small part of the whole: names serve better."""
SMALL_ROOM, SMALL_TAIL_SHARE = 1500, 0.12
"""In fewer tokens than this a whole step rarely has a place."""
LAST_PROMPT_SHARE = 0.1
LEAST = 32
"""Tokens that a message needs to say anything at all."""


def compress(
    messages: list[dict[str, Any]], budget_tokens: int, *, count: Count, mode: str = "rules"
) -> list[dict[str, Any]]:
    """Fewer messages of the same style, at most `budget_tokens` by `count` (plus 4 per message and 8 per call).

    System messages pass untouched and count. The first user message stays (clipped only if it would take over a fifth),
    the newest steps stay verbatim with calls and results paired; all between becomes one user message to read. A list
    that fits is given back as it is; one that was compressed before may be compressed again. Raises InputError for what
    is no transcript, and for a budget that nothing fits in.
    """
    if mode != "rules":
        raise InputError(f"The mode {mode!r} needs a model; here only 'rules' is possible.")
    items = read_items(messages)
    sizes = [tokens(item.raw, count) for item in items]
    pairs_whole = all(is_whole(step) for step in steps([item for item in items if not item.is_system]))
    if sum(sizes) <= budget_tokens and pairs_whole:
        return list(messages)
    return _Compression(items, sizes, budget_tokens, count).run()


class _Compression:
    """One run: what it was given and what it has left."""

    def __init__(self, items: list[Item], sizes: list[int], budget: int, count: Count):
        self.systems = [item for item in items if item.is_system]
        self.items = [item for item in items if not item.is_system]
        self.sizes = {item.index: size for item, size in zip(items, sizes, strict=True)}
        self.count = count
        self.fixed = sum(self.sizes[item.index] for item in self.systems)
        self.budget = budget - self.fixed

    def run(self) -> list[dict[str, Any]]:
        first = next((item for item in self.items if item.is_person), None)
        least = self.fixed + (min(self.sizes[first.index], LEAST) if first else LEAST if self.items else 0)
        if self.budget + self.fixed < least:
            raise InputError(
                f"A budget of {self.budget + self.fixed} tokens is too small: at least {least} are needed here."
            )
        head = [self._clipped(first, max(LEAST, int(self.budget * FIRST_SHARE)))] if first else []
        left = self.budget - self._size(head)
        rest = [item for item in self.items if item is not first]
        share = TIGHT_TAIL_SHARE if left < TIGHT_ROOM * sum(self.sizes.values()) else TAIL_SHARE
        result = self._result(first, head, rest, int(left * (SMALL_TAIL_SHARE if left < SMALL_ROOM else share)), left)
        size = self._size(result)
        if (spare := left - size) > 0.04 * left:
            # Every name is in already: more of the newest steps word for word is worth most.
            for tail in (int(left * share) + spare, spare):
                fuller = self._result(first, head, rest, min(tail, left), left)
                if size < self._size(fuller) <= left:
                    result = fuller
                    break
        return [*(item.raw for item in self.systems), *head, *result]

    def _result(
        self, first: Item | None, head: list[dict[str, Any]], rest: list[Item], newest_room: int, left: int
    ) -> list[dict[str, Any]]:
        """What follows the first message in `left` tokens, of which the newest steps get at most `newest_room`."""
        newest, tail = self._tail(steps(rest), newest_room)
        kept = {item.index for item in newest}
        folded = [item for item in rest if item.index not in kept]
        asked = next((item for item in reversed(folded) if item.is_person), None)
        if asked and self.sizes[asked.index] <= LAST_PROMPT_SHARE * left and not any(i.is_person for i in newest):
            folded = [item for item in folded if item is not asked]
            newest, tail = [asked, *newest], [asked.raw, *tail]
        room = left - self._size(tail) - MESSAGE_OVERHEAD - self.count(TITLE)
        text = self._fold(folded, newest, first, _shown(head), room)
        while text and self.count(TITLE + text) > left - self._size(tail) - MESSAGE_OVERHEAD:
            text = text.rpartition("\n")[0]  # joined to its title a text may cost a token more than the two apart
        return [*([{"role": "user", "content": TITLE + text}] if text else []), *tail]

    def _size(self, messages: list[dict[str, Any]]) -> int:
        return sum(tokens(raw, self.count) for raw in messages)

    def _clipped(self, item: Item, budget: int) -> dict[str, Any]:
        if self.sizes[item.index] <= budget:
            return item.raw
        place = next(
            k for k, message in enumerate(item.messages) if isinstance(message, UserMessage | AssistantMessage)
        )
        clipped = with_text(item, place, clip(item.messages[place].text, budget - 8, self.count))
        if tokens(clipped, self.count) <= budget:
            return clipped
        return {"role": item.raw["role"], "content": clip(item.messages[place].text, budget - 8, self.count)}

    def _tail(
        self, groups: list[list[Item]], budget: int, *, whole: bool = False
    ) -> tuple[list[Item], list[dict[str, Any]]]:
        kept: list[Item] = []
        out: list[dict[str, Any]] = []
        for group in reversed(groups):
            size = sum(self.sizes[item.index] for item in group)
            if not is_whole(group):
                if kept:
                    break
                continue  # a call still without its result cannot be sent: it is folded like the rest
            if size > budget:
                if (whole or not kept) and (shrunk := self._shrunk(group, budget)):
                    return [*group, *kept], [*shrunk, *out]
                break
            budget -= size
            kept = [*group, *kept]
            out = [*(item.raw for item in group), *out]
        return kept, out

    def _shrunk(self, group: list[Item], budget: int) -> list[dict[str, Any]]:
        results = [item for item in group if any(isinstance(m, ToolResult) for m in item.messages)]
        fixed = sum(self.sizes[item.index] for item in group if item not in results)
        if not results:
            return [] if budget < 24 or self._has_calls(group) else [self._clipped(group[0], budget)]
        if any(len(item.messages) != 1 for item in results) or fixed + 20 * len(results) > budget:
            return []
        each = (budget - fixed) // len(results) - 6
        return [
            item.raw if item not in results else with_text(item, 0, clip(_text(item), each, self.count))
            for item in group
        ]

    def _has_calls(self, group: list[Item]) -> bool:
        return any(isinstance(m, AssistantMessage) and m.tool_calls for item in group for m in item.messages)

    def _fold(self, folded: list[Item], tail: list[Item], first: Item | None, head: str, room: int) -> str:
        """The text for what is folded. A first message that had to be clipped is read whole: names may come back."""
        reader = Reader()
        calls = {
            c.id: c for i in self.items for m in i.messages if isinstance(m, AssistantMessage) for c in m.tool_calls
        }
        opening = self._passages(first, calls, reader) if first else []
        middle = [passage for item in folded for passage in self._passages(item, calls, reader)]
        newest = [passage for item in tail for passage in self._passages(item, calls, reader)]
        names = Names.of([*opening, *middle, *newest], reader)
        shown = reader.known_in(head)
        shown.update(part for passage in newest for mention in passage.mentions for part in mention.name.shows)
        stand_for = range(len(opening) + len(middle))
        return select(names, stand_for, reuse.score(names), room, self.count, shown=shown, handles=False)

    def _passages(self, item: Item, calls: dict[str, ToolCall], reader: Reader) -> list[Passage]:
        out: list[Passage] = []
        for message in item.messages:
            if isinstance(message, UserMessage) and message.text.startswith(TITLE):
                out += read_digest(message.text[len(TITLE) :], reader)
            else:
                call = calls.get(message.call_id) if isinstance(message, ToolResult) else None
                out.append(reader.read(item.index, message, call))
        return out


def clip(text: str, budget: int, count: Count) -> str:
    """Head and tail of a text in at most `budget` tokens, the cut marked; empty if not even that fits."""
    size = count(text)
    if size <= budget:
        return text
    chars = int(len(text) * max(0, budget - 8) / max(1, size))
    while chars > 0:
        head = int(chars * 0.6)
        out = f"{text[:head]}\n[… clipped …]\n{text[len(text) - (chars - head) :]}"
        if count(out) <= budget:
            return out
        chars = int(chars * 0.9)
    return ""


def _text(item: Item) -> str:
    message = item.messages[0]
    return message.text


def _shown(head: list[dict[str, Any]]) -> str:
    return "\n".join(message.text for item in read_items(head) for message in item.messages)
