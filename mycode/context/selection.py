"""What a fold keeps of the messages it stands for: their best lines, and the names most likely to be needed again."""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence

from msgspec.structs import replace

from mycode.context import reuse
from mycode.context.digests.calls import CallFacts
from mycode.context.facts import FactLedger
from mycode.context.passages import Line, Mention, Passage, Reader, Role, estimate
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

    def reading(seq: int, message: Message) -> Passage:
        if isinstance(message, AssistantMessage):
            calls.update((call.id, call) for call in message.tool_calls)
        call = calls.get(message.call_id) if isinstance(message, ToolResult) else None
        return ledger.passage(seq) or reader.read(seq, message, call)

    folded = [*read_digest(previous.digest if previous else "", reader), *(reading(*each) for each in messages)]
    newest = [reading(*each) for each in recent]
    shown = {part for passage in newest for mention in passage.mentions for part in mention.shows}
    return select(folded, reuse.score(folded, newest), budget_tokens, count, shown, handles=True)


def select(
    passages: Sequence[Passage],
    weights: dict[str, float],
    budget: int,
    count: Count,
    shown: Collection[str] = (),
    *,
    handles: bool,
) -> str:
    """The text that keeps most weight of names within `budget` tokens, in the order of the passages.

    Names already `shown` elsewhere are worth nothing here. The text is exact in its size: counted whole at the end.
    """
    if budget < 8 or not passages:
        return ""
    choice = _Choice(passages, weights, shown, handles=handles)
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


def title(passage: Passage, *, handles: bool) -> str:
    """The header of a folded message: handle, failure, tool and target, ending in a colon."""
    if passage.title:
        return passage.title
    handle = f"m{passage.seq} " if handles else ""
    mark = "❌ " if passage.failed else ""
    arrow = "→ " if passage.role == "tool" else ""
    if passage.calls:
        return f"{handle}{arrow}{mark}{'; '.join(_named(call) for call in passage.calls[:3])}:"
    return handle + {"user": "user:", "assistant": "agent:", "tool": "→ result:"}[passage.role]


def _named(call: CallFacts) -> str:
    target = " ".join(call.target.split())
    limit = 60 if call.command else 120  # a path cut short would be no path
    return f"{call.tool} {target if len(target) <= limit else target[: limit - 1].rstrip() + '…'}".rstrip()


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


class _Choice:
    """The growing choice of names and lines; it lives during one call of `select`."""

    def __init__(
        self, passages: Sequence[Passage], weights: dict[str, float], shown: Collection[str], *, handles: bool
    ):
        self.passages = passages
        self.titles = [title(passage, handles=handles) for passage in passages]
        self.title_costs = [estimate(text) + 1 for text in self.titles]
        self.reader = Reader()
        self.names: dict[str, Mention] = {}
        self.homes: dict[str, list[int]] = {}
        names, homes = self.names, self.homes
        for i, passage in enumerate(passages):
            for mention in passage.mentions:
                text = mention.name.text
                known = homes.get(text)
                if known is not None:
                    known.append(i)
                elif text not in shown:
                    homes[text] = [i]
                    names[text] = mention
        self.left = defaultdict(float, {text: weights.get(text, 0.0) for text in homes})
        self.titled: dict[int, frozenset[str]] = {}
        self.richness = [0.0] * len(passages)
        # A candidate is a name, to stand in any of its passages, or a whole line of one passage.
        self.candidates: list[Mention | tuple[int, Line, float]] = []
        self.heap: list[tuple[float, int, float]] = []
        self.chosen: list[tuple[int, Mention | Line, float]] = []
        self.opened: set[int] = set()
        self.used = 0.0
        self._add_names()
        self._add_lines()
        heapq.heapify(self.heap)

    @property
    def exhausted(self) -> bool:
        return not self.heap

    def fill(self, room: float) -> None:
        """Takes candidates by weight per token while they fit; the first to show a name spends its weight."""
        worth, left, heap = self.left.__getitem__, self.left, self.heap
        part: Mention | Line
        too_large: list[tuple[float, int, float]] = []
        while heap and self.used < room and len(too_large) < 100:
            rank, k, price = heap[0]
            each = self.candidates[k]
            if isinstance(each, Mention):
                home, part = -1, each
                value = sum(map(worth, part.shows))
            else:
                home, part, bonus = each
                value = sum(map(worth, part.shows), bonus)
            if value <= 0:
                heapq.heappop(heap)
                continue
            if value / price < -rank - 1e-12:
                heapq.heapreplace(heap, (-value / price, k, price))
                continue
            heapq.heappop(heap)
            if isinstance(part, Mention):
                home = self._home(part.name.text)
                cost = part.cost
                if home not in self.opened:
                    cost = self.title_costs[home] + (0 if part.name.text in self._titled(home) else cost)
            else:
                cost = part.cost + 2 + (0 if home in self.opened else self.title_costs[home])
            if self.used + cost > room:
                too_large.append((rank, k, price))
                continue
            self.used += cost
            for text in part.shows if home in self.opened else (*part.shows, *self._titled(home)):
                left[text] = 0.0
            self.opened.add(home)
            self.chosen.append((home, part, cost))
        for entry in too_large:
            heapq.heappush(heap, entry)

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
        before = -1
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
        if before != i - 1 or passage.role != "tool" or passage.title or not passage.calls:
            return self.titles[i]
        call = self.passages[before]
        if call.role != "assistant" or call.calls != passage.calls:
            return self.titles[i]
        handle = self.titles[i].partition(" ")[0] + " " if self.titles[i].startswith("m") else ""
        return f"{handle}→ ❌:" if passage.failed else f"{handle}→:"

    def _home(self, text: str) -> int:
        homes = self.homes[text]
        for i in reversed(homes):
            if i in self.opened:
                return i
        return max(homes, key=lambda i: (self.richness[i], i))

    def _titled(self, i: int) -> frozenset[str]:
        """What the header of a passage shows."""
        known = self.titled.get(i)
        if known is None:
            line = self.reader.line(self.titles[i], 0)
            known = self.titled[i] = frozenset(line.shows if line else ())
        return known

    def _add_names(self) -> None:
        left, richness, title_costs, names = self.left, self.richness, self.title_costs, self.names
        worth, heap = left.__getitem__, self.heap
        for k, (text, homes) in enumerate(self.homes.items()):
            mention = names[text]
            cost = mention.cost
            share = left[text] / cost
            if len(homes) == 1:
                least = title_costs[homes[0]]
                richness[homes[0]] += share
            else:
                least = min([title_costs[i] for i in homes])
                for i in homes:
                    richness[i] += share
            value = sum(map(worth, mention.shows))
            price = cost + HEADER_SHARE * least
            heap.append((-value / price, k, price))
        self.candidates += names.values()

    def _add_lines(self) -> None:
        seen: set[str] = set()
        worth, heap, candidates = self.left.__getitem__, self.heap, self.candidates
        number = max(1, len(self.passages))
        for i in range(len(self.passages) - 1, -1, -1):
            passage = self.passages[i]
            bonus = LINE_VALUE * LINE_VALUE_BY_ROLE[passage.role] * (0.3 + 0.7 * i / number)
            title_price = 2 + HEADER_SHARE * self.title_costs[i]
            for line in passage.lines:
                text = line.text
                if text in seen:
                    continue
                seen.add(text)
                length = len(text)
                own = bonus if length >= 60 else bonus * length / 60
                value = sum(map(worth, line.shows), own)
                price = line.cost + title_price
                heap.append((-value / price, len(candidates), price))
                candidates.append((i, line, own))


def quoted(name: str) -> str:
    """A name as it stands in a list of names parted by spaces."""
    return f'"{name}"' if " " in name else name
