"""What a fold keeps of the messages it stands for: their best lines, and the names most likely to be needed again."""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence

from msgspec.structs import replace

from mycode.context import reuse
from mycode.context.facts import FactLedger
from mycode.context.names import PER_PASSAGE, Names
from mycode.context.passages import Line, Mention, Passage, Reader, Role, estimate, heading
from mycode.context.references import WORD_KINDS, words
from mycode.core.messages import AssistantMessage, Message, ToolCall, ToolResult
from mycode.core.summaries import SummaryRecord

Count = Callable[[str], int]

HEADER_SHARE = 0.15
"""How much of a header's cost a single candidate is charged with when candidates are ranked: several will share it."""
LINE_VALUE = 0.01
"""What a whole line is worth beside its names (phrases, values and order that no list of names carries)."""
LINE_VALUE_BY_ROLE: dict[Role, float] = {"user": 2.0, "assistant": 1.0, "tool": 0.3}
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
) -> str:
    """The readable text that stands for folded messages: per message a header with its handle, then names and lines.

    `messages` are the folded ones by seq, `recent` what stays verbatim after them (its names need not be kept twice).
    What the ledger has read is not read again. `previous` is the fold before this one: its `digest` is read back, so
    that what it kept competes by its likelihood with what is new; nothing else is stored. Never longer than
    `budget_tokens` by `count`; empty if nothing fits.
    """
    reader = Reader()
    calls: dict[str, ToolCall] = {}
    known = ledger.known_names()
    seqs = [seq for seq, _ in (*messages, *recent)]
    if known is None or [passage.seq for passage in known.passages] != seqs[max(0, len(seqs) - len(known.passages)) :]:
        known = Names()
    fresh: list[Passage] = []
    for seq, message in (*messages, *recent)[: len(seqs) - len(known.passages)]:
        if isinstance(message, AssistantMessage):
            calls.update((call.id, call) for call in message.tool_calls)
        call = calls.get(message.call_id) if isinstance(message, ToolResult) else None
        fresh.append(ledger.passage(seq) or reader.read(seq, message, call))
    kept = read_digest(previous.digest if previous else "", reader)
    names = known.after([*kept, *fresh])
    folded = range(-names.earlier, len(messages) - len(fresh))
    newest = [names.passages[number] for number in range(folded.stop, len(known.passages))]
    shown = {part for passage in newest for mention in passage.mentions for part in mention.shows}
    return select(names, folded, reuse.score(names), budget_tokens, count, shown=shown, handles=True)


def select(
    names: Names,
    folded: range,
    weights: dict[str, float],
    budget: int,
    count: Count,
    *,
    shown: Collection[str],
    handles: bool,
) -> str:
    """The text that keeps most weight of names within `budget` tokens, in the order of the messages.

    `folded` are the numbers of the messages that it stands for. Names already `shown` elsewhere are worth nothing
    here. The text is exact in its size: counted whole at the end.
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
    size = sum(map(len, rows))
    yield Passage(int(match.group(1) or 0), role, lines[1:] if lines and not lines[0].number else lines, mentions,
                  size=size, failed="❌" in plain, title=match.group(0))  # fmt: skip


_Candidate = tuple[float, int, float, Mention | Line, int | None, float]
"""Least first: rank, order among equals, price; a name, or a line with the number of its message and its own value."""
_BEFORE_LINES = -(1 << 62)


class _Choice:
    """The growing choice of names and lines; it lives during one call of `select`."""

    def __init__(
        self, names: Names, folded: range, weights: dict[str, float], shown: Collection[str], *, handles: bool
    ):
        self.names = names
        self.folded = folded
        self.handles = handles
        self.passages = names.passages
        self.reader = Reader()
        self.titled: dict[int, tuple[str, ...]] = {}
        self.left = defaultdict(float, weights)
        for text in self.left.keys() & shown:
            self.left[text] = 0.0
        self.title_costs = [self._title_cost(passage) for passage in self.passages]
        self.richness = [0.0] * len(self.passages)
        self.heap: list[_Candidate] = []
        self.chosen: list[tuple[int, Mention | Line, float]] = []
        self.opened: set[int] = set()
        self.used = 0.0
        self._add_names(shown)
        self._add_lines()
        heapq.heapify(self.heap)

    @property
    def exhausted(self) -> bool:
        return not self.heap

    def fill(self, room: float) -> None:
        """Takes candidates by weight per token while they fit; the first to show a name spends its weight."""
        worth, left, heap, title_costs = self.left.__getitem__, self.left, self.heap, self.title_costs
        too_large: list[_Candidate] = []
        while heap and self.used < room and len(too_large) < 100:
            candidate = heap[0]
            rank, order, price, part, home, own = candidate
            value = sum(map(worth, part.shows), own)
            if value <= 0:
                heapq.heappop(heap)
                continue
            if value / price < -rank - 1e-12:
                heapq.heapreplace(heap, (-value / price, order, price, part, home, own))
                continue
            heapq.heappop(heap)
            cost = part.cost
            if isinstance(part, Mention):
                home = self._home(part.name.text)
                if home not in self.opened:
                    cost = title_costs[home] + (0 if part.name.text in self._titled(home) else cost)
            else:
                assert home is not None
                cost += 2 + (0 if home in self.opened else title_costs[home])
            if self.used + cost > room:
                too_large.append(candidate)
                continue
            self.used += cost
            for text in part.shows if home in self.opened else (*part.shows, *self._titled(home)):
                left[text] = 0.0
            self.opened.add(home)
            self.chosen.append((home, part, cost))
        for candidate in too_large:
            heapq.heappush(heap, candidate)

    def take_back(self, tokens: float) -> None:
        """Gives up what was chosen last, at least one candidate."""
        target = self.used - max(1.0, tokens)
        while self.chosen and self.used > target:
            self.used -= self.chosen.pop()[2]

    def text(self) -> str:
        by_passage: dict[int, list[Mention | Line]] = {}
        for home, part, _ in self.chosen:
            by_passage.setdefault(home, []).append(part)
        rows: list[str] = []
        before = self.folded.start - 2
        for i in sorted(by_passage):
            lines = sorted((each for each in by_passage[i] if isinstance(each, Line)), key=lambda each: each.number)
            held = "\n".join(each.text for each in lines)
            whole = set(words(held))
            names = [
                quoted(text)
                for each in by_passage[i]
                if isinstance(each, Mention)
                and (text := each.name.text) not in self._titled(i)
                and not (text in whole if each.name.kind in WORD_KINDS else text in held)
            ]
            rows.append(" ".join([self._title(i, before), *names]))
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

    def _title_cost(self, passage: Passage) -> float:
        if passage.title:
            return estimate(passage.title) + 1
        return passage.title_cost + 1 + (estimate(f"m{passage.seq}") if self.handles else 0)

    def _home(self, text: str) -> int:
        homes = self.names.uses[text].messages
        for i in reversed(homes):
            if i in self.opened:
                return i
        return max(homes, key=lambda i: (self.richness[i], i))

    def _titled(self, i: int) -> tuple[str, ...]:
        """What the header of a passage shows."""
        if not self.passages[i].title:
            return self.passages[i].titled
        known = self.titled.get(i)
        if known is None:
            known = self.titled[i] = self.reader.titled(self.passages[i].title)
        return known

    def _add_names(self, shown: Collection[str]) -> None:
        left, richness, title_costs = self.left, self.richness, self.title_costs
        worth, heap = left.__getitem__, self.heap
        for order, (text, use) in enumerate(self.names.uses.items(), _BEFORE_LINES):
            if text in shown:
                continue
            mention, homes = use.mention, use.messages
            cost, shows, value = mention.cost, mention.shows, left[text]
            share = value / cost
            if len(homes) == 1:
                least = title_costs[homes[0]]
                richness[homes[0]] += share
            else:
                least = min([title_costs[i] for i in homes])
                for i in homes:
                    richness[i] += share
            if len(shows) > 1:
                value = sum(map(worth, shows))
            price = cost + HEADER_SHARE * least
            heap.append((-value / price, order, price, mention, None, 0.0))

    def _add_lines(self) -> None:
        worth, heap, folded = self.left.__getitem__, self.heap, self.folded
        first, stop = folded.start, folded.stop
        bonuses: list[float] = []
        prices: list[float] = []
        for i, passage in enumerate(self.passages):
            place = (i if i < stop else i - len(self.passages)) - first
            bonuses.append(LINE_VALUE * LINE_VALUE_BY_ROLE[passage.role] * (0.3 + 0.7 * place / len(folded)))
            prices.append(2 + HEADER_SHARE * self.title_costs[i])
        for place, line in self.names.lines.values():
            i = -(place >> PER_PASSAGE)
            if i >= stop:
                continue
            own, length = bonuses[i], len(line.text)
            if length < 60:
                own = own * length / 60
            price = line.cost + prices[i]
            heap.append((-sum(map(worth, line.shows), own) / price, place, price, line, i, own))


def quoted(name: str) -> str:
    """A name as it stands in a list of names parted by spaces."""
    return f'"{name}"' if " " in name else name
