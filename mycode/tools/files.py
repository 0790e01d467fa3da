"""The tools that read a file and create one."""

from __future__ import annotations

import codecs
import hashlib
import os
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Annotated, BinaryIO

from msgspec import Meta, Struct, structs

from mycode.core.errors import ToolError
from mycode.core.messages import Image
from mycode.core.tools import Action, Report, TextDisplay, ToolOutput
from mycode.tools.diff import diff_display
from mycode.tools.encoding import Text, decode, looks_binary
from mycode.tools.pictures import too_large
from mycode.tools.workspace import Workspace

LINES_AT_ONCE = 2000
_HELD_BYTES = 32_000_000  # larger files are read line by line
_LONGEST_LINE = 2000
_PIECE = 65_536
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

Line = Annotated[int, Meta(ge=1)]


class ReadFileArgs(Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    start_line: Line | None = None
    end_line: Line | None = None


class ReadFile:
    """`read_file`: text as `number<tab>line`, pictures as pictures, everything else named and refused.

    At most `LINES_AT_ONCE` lines and `limit()` characters at a time; what is left out is said, with how to get it.
    """

    name = "read_file"
    description = (
        f"Read a text file (up to {LINES_AT_ONCE} lines at once) or look at an image. Lines come as number, tab, text."
    )
    Args = ReadFileArgs

    def __init__(self, workspace: Workspace, limit: Callable[[], int]) -> None:
        self._workspace = workspace
        self._limit = limit

    def plan(self, args: ReadFileArgs) -> Action:
        touched = self._workspace.touched(args.path)
        return Action(self.name, "read", f"{self.name} {self._workspace.relative(touched[0])}", reads=touched)

    async def run(self, args: ReadFileArgs, _report: Report) -> ToolOutput:
        path = self._workspace.resolve(args.path)
        shown = self._workspace.relative(path)
        first = args.start_line or 1
        if args.end_line is not None and args.end_line < first:
            message = f"end_line {args.end_line} comes before start_line {first}."
            raise ToolError(message)
        with self._workspace.open(path) as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(8192)
            kind, huge = image_type(head), size > _HELD_BYTES
            if kind and not huge:
                return _image(path, shown, kind, head + file.read())
            if kind or looks_binary(head) or (huge and head.startswith(_UTF_16)):
                message = f"{shown} is not text that can be shown: {kind or binary_type(head)}, {size:,} bytes."
                raise ToolError(message)
            file.seek(0)
            if huge:
                page = self._page_of_huge(file, path, first, args.end_line)
            else:
                data = file.read()
                self._workspace.note(path, data)
                page = self._page(decode(data), first, args.end_line)
        return ToolOutput(page.told(shown, first), TextDisplay(f"{shown} · {page.summary(first)}"))

    def _page(self, text: Text, first: int, last: int | None) -> _Page:
        lines = _split(text.text)
        wanted = [_cut(line, len(line)) for line in lines[first - 1 : last]]
        return self._fill(wanted, first, total=len(lines), remark=text.remark)

    def _page_of_huge(self, file: BinaryIO, path: Path, first: int, last: int | None) -> _Page:
        """The wanted lines without holding the file; counts its lines and notes its content on the way."""
        digest = hashlib.sha256()
        starts: list[bytes] = []
        lengths: list[int] = []
        total, begins = 0, True
        stop = min(last or first + LINES_AT_ONCE, first + LINES_AT_ONCE)
        while piece := file.readline(_PIECE):  # a line may be as long as the file
            digest.update(piece)
            total += begins
            if first <= total <= stop:
                if begins:
                    starts.append(piece)
                    lengths.append(0)
                lengths[-1] += len(piece.rstrip(b"\r\n"))
            begins = piece.endswith(b"\n")
        self._workspace.note_digest(path, digest.hexdigest())
        texts = [decode(start) for start in starts]
        wanted = [_cut(text.text.rstrip("\r\n"), length) for text, length in zip(texts, lengths, strict=True)]
        remark = next((text.remark for text in texts if text.remark), "")
        return self._fill(wanted, first, total=total, remark=remark)

    def _fill(self, lines: list[str], first: int, *, total: int, remark: str) -> _Page:
        room = max(500, self._limit() - 300)
        body: list[str] = []
        for number, line in enumerate(islice(lines, LINES_AT_ONCE), start=first):
            room -= len(line) + len(str(number)) + 2
            if room < 0 and body:
                break
            body.append(f"{number}\t{line}")
        return _Page(tuple(body), len(lines), total, remark)


class _Page(Struct, frozen=True):
    """What is shown of a file: numbered lines, how many were wanted, how many there are."""

    lines: tuple[str, ...]
    wanted: int
    total: int
    remark: str

    def told(self, shown: str, first: int) -> str:
        if not self.total:
            return f"{shown} is empty."
        if not self.lines:
            message = f"{shown} has only {self.total:,} lines; there is no line {first}."
            raise ToolError(message)
        notes = [f"[{self.remark}]"] if self.remark else []
        last = first + len(self.lines) - 1
        rest = []
        if len(self.lines) < self.wanted:
            rest = [f"[lines {first}-{last} of {self.total:,}; go on with start_line={last + 1}]"]
        elif last < self.total or first > 1:
            rest = [f"[lines {first}-{last} of {self.total:,}]"]
        return "\n".join([*notes, *self.lines, *rest])

    def summary(self, first: int) -> str:
        if len(self.lines) == self.total:
            return f"{self.total:,} lines"
        return f"lines {first}-{first + len(self.lines) - 1} of {self.total:,}"


class CreateFileArgs(Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    content: str


class CreateFile:
    """`create_file`: a new file with its folders; an existing one only if it was read and is still what was read."""

    name = "create_file"
    description = "Create a file and its folders. Overwrites an existing file only if you have read it."
    Args = CreateFileArgs

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def plan(self, args: CreateFileArgs) -> Action:
        touched = self._workspace.touched(args.path, write=True)
        title = f"{self.name} {self._workspace.relative(touched[0])}"
        action = Action(self.name, "write", title, writes=touched)
        try:
            before = self._before(args)
        except ToolError as error:
            return structs.replace(action, fails=str(error))
        shown = self._workspace.relative(touched[0])
        return structs.replace(action, displays=(diff_display(shown, before, args.content),))

    async def run(self, args: CreateFileArgs, _report: Report) -> ToolOutput:
        path = self._workspace.resolve(args.path)
        shown = self._workspace.relative(path)
        with self._workspace.editing(path):
            before = self._before(args)
            self._workspace.make_folders(path.parent)
            self._workspace.write_atomic(path, args.content.encode())
        lines = len(_split(args.content))
        verb = "created" if before is None else "overwritten"
        told = f"{shown} {verb}, {lines} line{'' if lines == 1 else 's'}."
        return ToolOutput(told, diff_display(shown, before, args.content))

    def _before(self, args: CreateFileArgs) -> str | None:
        """The text that would be overwritten, None for a new file."""
        path = self._workspace.resolve(args.path)
        if not os.path.lexists(path):
            return None
        check_overwrite(self._workspace, path)
        before = self._workspace.read_bytes(path)
        if before == args.content.encode():
            message = f"{self._workspace.relative(path)} already has exactly this content."
            raise ToolError(message)
        return decode(before).text


def check_overwrite(workspace: Workspace, path: Path) -> None:
    """Refuses to replace the whole of a file that was never read, or is not what was read."""
    data, shown = workspace.read_bytes(path), workspace.relative(path)
    if workspace.seen(path) is None:
        message = f"{shown} exists and was not read. Read it first, or change it with edit_file."
        raise ToolError(message)
    if workspace.changed(path, data):
        message = f"{shown} has changed since it was read; nothing was written. Read it again first."
        raise ToolError(message)


def image_type(head: bytes) -> str | None:
    """The media type of a picture models can look at, by its signature."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else None


def binary_type(head: bytes) -> str:
    """What a binary file seems to be, in a word or two."""
    return next((kind for signature, kind in _SIGNATURES if head.startswith(signature)), "unknown binary data")


_SIGNATURES = (
    (b"\x7fELF", "an ELF program"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"%PDF", "a PDF document"),
    (b"SQLite format 3\0", "a SQLite database"),
    (b"BM", "a BMP image"),
    (codecs.BOM_UTF16_LE, "UTF-16 text"),
    (codecs.BOM_UTF16_BE, "UTF-16 text"),
    (b"\xca\xfe\xba\xbe", "a Java class or Mach-O program"),
)


def _image(path: Path, shown: str, kind: str, data: bytes) -> ToolOutput:
    if why := too_large(data):
        told = f"{shown} is an image ({kind}, {len(data):,} bytes), too large to look at: {why}. Make a smaller copy."
        return ToolOutput(told, TextDisplay(told))
    image = Image(str(path), kind, hashlib.sha256(data).hexdigest(), len(data))
    told = f"{shown} is an image ({kind}, {len(data):,} bytes), attached."
    return ToolOutput(told, TextDisplay(f"{shown} · {kind}, {len(data):,} bytes"), (image,))


def _cut(line: str, length: int) -> str:
    """The line, or its beginning when it is too long; `length` is that of the whole."""
    if len(line) <= _LONGEST_LINE:
        return line
    return f"{line[:_LONGEST_LINE]} … ({length - _LONGEST_LINE:,} more characters in this line)"


def _split(text: str) -> list[str]:
    """The lines of a text, whichever way they end; no empty one after the last line end."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines
