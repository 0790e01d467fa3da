"""A message as the lines that name something, read once and kept: what selection and scoring work on."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, count
from typing import Literal

from msgspec import Struct

from mycode.context.digests.calls import CallFacts, arguments_text, read_call
from mycode.context.references import Kind, Memo, Reference, extract, in_line, parts
from mycode.core.messages import AssistantMessage, Message, ToolCall, ToolResult, UserMessage

Part = Literal["text", "call", "result"]
Role = Literal["user", "assistant", "tool"]
LONGEST_LINE = 400
_MOST_CHUNKS = 2_000
"""What was found in so many runs of characters is remembered: most come again soon, if at all."""


class Name(Struct, frozen=True, gc=False, eq=False):
    """A name and what can be read off it; whoever reads has one for each, so that it is equal only to itself.

    `cost` is what naming it takes in tokens. `part` is its own number among the texts that can be read off any name,
    `shows` has the numbers of all that can be read off this one.
    """

    text: str
    kind: Kind
    cost: int
    part: int
    shows: tuple[int, ...]


class Line(Struct, frozen=True, gc=False):
    """One line of a message with the names on it; `number` counts the lines of the message, `cost` is in tokens."""

    text: str
    names: tuple[Name, ...]
    number: int
    cost: int


class Mention(Struct, frozen=True, gc=False):
    """A name in one message: on how many lines it stands, whether in what was said (not called), and in backticks."""

    name: Name
    lines: int
    said: bool
    ticked: bool


class Passage(Struct, frozen=True, gc=False):
    """One message: who said it, what its calls (or the call it answers) are about, and its lines that name something.

    `size` is its length in characters, `failed` whether it is a failed result; `title` is the header that an earlier
    fold gave it, empty for a message of the log. `titled` has the numbers of all that can be read off its header, and
    `title_cost` is what that takes in tokens, with the handle.
    """

    seq: int
    role: Role
    lines: tuple[Line, ...]
    mentions: tuple[Mention, ...] = ()
    calls: tuple[CallFacts, ...] = ()
    size: int = 0
    failed: bool = False
    title: str = ""
    titled: tuple[int, ...] = ()
    title_cost: int = 0


class Reader:
    """Reads messages, and owns the names in them and the numbers of what can be read off them."""

    def __init__(self) -> None:
        self.names: dict[Reference, Name] = {}
        self.parts = _numbering({})
        self._memo: Memo = {}

    def branch(self) -> Reader:
        """One that knows the same so far, and whose reading does not change this one."""
        other = Reader()
        other.names = dict(self.names)
        other.parts = _numbering(self.parts)
        return other

    def read(self, seq: int, message: Message, call: ToolCall | None = None) -> Passage:
        """The passage of a message; `call` is the one that a tool result answers."""
        if len(self._memo) > _MOST_CHUNKS:
            self._memo.clear()
        role: Role = "tool"
        calls: tuple[CallFacts, ...] = ()
        failed = False
        lines = self._lines(message.text)
        said, size = len(lines), len(message.text)
        match message:
            case UserMessage():
                role = "user"
            case ToolResult():
                calls, failed, said = (read_call(call),) if call else (), message.is_error, 0
            case AssistantMessage():
                role = "assistant"
                for each in message.tool_calls:
                    body = arguments_text(each.arguments)
                    size += len(body)
                    lines += self._lines(body, len(lines))
                calls = tuple(read_call(each) for each in message.tool_calls)
        title = heading(role, calls, failed=failed)
        titled = self.titled(title) if calls else ()
        cost = estimate(title) + handle_cost(seq) + 1
        return Passage(seq, role, lines, self.mentions(lines, said), calls, size, failed, "", titled, cost)

    def titled(self, title: str) -> tuple[int, ...]:
        """The numbers of all that can be read off a header."""
        line = self.line(title, 0)
        return shown(line.names) if line else ()

    def mentions(self, lines: tuple[Line, ...], said: int) -> tuple[Mention, ...]:
        """The distinct names of some lines; the first `said` of them are what was said, not called or returned."""
        counts: dict[Name, int] = {}
        spoken: set[Name] = set()
        ticked: set[Name] = set()
        for place, line in enumerate(lines):
            for name in line.names:
                counts[name] = counts.get(name, 0) + 1
            if place < said:
                spoken.update(line.names)
            if "`" in line.text:
                ticked.update(name for name in line.names if "`" + name.text in line.text)
        return tuple([Mention(name, number, name in spoken, name in ticked) for name, number in counts.items()])

    def line(self, row: str, number: int) -> Line | None:
        """A line of text, None if it names nothing."""
        found = in_line(row, self._memo)
        if not found:
            return None
        known = self.names.get
        names = tuple(dict.fromkeys([known(reference) or self.name(reference) for reference in found]))
        return Line(row.strip(), names, number, estimate(row))

    def known_in(self, text: str) -> set[int]:
        """The numbers of all that can be read off the names in a text, as far as it has one."""
        number = self.parts.get
        return {
            known
            for name in extract(text)
            for part in parts(name.text, name.kind)
            if (known := number(part)) is not None
        }

    def name(self, reference: Reference) -> Name:
        """The one name for that reference."""
        known = self.names.get(reference)
        if known is None:
            text, number = reference.text, self.parts.__getitem__
            cost = estimate(text) + (2 if " " in text else 0)
            shows = tuple(map(number, parts(text, reference.kind)))
            known = self.names[reference] = Name(text, reference.kind, cost, number(text), shows)
        return known

    def _lines(self, text: str, start: int = 0) -> tuple[Line, ...]:
        found = []
        for number, row in enumerate(text.split("\n"), start):
            if len(row) > LONGEST_LINE:
                row = row[:300] + " … " + row[-80:]
            if line := self.line(row, number):
                found.append(line)
        return tuple(found)


def shown(names: Sequence[Name]) -> tuple[int, ...]:
    """The numbers of all that can be read off these names, each once."""
    if len(names) == 1:
        return names[0].shows
    return tuple(dict.fromkeys(chain.from_iterable([name.shows for name in names])))


def _numbering(known: dict[str, int]) -> defaultdict[str, int]:
    """A number for every text, in the order of their first coming; it goes on after the known ones."""
    return defaultdict(count(len(known)).__next__, known)


def heading(role: Role, calls: Sequence[CallFacts], *, failed: bool) -> str:
    """What a message was, ending in a colon: whether it failed, tool and target, or who spoke."""
    if not calls:
        return _SPEAKERS[role]
    arrow = "→ " if role == "tool" else ""
    return f"{arrow}{'❌ ' if failed else ''}{'; '.join(_named(call) for call in calls[:3])}:"


def _named(call: CallFacts) -> str:
    target = " ".join(call.target.split())
    limit = 60 if call.command else 120  # a path cut short would be no path
    return f"{call.tool} {target if len(target) <= limit else target[: limit - 1].rstrip() + '…'}".rstrip()


def handle_cost(seq: int) -> int:
    """Tokens of the handle that opens a header."""
    return estimate(f"m{seq}")


_SPEAKERS: dict[Role, str] = {"user": "user:", "assistant": "agent:", "tool": "→ result:"}


def estimate(text: str) -> int:
    """Tokens of a short text by a cheap rule: pieces of words, digits by three, signs one each."""
    return len(_PIECE.findall(text))


_PIECE = re.compile(r"[A-Z]?[a-z]{1,7}|[A-Z]{1,4}|\d{1,3}|[^\w\s]|_")
