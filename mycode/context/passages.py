"""A message as the lines that name something, read once and kept: what selection and scoring work on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from mycode.context.digests.calls import CallFacts, arguments_text, read_call
from mycode.context.references import Memo, Reference, in_line, parts
from mycode.core.messages import AssistantMessage, Message, ToolCall, ToolResult, UserMessage

Part = Literal["text", "call", "result"]
Role = Literal["user", "assistant", "tool"]
LONGEST_LINE = 400


class Line(Struct, frozen=True, gc=False):
    """One line of a message with the names on it; `number` counts the lines of the message, `cost` is in tokens.

    `shows` holds every name that can be read off the line, in sorted order: its names and the parts of them.
    """

    text: str
    names: tuple[Reference, ...]
    number: int
    cost: float
    shows: tuple[str, ...]


class Mention(Struct, frozen=True, gc=False):
    """A name in one message: on how many lines it stands, whether in what was said (not called), and in backticks.

    `cost` is what naming it takes in tokens, `shows` every name that can be read off it, in sorted order.
    """

    name: Reference
    lines: int
    said: bool
    ticked: bool
    cost: float
    shows: tuple[str, ...]


class Passage(Struct, frozen=True, gc=False):
    """One message: who said it, what its calls (or the call it answers) are about, and its lines that name something.

    `size` is its length in characters, `failed` whether it is a failed result; `title` is the header that an earlier
    fold gave it, empty for a message of the log. `titled` holds every name that can be read off its header, and
    `title_cost` is what that takes in tokens, without the handle.
    """

    seq: int
    role: Role
    lines: tuple[Line, ...]
    mentions: tuple[Mention, ...] = ()
    calls: tuple[CallFacts, ...] = ()
    size: int = 0
    failed: bool = False
    title: str = ""
    titled: tuple[str, ...] = ()
    title_cost: float = 0.0


class Reader(Struct):
    """Reads messages; what it learns of words and names serves for all the messages it reads."""

    memo: Memo = {}
    parts: dict[Reference, tuple[str, ...]] = {}
    costs: dict[str, float] = {}

    def read(self, seq: int, message: Message, call: ToolCall | None = None) -> Passage:
        """The passage of a message; `call` is the one that a tool result answers."""
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
        return Passage(seq, role, lines, self.mentions(lines, said), calls, size, failed, "", titled, estimate(title))

    def titled(self, title: str) -> tuple[str, ...]:
        """Every name that can be read off a header."""
        line = self.line(title, 0)
        return line.shows if line else ()

    def mentions(self, lines: tuple[Line, ...], said: int) -> tuple[Mention, ...]:
        """The distinct names of some lines; the first `said` of them are what was said, not called or returned."""
        counts: dict[Reference, int] = {}
        spoken: set[Reference] = set()
        ticked: set[Reference] = set()
        for place, line in enumerate(lines):
            for name in line.names:
                counts[name] = counts.get(name, 0) + 1
            if place < said:
                spoken.update(line.names)
            if "`" in line.text:
                ticked.update(name for name in line.names if "`" + name.text in line.text)
        return tuple(
            [
                Mention(name, number, name in spoken, name in ticked, self._cost(name.text), self.shown_by(name))
                for name, number in counts.items()
            ]
        )

    def line(self, row: str, number: int) -> Line | None:
        """A line of text, None if it names nothing."""
        names = tuple(dict.fromkeys(in_line(row, self.memo)))
        if not names:
            return None
        if len(names) == 1:
            return Line(row.strip(), names, number, estimate(row), self.shown_by(names[0]))
        shows: set[str] = set()
        for name in names:
            shows.update(self.shown_by(name))
        return Line(row.strip(), names, number, estimate(row), tuple(sorted(shows)))

    def shown_by(self, name: Reference) -> tuple[str, ...]:
        known = self.parts.get(name)
        if known is None:
            known = self.parts[name] = parts(name.text, name.kind)
        return known

    def _cost(self, text: str) -> float:
        known = self.costs.get(text)
        if known is None:
            known = self.costs[text] = estimate(text) + (2 if " " in text else 0)
        return known

    def _lines(self, text: str, start: int = 0) -> tuple[Line, ...]:
        found = []
        for number, row in enumerate(text.split("\n"), start):
            if len(row) > LONGEST_LINE:
                row = row[:300] + " … " + row[-80:]
            if line := self.line(row, number):
                found.append(line)
        return tuple(found)


def read(seq: int, message: Message, call: ToolCall | None = None) -> Passage:
    """The passage of one message; `call` is the one that a tool result answers."""
    return Reader().read(seq, message, call)


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


_SPEAKERS: dict[Role, str] = {"user": "user:", "assistant": "agent:", "tool": "→ result:"}


def estimate(text: str) -> float:
    """Tokens of a short text by a cheap rule: pieces of words, digits by three, signs one each."""
    return len(_PIECE.findall(text)) + 0.0


_PIECE = re.compile(r"[A-Z]?[a-z]{1,7}|[A-Z]{1,4}|\d{1,3}|[^\w\s]|_")
