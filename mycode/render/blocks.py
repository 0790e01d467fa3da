"""Markdown that arrives in pieces: finished blocks come out as soon as they are finished, each of them once.

A block is a paragraph, a heading, one item of a list, a table, a quote or one line of fenced code. Work
per line does not depend on how much came before, so an answer of any length costs the same per line.
"""

from __future__ import annotations

import re

from msgspec import Struct

from mycode.core.visible import plain

LONGEST_OPEN = 3000
_MOST_LINES = 100
_DEEPEST = 24
_FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$")
_ITEM = re.compile(r"^(\s{0,3})([-*+]|\d{1,9}[.)])(\s+)(?=\S)")
_HEADING = re.compile(r"^ {0,3}#{1,6}(\s|$)")


class Block(Struct, frozen=True):
    """A finished piece of an answer: markdown source, or one line of code of `language`.

    `gap` asks for a blank line above; `indent` is how far it stands to the right, inside an item of a list.
    """

    source: str
    code: bool = False
    language: str = ""
    gap: bool = False
    indent: int = 0


class MarkdownStream:
    """Cuts streamed markdown into blocks. Owns the text of the open block and nothing else."""

    def __init__(self) -> None:
        self._tail: list[str] = []
        self._lines: list[str] = []
        self._fence: _Fence | None = None
        self._lines_indent = 0
        self._items: list[int] = []
        self._gap = False
        self._any = False

    def feed(self, delta: str) -> list[Block]:
        """Takes the next piece of text and gives back the blocks it has finished."""
        if "\n" not in delta:
            if delta:
                self._tail.append(delta)
            return []
        *lines, rest = ("".join(self._tail) + delta).split("\n")
        self._tail = [rest] if rest else []
        return [block for line in lines for block in self._line(plain(line.removesuffix("\r")))]

    def finish(self) -> list[Block]:
        """Gives back what was still open and starts anew."""
        blocks = self._line(plain("".join(self._tail))) if self._tail else []
        blocks += self._close()
        self.__init__()  # type: ignore[misc]  # all of its state is one text
        return blocks

    @property
    def open(self) -> str:
        """The source of the open block, of a very long one the end."""
        tail = plain("".join(self._tail)[-LONGEST_OPEN:])
        if self._fence is not None:
            return tail
        lines = self._lines[-_MOST_LINES:]
        return "\n".join([*lines, tail] if tail else lines)

    @property
    def gap(self) -> bool:
        """Whether the open block stands apart from what came before it."""
        return self._gap and self._any

    @property
    def in_code(self) -> bool:
        """Whether the open block is fenced code."""
        return self._fence is not None

    def _line(self, line: str) -> list[Block]:
        if self._fence is not None:
            if self._fence.closed_by(line):
                self._fence = None
                self._gap = True
                return []
            return [self._block(self._fence.inner(line), code=True, language=self._fence.language)]
        if opening := _FENCE.match(line):
            blocks = self._close()
            self._leave_items(len(opening[1]))
            self._fence = _Fence(len(opening[1]), opening[2], opening[3])
            self._gap = True
            return blocks
        if not line.strip():
            blocks = self._close()
            self._gap = True
            return blocks
        return self._prose(line)

    def _prose(self, line: str) -> list[Block]:
        lead = len(line) - len(line.lstrip())
        if self._lines and not self._interrupts(line, lead):
            self._lines.append(line[min(lead, self._lines_indent) :])
            endless = len(self._lines) >= _MOST_LINES and not self._lines[0].lstrip().startswith("|")
            return self._close() if endless else []
        blocks = self._close()
        self._leave_items(lead)
        inside = self._items[-1] if self._items else 0
        line = line[inside:]
        is_heading = _HEADING.match(line) is not None
        self._gap = self._gap or is_heading
        self._lines, self._lines_indent = [line], inside
        if item := _ITEM.match(line):
            self._items.append(inside + item.end())
        elif is_heading:
            blocks += self._close()
            self._gap = True
        return blocks

    def _interrupts(self, line: str, lead: int) -> bool:
        """Whether this line starts a block although one is open: an item beside it, a heading."""
        if self._items and lead >= self._items[-1]:
            return False
        if item := _ITEM.match(line.lstrip()):
            # `1986. A great year` in a paragraph is no list.
            return bool(self._items) or not item[2][0].isdigit() or item[2][:-1] == "1"
        return _HEADING.match(line) is not None

    def _leave_items(self, lead: int) -> None:
        while self._items and lead < self._items[-1]:
            self._items.pop()

    def _close(self) -> list[Block]:
        if not self._lines:
            return []
        lines, self._lines = self._lines, []
        return [self._block("\n".join(lines), indent=self._lines_indent)]

    def _block(self, source: str, *, code: bool = False, language: str = "", indent: int | None = None) -> Block:
        gap, self._gap = self.gap, False
        self._any = True
        inside = self._items[-1] if self._items else 0
        return Block(source, code, language, gap, min(inside if indent is None else indent, _DEEPEST))


class _Fence:
    def __init__(self, indent: int, mark: str, language: str) -> None:
        self._indent = indent
        self._mark = mark
        self.language = language

    def closed_by(self, line: str) -> bool:
        bare = line.strip()
        return len(bare) >= len(self._mark) and not bare.strip(self._mark[0])

    def inner(self, line: str) -> str:
        lead = len(line) - len(line.lstrip(" "))
        return line[min(lead, self._indent) :]
