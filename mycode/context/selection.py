"""What a fold keeps of the messages it stands for: their best lines and the names most likely to be needed again."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from mycode.context import reuse
from mycode.context.digests.calls import CallFacts
from mycode.context.facts import FactLedger
from mycode.context.passages import Passage, read
from mycode.context.references import Memo, Reference, in_line, words
from mycode.core.messages import AssistantMessage, Message, ToolCall
from mycode.core.summaries import SummaryRecord

Count = Callable[[str], int]
_HEADER_COST = 3


def fold_text(
    messages: Sequence[tuple[int, Message]],
    *,
    previous: SummaryRecord | None,
    ledger: FactLedger,
    budget_tokens: int,
    count: Count,
    recent: Sequence[Message] = (),
) -> str:
    """The readable text that stands for folded messages: per message a header with its handle, then lines and names.

    `messages` are the folded ones by seq, `recent` what stays verbatim after them (its names need not be kept twice).
    `previous` is the fold before this one: its `digest` is read back, so that what it kept competes by its likelihood
    with what is new; nothing else is stored. Never longer than `budget_tokens` by `count`; empty if nothing fits.
    """
    calls = _calls(message for _, message in messages)
    memo: Memo = {}
    passages = [
        kept if (kept := ledger.passage(seq)) else read(seq, message, calls.get(getattr(message, "call_id", "")), memo)
        for seq, message in messages
    ]
    earlier = parse_digest(previous.digest, memo) if previous else []
    last = messages[-1][0] if messages else 0
    known = [seq for seq in range(last + 1, last + 1 + len(recent))]
    tail = [
        kept if (kept := ledger.passage(seq)) else read(seq, message, calls.get(getattr(message, "call_id", "")), memo)
        for seq, message in zip(known, recent, strict=True)
    ]
    covered = {name.text for passage in tail for line in passage.lines for name in line.names}
    return select(
        [*earlier, *passages], reuse.score([*earlier, *passages], tail), budget_tokens, count, covered, handles=True
    )


def select(
    passages: Sequence[Passage],
    weights: dict[str, float],
    budget: int,
    count: Count,
    covered: Iterable[str],
    *,
    handles: bool,
) -> str:
    """The text with most weight of names not yet `covered` within `budget` tokens, in the order of the passages."""
    if budget < 8 or not passages:
        return ""
    picks = _Picks(passages, weights, set(covered), handles=handles)
    room = float(budget)
    text = ""
    for _ in range(4):
        picks.fill(room)
        text = picks.render()
        used = count(text)
        if used <= budget and (used >= 0.985 * budget or picks.exhausted):
            return text
        if used <= budget:
            room += (budget - used) * picks.used / max(1, used)
        else:
            break
    while text and (used := count(text)) > budget:
        picks.drop((used - budget) * picks.used / max(1, used) + 1)
        text = picks.render()
    return text


def parse_digest(text: str, memo: Memo) -> list[Passage]:
    """Reads a digest made by `select` back into passages, one per header."""
    from mycode.context.passages import Line

    out: list[Passage] = []
    current: list[Line] = []
    header, seq, role = "", 0, "tool"
    for number, row in enumerate(text.split("\n")):
        names = tuple(dict.fromkeys(in_line(row, memo)))
        match = _HANDLE.match(row)
        if match and not row.startswith("  "):
            if current:
                out.append(_earlier(seq, role, header, current))
            seq, role, header, current = int(match.group(1)), _ROLES.get(match.group(2), "tool"), row, []
        if names:
            current.append(Line(row.strip(), names, "text", number))
    if current:
        out.append(_earlier(seq, role, header, current))
    return out


def header(passage: Passage, *, handles: bool) -> str:
    """One short line that says what a folded message was."""
    handle = f"m{passage.seq} " if handles else ""
    if passage.role == "user":
        return handle + "user:"
    if passage.calls:
        call = passage.calls[0]
        what = _short(call)
        if passage.role == "assistant":
            return f"{handle}{call.tool} {what}:".replace(" :", ":")
        mark = "❌ " if passage.failed else ""
        return f"{handle}→ {mark}{call.tool} {what}:".replace(" :", ":")
    return handle + ("agent:" if passage.role == "assistant" else "result:")


_HANDLE = re.compile(r"m(\d+) (\S+)")
_ROLES = {"user:": "user", "agent:": "assistant"}


def _earlier(seq: int, role: str, _header: str, lines: list) -> Passage:  # type: ignore[type-arg]  # filled below
    return Passage(seq, role, tuple(lines), size=sum(len(line.text) for line in lines))  # type: ignore[arg-type]


def _short(call: CallFacts) -> str:
    text = " ".join(call.target.split())
    return text if len(text) <= 60 else text[:59].rstrip() + "…"


def _calls(messages: Iterable[Message]) -> dict[str, ToolCall]:
    return {call.id: call for m in messages if isinstance(m, AssistantMessage) for call in m.tool_calls}


class _Item(Struct):
    passage: int
    order: int
    text: str
    cost: float
    names: tuple[str, ...]
    line: bool


def estimate(text: str) -> float:
    """Tokens of a short text, by a cheap rule: pieces of words, digits by three, signs one each."""
    return len(_PIECE.findall(text))


_PIECE = re.compile(r"[A-Z]?[a-z]{1,7}|[A-Z]{1,4}|\d{1,3}|[^\w\s]|_")


class _Picks:
    """The growing choice of lines and names; the only state in this module, alive during one call of `select`."""

    def __init__(self, passages: Sequence[Passage], weights: dict[str, float], covered: set[str], *, handles: bool):
        self.passages = passages
        self.weights = weights
        self.covered = covered
        self.headers = [header(passage, handles=handles) for passage in passages]
        self.header_costs = [estimate(head) + _HEADER_COST for head in self.headers]
        self.items = self._items()
        self.heap = [(-self._gain(item), k) for k, item in enumerate(self.items)]
        heapq.heapify(self.heap)
        self.opened: dict[int, int] = {}
        self.chosen: list[int] = []
        self.used = 0.0

    @property
    def exhausted(self) -> bool:
        return not self.heap

    def fill(self, room: float) -> None:
        skipped = []
        while self.heap and self.used < room and len(skipped) < 60:
            value, k = heapq.heappop(self.heap)
            item = self.items[k]
            now = self._gain(item)
            if now <= 0:
                continue
            if now < -value - 1e-12:
                heapq.heappush(self.heap, (-now, k))
                continue
            cost = item.cost + (0 if item.passage in self.opened else self.header_costs[item.passage])
            if self.used + cost > room:
                skipped.append((value, k))
                continue
            self.used += cost
            self.opened[item.passage] = self.opened.get(item.passage, 0) + 1
            self.covered.update(item.names)
            self.chosen.append(k)
        for entry in skipped:
            heapq.heappush(self.heap, entry)

    def drop(self, tokens: float) -> None:
        target = self.used - tokens
        while self.chosen and self.used > target:
            item = self.items[self.chosen.pop()]
            self.used -= item.cost
            self.opened[item.passage] -= 1
            if not self.opened[item.passage]:
                del self.opened[item.passage]
                self.used -= self.header_costs[item.passage]

    def render(self) -> str:
        by_passage: dict[int, list[_Item]] = {}
        for k in self.chosen:
            by_passage.setdefault(self.items[k].passage, []).append(self.items[k])
        rows: list[str] = []
        for i in sorted(by_passage):
            items = sorted(by_passage[i], key=lambda item: item.order)
            lines = [item.text for item in items if item.line]
            held = set(words("\n".join(lines)))
            names = [item.text for item in items if not item.line and item.text not in held]
            rows.append(" ".join([self.headers[i], *names]))
            rows += ["  " + line for line in lines]
        return "\n".join(rows)

    def _gain(self, item: _Item) -> float:
        value = sum(self.weights.get(name, 0.0) for name in item.names if name not in self.covered)
        return value / (item.cost + 1)

    def _items(self) -> list[_Item]:
        home: dict[str, int] = {}
        refs: dict[str, Reference] = {}
        out: list[_Item] = []
        seen: set[str] = set()
        for i, passage in enumerate(self.passages):
            for line in passage.lines:
                for name in line.names:
                    home[name.text] = i
                    refs[name.text] = name
        for i, passage in enumerate(self.passages):
            for line in passage.lines:
                if line.text not in seen:
                    seen.add(line.text)
                    names = tuple(name.text for name in line.names)
                    out.append(_Item(i, line.number, line.text, estimate(line.text) + 2, names, line=True))
                for name in line.names:
                    if home.get(name.text) == i and name.text not in self.covered:
                        del home[name.text]
                        shown = f"`{name.text}`" if " " in name.text else name.text
                        parts = (name.text, *words(name.text)) if name.kind not in {"quoted"} else (name.text,)
                        out.append(_Item(i, line.number, shown, estimate(shown), parts, line=False))
        return out
