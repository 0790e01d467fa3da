"""A message as the lines that name something, read once and kept: what selection and scoring work on."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from mycode.context.digests import plain_output
from mycode.context.digests.calls import CallFacts, arguments_text, read_call
from mycode.context.references import Memo, Reference, in_line
from mycode.core.messages import AssistantMessage, Message, ToolCall, ToolResult, UserMessage

Part = Literal["text", "call", "result"]
LONGEST_LINE = 400


class Line(Struct, frozen=True):
    """One line of a message with the names on it; `number` counts the lines of the message from 0."""

    text: str
    names: tuple[Reference, ...]
    part: Part
    number: int


class Passage(Struct, frozen=True):
    """One message: who said it, what its calls (or the call it answers) are about, and its lines that name something.

    `size` is its length in characters, `failed` whether it is a failed result.
    """

    seq: int
    role: Literal["user", "assistant", "tool"]
    lines: tuple[Line, ...]
    calls: tuple[CallFacts, ...] = ()
    size: int = 0
    failed: bool = False


def read(seq: int, message: Message, call: ToolCall | None = None, memo: Memo | None = None) -> Passage:
    """Reads a message; `call` is the one a tool result answers. A shared `memo` makes many messages faster."""
    memo = {} if memo is None else memo
    match message:
        case UserMessage(text=text):
            return Passage(seq, "user", _lines(text, "text", memo), size=len(text))
        case ToolResult(text=text, is_error=failed):
            calls = (read_call(call),) if call else ()
            return Passage(seq, "tool", _lines(plain_output(text), "result", memo), calls, len(text), failed)
        case AssistantMessage(text=text, tool_calls=tool_calls):
            lines = _lines(text, "text", memo)
            size = len(text)
            for each in tool_calls:
                body = arguments_text(each.arguments)
                size += len(body)
                lines += _lines(body, "call", memo, len(lines))
            return Passage(seq, "assistant", lines, tuple(read_call(each) for each in tool_calls), size)


def _lines(text: str, part: Part, memo: Memo, start: int = 0) -> tuple[Line, ...]:
    found = []
    for number, row in enumerate(text.split("\n"), start):
        if len(row) > LONGEST_LINE:
            row = row[:300] + " … " + row[-80:]
        names = in_line(row, memo)
        if names:
            found.append(Line(row.strip(), tuple(dict.fromkeys(names)), part, number))
    return tuple(found)
