"""What a fold keeps of the messages it stands for: their best lines, and the names most likely to be needed again."""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

from msgspec.structs import replace

from mycode.context import reuse
from mycode.context.facts import FactLedger
from mycode.context.names import (
    HEADER_SHARE,
    LEVELS,
    LINE_FEE,
    LINE_VALUE,
    LINE_VALUE_BY_ROLE,
    LONG_LINE,
    PLACES,
    Names,
    Use,
)
from mycode.context.passages import Line, Name, Passage, Reader, Role, estimate, handle_cost, heading
from mycode.context.references import WORD_KINDS, words
from mycode.core.messages import AssistantMessage, Message, ToolCall, ToolResult
from mycode.core.summaries import SummaryRecord

Count = Callable[[str], int]

MOST_NUMBERS = 20
"""More bare numbers of one message are but the numbers of its lines; left out where a handle brings them back."""
CARRIED_LINES = 3
"""A name that an earlier fold kept counts as if it stood on this many lines: on how many it stood is gone."""


def fold_text(
    messages: Sequence[tuple[int, Message]],
    *,
    previous: SummaryRecord | None,
    ledger: FactLedger,
    budget_tokens: int,
    count: Count,
    recent: Sequence[tuple[int, Message]] = (),
    beside: str = "",
) -> str:
    """The readable text that stands for folded messages: per message a header with its handle, then names and lines.

    `messages` are the folded ones by seq, `recent` what stays verbatim after them and `beside` what is told beside it:
    names in these need not be kept twice. What the ledger has read is not read again. `previous` is the fold before
    this one: its `digest` is read back, so that what it kept competes by its likelihood with what is new; nothing else
    is stored. Never longer than `budget_tokens` by `count`; empty if nothing fits.
    """
    said = (*messages, *recent)
    names = ledger.known_names() or Names()
    if [passage.seq for passage in names.passages] != [seq for seq, _ in said[len(said) - len(names.passages) :]]:
        names = Names(names.reader)
    read, unread = len(names.passages), said[: len(said) - len(names.passages)]
    if unread or (previous is not None and previous.digest):
        reader = names.reader.branch()
        kept = read_digest(previous.digest if previous else "", reader)
        names = names.after([*kept, *_read(unread, reader, ledger)], reader)
    folded = range(-names.earlier, len(messages) - len(unread))
    newest = [names.passages[number] for number in range(folded.stop, read)]
    shown = {part for passage in newest for mention in passage.mentions for part in mention.name.shows}
    shown.update(names.reader.known_in(beside))
    return select(names, folded, reuse.score(names), budget_tokens, count, shown=shown, handles=True)


def last_named(ledger: FactLedger, seqs: Collection[int], least: float) -> dict[int, list[str]]:
    """The names that nothing after these messages shows again, and that are needed again with `least` probability.

    By seq, the likeliest first. Bare numbers are left out, and messages that the ledger has not read.
    """
    names = ledger.known_names()
    if names is None:
        return {}
    weights = reuse.score(names)
    asked = {number: passage.seq for number, passage in enumerate(names.passages) if passage.seq in seqs}
    found: dict[int, list[tuple[float, str]]] = {}
    for text, use in names.uses.items():
        seq = asked.get(use.messages[-1])
        if seq is not None and weights[text] >= least and use.name.kind != "number":
            found.setdefault(seq, []).append((-weights[text], text))
    return {seq: [text for _, text in sorted(each)] for seq, each in found.items()}


def _read(messages: Sequence[tuple[int, Message]], reader: Reader, ledger: FactLedger) -> Iterator[Passage]:
    calls: dict[str, ToolCall] = {}
    for seq, message in messages:
        if isinstance(message, AssistantMessage):
            calls.update((call.id, call) for call in message.tool_calls)
        call = calls.get(message.call_id) if isinstance(message, ToolResult) else None
        yield ledger.passage(seq) or reader.read(seq, message, call)


def select(
    names: Names,
    folded: range,
    weights: dict[str, float],
    budget: int,
    count: Count,
    *,
    shown: Collection[int],
    handles: bool,
) -> str:
    """The text that keeps most weight of names within `budget` tokens, in the order of the messages.

    `folded` are the numbers of the messages that it stands for. Parts that are `shown` elsewhere (by their
    numbers) are worth nothing here. The text is exact in its size: counted whole at the end.
    """
    if budget < 8 or not folded:
        return ""
    choice = _Choice(names, folded, weights, shown, handles=handles)
    room = float(budget)
    text, size = "", 0
    for _ in range(4):
        choice.fill(room)
        text = choice.text()
        size = count(text)
        if size > 0.985 * budget or choice.exhausted:
            break
        room = choice.used + (budget - size) * max(0.5, choice.used / max(1, size))
    if choice.exhausted and size < budget:
        choice.name_the_rest(budget - size)
        text = choice.text()
        size = count(text)
    while text and size > budget:
        choice.take_back((size - budget) * max(0.7, choice.used / size))
        text = choice.text()
        size = count(text)
    return text


def read_digest(text: str, reader: Reader) -> list[Passage]:
    """Reads a text made by `select` back into passages, one per header, with the headers as they were."""
    out: list[Passage] = []
    rows: list[str] = []
    for row in text.split("\n"):
        if rows and not row.startswith(" "):
            out += _read_block(rows, reader)
            rows = []
        rows.append(row)
    return [*out, *_read_block(rows, reader)]


_TITLE = re.compile(r"(?:m(\d+) )?(.*?:)(?= |$)")


def _read_block(rows: list[str], reader: Reader) -> Iterator[Passage]:
    match = _TITLE.match(rows[0])
    if match is None:
        return
    plain = match.group(2)
    role: Role = "user" if plain == "user:" else "tool" if plain.startswith("→") else "assistant"
    found = (reader.line(row, number) for number, row in enumerate([rows[0][match.end() :], *rows[1:]]))
    lines = tuple(line for line in found if line is not None)
    mentions = tuple(
        replace(each, lines=max(each.lines, CARRIED_LINES))
        for each in reader.mentions(lines, len(lines) if role == "assistant" else 0)
    )
    size, title = sum(map(len, rows)), match.group(0)
    if lines and not lines[0].number:
        lines = lines[1:]  # the names of the header's row stand for themselves, they are no line
    yield Passage(
        int(match.group(1) or 0),
        role,
        lines,
        mentions,
        size=size,
        failed="❌" in plain,
        title=title,
        titled=reader.titled(title),
        title_cost=estimate(title) + 1,
    )


_IN_PASSAGE = (1 << PLACES) - 1
_HEADER = Line("", (), -1, 0)
"""Stands for a line that the header of its message says already."""


class _Choice:
    """The growing choice of names and lines; it lives during one call of `select`."""

    def __init__(
        self, names: Names, folded: range, weights: dict[str, float], shown: Collection[int], *, handles: bool
    ):
        self.names = names
        self.folded = folded
        self.handles = handles
        self.passages = names.passages
        self.uses = list(names.uses.values())
        self.title_costs = [self._title_cost(passage) for passage in self.passages]
        self.bonuses = self._bonuses()
        self.richness = [0.0] * len(self.passages)
        # What each part is worth now; rank, number and price of each candidate, the least rank first.
        self.left = [0.0] * len(names.reader.parts)
        self.heap: list[tuple[float, int, float]] = []
        self.chosen: list[tuple[int, Name | Line, float]] = []
        self.opened: set[int] = set()
        self.numbers: Counter[int] = Counter()
        self.used = 0.0
        for text, use in names.uses.items():
            self.left[use.name.part] = weights[text]
        for part in shown:
            self.left[part] = 0.0
        self._add_names(shown)
        heapq.heapify(self.heap)
        self.level = 0
        self.waits_for = -math.inf

    @property
    def exhausted(self) -> bool:
        return not self.heap and self.level == len(LEVELS)

    def fill(self, room: float) -> None:
        """Takes candidates by weight per token while they fit; the first to show a name spends its weight."""
        worth, left, heap, title_costs = self.left.__getitem__, self.left, self.heap, self.title_costs
        blocks, stop = self.names.blocks, self.folded.stop
        too_large: list[tuple[float, int, float]] = []
        shows: Sequence[int]
        part: Name | Line
        cost: float
        while self.used < room and len(too_large) < 100:
            if not heap or heap[0][0] > self.waits_for:
                if self.level == len(LEVELS):
                    break
                self._add_lines()
                continue
            rank, number, price = heap[0]
            behind, place = number >> PLACES, number & _IN_PASSAGE
            if behind:
                block = blocks[stop - behind]
                shows = block.parts[block.ends[place - 1] if place else 0 : block.ends[place]]
                value = sum(map(worth, shows), self.bonuses[stop - behind] * block.lengths[place])
            else:
                shows = self.uses[place].name.shows
                value = sum(map(worth, shows))
            if value <= 0:
                heapq.heappop(heap)
                continue
            if value / price < -rank - 1e-12:
                heapq.heapreplace(heap, (-value / price, number, price))
                continue
            heapq.heappop(heap)
            if behind:
                home, part = stop - behind, self.passages[stop - behind].lines[place]
                if self._is_in_header(part, home):  # the header will do
                    if home in self.opened:
                        continue
                    part = _HEADER
                cost = part.cost + (0 if part is _HEADER else LINE_FEE)
                cost += 0 if home in self.opened else title_costs[home]
            else:
                use = self.uses[place]
                home, part = self._home(use), use.name
                if self.handles and part.kind == "number" and self.numbers[home] >= MOST_NUMBERS:
                    left[part.part] = 0.0
                    continue
                cost = part.cost
                if home not in self.opened:
                    cost = title_costs[home] + (0 if part.part in self.passages[home].titled else cost)
            if self.used + cost > room:
                too_large.append((rank, number, price))
                continue
            self.used += cost
            if isinstance(part, Name) and part.kind == "number":
                self.numbers[home] += 1
            for each in shows if home in self.opened else (*shows, *self.passages[home].titled):
                left[each] = 0.0
            self.opened.add(home)
            self.chosen.append((home, part, cost))
        for candidate in too_large:
            heapq.heappush(heap, candidate)

    def name_the_rest(self, room: float) -> None:
        """Opens what has a call and is not told yet, the newest first: a header alone still says what was done."""
        for i in reversed(self.folded):
            if i in self.opened or not self.passages[i].calls:
                continue
            room -= self.title_costs[i]
            if room < 0:
                return
            self.used += self.title_costs[i]
            self.opened.add(i)
            self.chosen.append((i, _HEADER, self.title_costs[i]))

    def take_back(self, tokens: float) -> None:
        """Gives up what was chosen last, at least one candidate."""
        target = self.used - max(1.0, tokens)
        while self.chosen and self.used > target:
            self.used -= self.chosen.pop()[2]

    def text(self) -> str:
        by_passage: dict[int, list[Name | Line]] = {}
        for home, part, _ in self.chosen:
            by_passage.setdefault(home, []).append(part)
        rows: list[str] = []
        before = self.folded.start - 2
        for i in sorted(by_passage):
            told = (each for each in by_passage[i] if isinstance(each, Line) and each is not _HEADER)
            lines = sorted(told, key=lambda each: each.number)
            held = "\n".join(each.text for each in lines)
            whole, titled = set(words(held)), set(self.passages[i].titled)
            chosen = {
                each
                for each in by_passage[i]
                if isinstance(each, Name)
                and each.part not in titled
                and not (each.text in whole if each.kind in WORD_KINDS else each.text in held)
            }
            # In the order of the message, as a person reads it; bare numbers after what has a name.
            found = [mention.name for mention in self.passages[i].mentions if mention.name in chosen]
            names = [name.text for name in sorted(found, key=lambda name: name.kind == "number")]
            header, passage = self._title(i, before), self.passages[i]
            if names or lines or passage.failed or header.rpartition(" ")[2] != "→:":
                rows.append(" ".join([header, *map(quoted, names)]))
                rows += [" " + each.text for each in lines]
                before = i
        return "\n".join(rows)

    def _title(self, i: int, before: int) -> str:
        """The header, short when the row above is the very call that this result answers."""
        passage = self.passages[i]
        if passage.title:
            return passage.title
        handle = f"m{passage.seq} " if self.handles else ""
        if before == i - 1 and passage.role == "tool" and passage.calls:
            call = self.passages[before]
            if call.role == "assistant" and call.calls == passage.calls:
                return f"{handle}→ ❌:" if passage.failed else f"{handle}→:"
        return handle + heading(passage.role, passage.calls, failed=passage.failed)

    def _is_in_header(self, line: Line, i: int) -> bool:
        passage = self.passages[i]
        if not passage.calls:
            return line.text in passage.title
        return line.text in heading(passage.role, passage.calls, failed=passage.failed)

    def _title_cost(self, passage: Passage) -> float:
        return passage.title_cost - (0 if self.handles or passage.title else handle_cost(passage.seq))

    def _home(self, use: Use) -> int:
        """The message under which a name is told: the newest that is told already, else the one with most to tell."""
        for i in reversed(use.messages):
            if i in self.opened:
                return i
        return max(use.messages, key=lambda i: (self.richness[i], i))

    def _bonuses(self) -> list[float]:
        """By message what each character of a line is worth, beside its names."""
        start = self.folded.start
        each = LINE_VALUE / LONG_LINE
        older = range(start, start + self.names.earlier)
        return [
            each * LINE_VALUE_BY_ROLE[passage.role] * (0.3 + 0.7 * (i - start) / len(self.folded))
            for i, passage in zip((*range(len(self.passages) - self.names.earlier), *older), self.passages, strict=True)
        ]

    def _add_names(self, hidden: Collection[int]) -> None:
        left, richness, cost_of, heap = self.left, self.richness, self.title_costs.__getitem__, self.heap
        worth = left.__getitem__
        for number, use in enumerate(self.uses):
            name, homes = use.name, use.messages
            if name.part in hidden:
                continue
            cost, value = name.cost, left[name.part]
            share = value / cost
            if len(homes) == 1:
                least = cost_of(homes[0])
                richness[homes[0]] += share
            else:
                least = min(map(cost_of, homes))
                for i in homes:
                    richness[i] += share
            if len(name.shows) > 1:
                value = sum(map(worth, name.shows))
            price = cost + HEADER_SHARE * least
            heap.append((-value / price, number, price))

    def _add_lines(self) -> None:
        """Adds the lines of the next level."""
        worth, heap, stop = self.left.__getitem__, self.heap, self.folded.stop
        blocks, bonuses, title_costs = self.names.blocks, self.bonuses, self.title_costs
        for number in self.names.levels[self.level]:
            i, place = number >> PLACES, number & _IN_PASSAGE
            block = blocks[i]
            if i < stop <= block.again[place]:
                shows = block.parts[block.ends[place - 1] if place else 0 : block.ends[place]]
                value = sum(map(worth, shows), bonuses[i] * block.lengths[place])
                price = block.costs[place] + LINE_FEE + HEADER_SHARE * title_costs[i]
                heapq.heappush(heap, (-value / price, (stop - i << PLACES) + place, price))
        self.level += 1
        self.waits_for = -LEVELS[self.level] if self.level < len(LEVELS) else math.inf


def quoted(name: str) -> str:
    """A name as it stands in a list of names parted by spaces."""
    return f'"{name}"' if " " in name else name
