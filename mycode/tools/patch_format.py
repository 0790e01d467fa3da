"""The patch format that models write, read into values: files added, updated, moved, deleted (pure)."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from mycode.core.errors import ToolError

_BEGIN, _END, _EOF = "*** Begin Patch", "*** End Patch", "*** End of File"
_MOVE = "*** Move to:"
_HEADERS: dict[str, Literal["add", "update", "delete"]] = {
    "*** Add File:": "add",
    "*** Update File:": "update",
    "*** Delete File:": "delete",
}
_LINE_NUMBERS = r"-\d+(,\d+)? \+\d+(,\d+)? @@.*"


class Hunk(Struct, frozen=True):
    """One change of a file: whole lines `old` become `new`, somewhere after the `anchors`, or at the very end."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    anchors: tuple[str, ...] = ()
    at_end: bool = False


class FileChange(Struct, frozen=True):
    """What a patch says of one file: `lines` of a new one, or `hunks` (and perhaps a new path) of an existing one."""

    kind: Literal["add", "update", "delete"]
    path: str
    lines: tuple[str, ...] = ()
    hunks: tuple[Hunk, ...] = ()
    move_to: str | None = None


def parse(patch: str) -> tuple[FileChange, ...]:
    """The changes in the order of the patch. Raises `ToolError` with the line that cannot be read."""
    lines = patch.replace("\r\n", "\n").strip("\n").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines or lines[0].strip() != _BEGIN:
        message = f"A patch begins with the line “{_BEGIN}”."
        raise ToolError(message)
    if lines[-1].strip() != _END:
        message = f"A patch ends with the line “{_END}”; it may have been cut off."
        raise ToolError(message)
    reader = _Reader(lines[1:-1])
    changes: list[FileChange] = []
    while not reader.done:
        changes.append(_file_change(reader))
    if not changes:
        message = "The patch is empty: it names no file."
        raise ToolError(message)
    return tuple(changes)


class _Reader:
    """The lines of a patch, one at a time; numbers count from the line after the begin marker, as line 2."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    @property
    def done(self) -> bool:
        return self._at >= len(self._lines)

    @property
    def line(self) -> str:
        return self._lines[self._at]

    def next(self) -> str:
        self._at += 1
        return self._lines[self._at - 1]

    @property
    def at_padding(self) -> bool:
        """Whether only empty lines stand between here and the next header or the end: they are no context."""
        line = next((line for line in self._lines[self._at :] if line), None)
        return not self.line and (line is None or _is_header(line.strip()))

    def refuse(self, why: str) -> ToolError:
        shown = "" if self.done else f": {self.line[:80]!r}"
        return ToolError(f"Line {self._at + 2} of the patch: {why}{shown}.")


def _file_change(reader: _Reader) -> FileChange:
    header = reader.line.strip()
    kind, path = next(
        ((kind, header.removeprefix(mark).strip()) for mark, kind in _HEADERS.items() if header.startswith(mark)),
        (None, ""),
    )
    if kind is None or not path:
        why = "expected “*** Add File: PATH”, “*** Update File: PATH” or “*** Delete File: PATH”"
        raise reader.refuse(why)
    reader.next()
    if kind == "delete":
        return FileChange("delete", path)
    if kind == "add":
        return FileChange("add", path, lines=_added(reader))
    move_to = None
    if not reader.done and reader.line.strip().startswith(_MOVE):
        move_to = reader.next().strip().removeprefix(_MOVE).strip() or None
    hunks = _hunks(reader)
    if not hunks and move_to is None:
        raise reader.refuse(f"the update of {path} has no changes")
    return FileChange("update", path, hunks=hunks, move_to=move_to)


def _added(reader: _Reader) -> tuple[str, ...]:
    lines = []
    while not reader.done and reader.line.startswith("+"):
        lines.append(reader.next()[1:])
    if not reader.done and not _is_header(reader.line.strip()):
        raise reader.refuse("each line of an added file begins with +")
    return tuple(lines)


def _hunks(reader: _Reader) -> tuple[Hunk, ...]:
    hunks: list[Hunk] = []
    while not reader.done and not _is_header(reader.line.rstrip()):
        if reader.at_padding:
            reader.next()
            continue
        if hunks and not reader.line.startswith("@@"):
            raise reader.refuse("expected a line that begins with a blank, +, - or @@")
        hunks.append(_hunk(reader))
    return tuple(hunks)


def _hunk(reader: _Reader) -> Hunk:
    anchors: list[str] = []
    while not reader.done and reader.line.startswith("@@"):
        anchor = reader.next()[2:]
        anchor = "" if re.fullmatch(_LINE_NUMBERS, anchor.strip()) else anchor.removeprefix(" ").rstrip()
        if anchor:
            anchors.append(anchor)
    old: list[str] = []
    new: list[str] = []
    at_end = False
    while not reader.done and not reader.line.startswith("@@"):
        line = reader.line
        if line.strip() == _EOF:
            reader.next()
            at_end = True
            break
        if _is_header(line.rstrip()) or (old and reader.at_padding):
            break
        if not line or line[0] == " ":
            old.append(line[1:])
            new.append(line[1:])
        elif line[0] == "-":
            old.append(line[1:])
        elif line[0] == "+":
            new.append(line[1:])
        else:
            raise reader.refuse("expected a line that begins with a blank, + or -")
        reader.next()
    if not old and not new:
        raise reader.refuse("the change is empty")
    return Hunk(tuple(old), tuple(new), tuple(anchors), at_end=at_end)


def _is_header(line: str) -> bool:
    return line.startswith(tuple(_HEADERS))
