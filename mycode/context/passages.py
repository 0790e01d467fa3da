"""A message as the lines that name something, read once and kept: what selection and scoring work on."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from mycode.context.digests.calls import CallFacts, arguments_text, read_call
from mycode.context.references import Memo, Reference, in_line
from mycode.core.messages import AssistantMessage, Message, ToolCall, ToolResult, UserMessage

Part = Literal["text", "call", "result"]
Role = Literal["user", "assistant", "tool"]
LONGEST_LINE = 400


class Line(Struct, frozen=True):
    """One line of a message with the names on it; `number` counts the lines of the message, `cost` is in tokens."""

    text: str
    names: tuple[Reference, ...]
    number: int
    cost: float


class Mention(Struct, frozen=True):
    """A name in one message: on how many lines it stands, whether in what was said (not called), and in backticks."""

    name: Reference
    lines: int
    said: bool
    ticked: bool


class Passage(Struct, frozen=True):
    """One message: who said it, what its calls (or the call it answers) are about, and its lines that name something.

    `size` is its length in characters, `failed` whether it is a failed result; `title` is the header that an earlier
    fold gave it, empty for a message of the log.
    """

    seq: int
    role: Role
    lines: tuple[Line, ...]
    mentions: tuple[Mention, ...] = ()
    calls: tuple[CallFacts, ...] = ()
    size: int = 0
    failed: bool = False
    title: str = ""


def read(seq: int, message: Message, call: ToolCall | None = None, memo: Memo | None = None) -> Passage:
    """Reads a message; `call` is the one a tool result answers. A shared `memo` makes many messages faster."""
    memo = {} if memo is None else memo
    match message:
        case UserMessage(text=text):
            lines = _lines(text, memo)
            return Passage(seq, "user", lines, mentions_of(lines, len(lines)), size=len(text))
        case ToolResult(text=text, is_error=failed):
            answered = (read_call(call),) if call else ()
            lines = _lines(text, memo)
            return Passage(seq, "tool", lines, mentions_of(lines, 0), answered, len(text), failed)
        case AssistantMessage(text=text, tool_calls=tool_calls):
            lines = _lines(text, memo)
            said, size = len(lines), len(text)
            for each in tool_calls:
                body = arguments_text(each.arguments)
                size += len(body)
                lines += _lines(body, memo, len(lines))
            calls = tuple(read_call(each) for each in tool_calls)
            return Passage(seq, "assistant", lines, mentions_of(lines, said), calls, size)


def mentions_of(lines: tuple[Line, ...], said: int) -> tuple[Mention, ...]:
    """The distinct names of some lines; the first `said` of them are what was said rather than called or returned."""
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
    return tuple(Mention(name, number, name in spoken, name in ticked) for name, number in counts.items())


def estimate(text: str) -> float:
    """Tokens of a short text by a cheap rule: pieces of words, digits by three, signs one each."""
    return len(_PIECE.findall(text)) + 0.0


_PIECE = re.compile(r"[A-Z]?[a-z]{1,7}|[A-Z]{1,4}|\d{1,3}|[^\w\s]|_")


def _lines(text: str, memo: Memo, start: int = 0) -> tuple[Line, ...]:
    found = []
    for number, row in enumerate(text.split("\n"), start):
        if len(row) > LONGEST_LINE:
            row = row[:300] + " … " + row[-80:]
        if names := in_line(row, memo):
            found.append(Line(row.strip(), tuple(dict.fromkeys(names)), number, estimate(row)))
    return tuple(found)
