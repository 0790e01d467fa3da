"""What a fold keeps of the messages it stands for: their best lines, and the names most likely to be needed again."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from mycode.context import reuse
from mycode.context.digests.calls import CallFacts
from mycode.context.facts import FactLedger
from mycode.context.passages import Line, Mention, Passage, Role, estimate, mentions_of, read
from mycode.context.references import WORD_KINDS, Kind, Memo, Reference, in_line, words
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
    recent: Sequence[Message] = (),
) -> str:
    """The readable text that stands for folded messages: per message a header with its handle, then names and lines.

    `messages` are the folded ones by seq, `recent` what stays verbatim after them (its names need not be kept twice).
    `previous` is the fold before this one: its `digest` is read back, so that what it kept competes by its likelihood
    with what is new; nothing else is stored. Never longer than `budget_tokens` by `count`; empty if nothing fits.
    """
    calls = {
        call.id: call
        for message in (*(message for _, message in messages), *recent)
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls
    }
    memo: Memo = {}

    def reading(seq: int, message: Message) -> Passage:
        return ledger.passage(seq) or read(seq, message, _call_of(message, calls), memo)

    last = messages[-1][0] if messages else 0
    folded = [*read_digest(previous.digest if previous else "", memo), *(reading(seq, each) for seq, each in messages)]
    newest = [read(seq, each, _call_of(each, calls), memo) for seq, each in enumerate(recent, last + 1)]
    shown = [mention.name for passage in newest for mention in passage.mentions]
    return select(folded, reuse.score(folded, newest), budget_tokens, count, shown, handles=True)


def select(
    passages: Sequence[Passage],
    weights: dict[str, float],
    budget: int,
    count: Count,
    shown: Iterable[Reference] = (),
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


def read_digest(text: str, memo: Memo) -> list[Passage]:
    """Reads a text made by `select` back into passages, one per header, with the headers as they were."""
    out: list[Passage] = []
    rows: list[str] = []
    for row in text.split("\n"):
        if rows and not row.startswith(" "):
            out += _read_block(rows, memo)
            rows = []
        rows.append(row)
    return [*out, *_read_block(rows, memo)]


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


def _call_of(message: Message, calls: dict[str, ToolCall]) -> ToolCall | None:
    return calls.get(message.call_id) if isinstance(message, ToolResult) else None


_TITLE = re.compile(r"(?:m(\d+) )?(.*?:)(?= |$)")


def _read_block(rows: list[str], memo: Memo) -> Iterator[Passage]:
    match = _TITLE.match(rows[0])
    if match is None:
        return
    plain = match.group(2)
    role: Role = "user" if plain == "user:" else "tool" if plain.startswith("→") else "assistant"
    lines = tuple(
        Line(row.strip(), names, number, estimate(row))
        for number, row in enumerate([rows[0][match.end() :], *rows[1:]])
        if (names := tuple(dict.fromkeys(in_line(row, memo))))
    )
    mentions = tuple(
        Mention(each.name, max(each.lines, CARRIED_LINES), each.said, each.ticked)
        for each in mentions_of(lines, len(lines) if role == "assistant" else 0)
    )
    size = sum(map(len, rows))
    yield Passage(int(match.group(1) or 0), role, lines[1:] if lines and not lines[0].number else lines, mentions,
                  size=size, failed="❌" in plain, title=match.group(0))  # fmt: skip


class _Candidate(Struct):
    """A name (to stand in any of its passages) or a whole line of one passage, what it costs and what it shows."""

    text: str
    cost: float
    shows: tuple[str, ...]
    home: int = -1
    number: int = 0
    bonus: float = 0.0


class _Choice:
    """The growing choice of names and lines; it lives during one call of `select`."""

    def __init__(
        self, passages: Sequence[Passage], weights: dict[str, float], shown: Iterable[Reference], *, handles: bool
    ):
        self.passages = passages
        self.titles = [title(passage, handles=handles) for passage in passages]
        self.title_costs = [estimate(text) + 1 for text in self.titles]
        self.parts: dict[str, tuple[str, ...]] = {}
        self.seen: Memo = {}
        covered = {part for name in shown for part in self._parts(name.text, name.kind)}
        self.kinds: dict[str, Kind] = {}
        self.homes: dict[str, list[int]] = {}
        for i, passage in enumerate(passages):
            for mention in passage.mentions:
                text = mention.name.text
                if text in self.homes:
                    self.homes[text].append(i)
                elif text not in covered:
                    self.homes[text] = [i]
                    self.kinds[text] = mention.name.kind
        self.left = {text: weights.get(text, 0.0) for text in self.homes}
        self.titled = [self._named_in(text) for text in self.titles]
        self.richness = [0.0] * len(passages)
        self.candidates: list[_Candidate] = []
        self.heap: list[tuple[float, int, float]] = []
        self.chosen: list[tuple[int, _Candidate, float]] = []
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
        left, heap = self.left, self.heap
        too_large: list[tuple[float, int, float]] = []
        while heap and self.used < room and len(too_large) < 100:
            rank, k, price = heapq.heappop(heap)
            each = self.candidates[k]
            value = each.bonus + sum([left[text] for text in each.shows])
            if value <= 0:
                continue
            if value / price < -rank - 1e-12:
                heapq.heappush(heap, (-value / price, k, price))
                continue
            home = each.home if each.home >= 0 else self._home(each.text)
            cost = each.cost
            if home not in self.opened:
                cost = self.title_costs[home] + (0 if each.home < 0 and each.text in self.titled[home] else cost)
            if self.used + cost > room:
                too_large.append((rank, k, price))
                continue
            self.used += cost
            for text in each.shows if home in self.opened else (*each.shows, *self.titled[home]):
                left[text] = 0.0
            self.opened.add(home)
            self.chosen.append((home, each, cost))
        for entry in too_large:
            heapq.heappush(heap, entry)

    def take_back(self, tokens: float) -> None:
        """Gives up what was chosen last, at least one candidate."""
        target = self.used - max(1.0, tokens)
        while self.chosen and self.used > target:
            self.used -= self.chosen.pop()[2]

    def text(self) -> str:
        by_passage: dict[int, list[_Candidate]] = {}
        for home, each, _ in self.chosen:
            by_passage.setdefault(home, []).append(each)
        rows: list[str] = []
        before = -1
        for i in sorted(by_passage):
            lines = sorted((each for each in by_passage[i] if each.home >= 0), key=lambda each: each.number)
            held = "\n".join(each.text for each in lines)
            whole = set(words(held))
            names = [
                quoted(each.text)
                for each in by_passage[i]
                if each.home < 0
                and each.text not in self.titled[i]
                and not (each.text in whole if self.kinds[each.text] in WORD_KINDS else each.text in held)
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

    def _named_in(self, text: str) -> frozenset[str]:
        found = {part for name in in_line(text, self.seen) for part in self._parts(name.text, name.kind)}
        return frozenset(part for part in found if part in self.left)

    def _add_names(self) -> None:
        for text, homes in self.homes.items():
            cost = estimate(text) + (2 if " " in text else 0)
            share = self.left[text] / cost
            for i in homes:
                self.richness[i] += share
            shows = tuple([part for part in self._parts(text, self.kinds[text]) if part in self.left])
            self._add(_Candidate(text, cost, shows), min([self.title_costs[i] for i in homes]))

    def _add_lines(self) -> None:
        seen: set[str] = set()
        number = max(1, len(self.passages))
        for i in range(len(self.passages) - 1, -1, -1):
            passage = self.passages[i]
            bonus = LINE_VALUE * LINE_VALUE_BY_ROLE[passage.role] * (0.3 + 0.7 * i / number)
            for line in passage.lines:
                if line.text in seen:
                    continue
                seen.add(line.text)
                shows = {part for name in line.names for part in self._parts(name.text, name.kind) if part in self.left}
                value = bonus * min(1.0, len(line.text) / 60)
                each = _Candidate(line.text, line.cost + 2, tuple(sorted(shows)), i, line.number, value)
                self._add(each, self.title_costs[i])

    def _add(self, each: _Candidate, title_cost: float) -> None:
        price = each.cost + HEADER_SHARE * title_cost
        value = each.bonus + sum([self.left[text] for text in each.shows])
        self.heap.append((-value / price, len(self.candidates), price))
        self.candidates.append(each)

    def _parts(self, text: str, kind: Kind) -> tuple[str, ...]:
        """Every name that is also shown where this one stands: itself, its words, its tails, the names within it."""
        known = self.parts.get(text)
        if known is None:
            found = {text, *words(text)}
            if kind == "path":
                found.update(text[place + 1 :] for place, sign in enumerate(text) if sign == "/")
            elif kind == "dotted":
                pieces = text.split(".")
                found.update(".".join(pieces[a:b]) for a in range(len(pieces)) for b in range(a + 2, len(pieces) + 1))
            elif kind == "quoted":
                found.update(name.text for name in in_line(text, {}))
            known = self.parts[text] = tuple(sorted(found))
        return known


def quoted(name: str) -> str:
    """A name as it stands in a list of names parted by spaces."""
    return f'"{name}"' if " " in name else name
