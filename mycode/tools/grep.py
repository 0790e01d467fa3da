"""The tool that finds lines: by ripgrep where there is one, else by Python, with the same answer."""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from mycode.core.errors import ToolError
from mycode.core.tools import Action, Report, TextDisplay, ToolOutput, Veil
from mycode.tools.search import files_below, glob_regex, nothing_hidden
from mycode.tools.workspace import Workspace

_LINES = 200
_LINE_CHARS = 300
_FILE_BYTES = 20_000_000
_SECONDS = 60
# Ripgrep's output in JSON would name each match within a line: gigabytes for some lines.
_PLAIN = (
    *("--no-config", "--no-ignore", "--hidden", "--text", "--no-heading", "--with-filename"),
    *("--null", "--line-number", "--color", "never"),
)


class GrepArgs(Struct, frozen=True, forbid_unknown_fields=True):
    pattern: Annotated[str, Meta(min_length=1, description="Regular expression")]
    path: str = "."
    glob: str | None = None


class Hit(Struct, frozen=True):
    path: str
    line: int
    text: str


class Grep:
    """`grep`: `path:line: text`, by path and line; how many there are in all comes first when not all are shown."""

    name = "grep"
    description = "Find lines by regular expression, as path:line: text. Ignored and binary files are left out."
    Args = GrepArgs

    def __init__(
        self, workspace: Workspace, ripgrep: str | None = None, veil: Veil | None = None, seconds: float = _SECONDS
    ) -> None:
        self._workspace = workspace
        self._seconds = seconds
        self._veil: Veil = veil or nothing_hidden
        self._ripgrep = ripgrep

    def plan(self, args: GrepArgs) -> Action:
        where = f"{args.path} {args.glob or ''}".strip()
        return Action(
            self.name, "read", f"{self.name} {args.pattern} in {where}", reads=self._workspace.touched(args.path)
        )

    async def run(self, args: GrepArgs, _report: Report) -> ToolOutput:
        try:
            re.compile(args.pattern)
        except re.error as error:
            message = (
                f"The pattern is no regular expression: {error}. For the text itself use {re.escape(args.pattern)}"
            )
            raise ToolError(message) from error
        target = self._workspace.resolve(args.path)
        below = await files_below(self._workspace, self.name, args.path, self._veil, content=True)
        # A link may lead out of what was judged: what it points to is searched where it really is. A pipe never ends.
        files = [path for path in below.names if path == "." or _is_regular(target / path)]
        if args.glob:
            wanted = glob_regex(args.glob if "/" in args.glob else f"**/{args.glob}")
            files = [path for path in files if wanted.fullmatch(path)]
        base = target if target.is_dir() else target.parent
        names = files if target.is_dir() else [target.name]
        found = await self._by_ripgrep(args.pattern, base, names) if self._ripgrep else None
        if found is None:
            found = await self._by_python(args.pattern, base, names)
        first = found.first()
        proven = await asyncio.to_thread(lambda: list(_proven(self._workspace, base, first)))
        doubted = {hit.path for hit in first} - {hit.path for hit in proven}
        hits, in_files = found.hits - len(first) + len(proven), found.files - len(doubted)
        counted = f"{hits} {'match' if hits == 1 else 'matches'} in {in_files} {'file' if in_files == 1 else 'files'}"
        lines = [self._shown(base, hit) for hit in proven]
        line = TextDisplay(f"{args.pattern} · {counted}", "\n".join(lines))
        if not hits:
            return ToolOutput(f"No line matches {args.pattern} in {args.path}.{below.note}", line)
        head = f"{counted}; the first {len(lines)}:\n" if hits > len(lines) else ""
        return ToolOutput(head + "\n".join(lines) + below.note, line)

    async def _by_ripgrep(self, pattern: str, base: Path, names: list[str]) -> _Found | None:
        """Ripgrep over exactly the files that Python would read, a batch at a time.

        None for an expression that only Python understands (look-around, back references).
        """
        assert self._ripgrep is not None
        found = _Found(names)
        for start in range(0, len(names), 2000):
            argv = [self._ripgrep, *_PLAIN, "--max-filesize", "20M"]
            argv += ["-e", pattern, "--", *names[start : start + 2000]]
            rows = _Rows(found, base)
            code, trouble = await self._asked(argv, base, rows.take)
            if code == 2 and b"regex" in trouble:
                return None
            rows.end()
        return found

    async def _by_python(self, pattern: str, base: Path, names: list[str]) -> _Found:
        """Python in a process of its own: an expression that takes for ever would hold up everything else here."""
        asked = {"pattern": pattern, "files": names, "largest": _FILE_BYTES, "shown": _LINES, "wide": _LINE_CHARS + 1}
        script = str(Path(__file__).with_name("line_search.py"))
        found = _Found(names)

        def take(row: bytes) -> None:
            match json.loads(row):
                case [path, line, text]:
                    found.add([Hit(path, line, text)])
                case [_, hits]:
                    found.count(hits)

        await self._asked([sys.executable, "-I", "-S", "-X", "utf8", script], base, take, json.dumps(asked).encode())
        return found

    async def _asked(
        self, argv: list[str], base: Path, take: Callable[[bytes], None], data: bytes = b""
    ) -> tuple[int | None, bytes]:
        """Exit code and complaints of a program, which never outlives this call; `take` gets each line as it comes."""
        process = await asyncio.create_subprocess_exec(
            *argv, cwd=base, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with asyncio.timeout(self._seconds):
                *_, trouble = await asyncio.gather(
                    _feed(process.stdin, data), _lines(process.stdout, take), process.stderr.read()
                )
                await process.wait()
        except TimeoutError as error:
            message = f"The search took longer than {self._seconds:g} s. Narrow the path or the glob."
            raise ToolError(message) from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode, trouble

    def _shown(self, base: Path, hit: Hit) -> str:
        text = hit.text if len(hit.text) <= _LINE_CHARS else hit.text[:_LINE_CHARS] + " …"
        return f"{self._workspace.relative(base / hit.path)}:{hit.line}: {text.strip()}"


class _Found:
    """The first hits in the order of the files, and how many there are in all; no more than can be shown is kept."""

    def __init__(self, names: list[str]) -> None:
        self._order = {path: place for place, path in enumerate(names)}
        self._first: list[Hit] = []
        self.hits = 0
        self.files = 0

    def add(self, hits: list[Hit]) -> None:
        self._first += hits
        if len(self._first) > 20 * _LINES:
            self._first = self.first()

    def count(self, hits: int) -> None:
        """A file has so many hits."""
        self.hits += hits
        self.files += hits > 0

    def first(self) -> list[Hit]:
        return sorted(self._first, key=lambda hit: (self._order.get(hit.path, 0), hit.line))[:_LINES]


class _Rows:
    """Reads ripgrep's lines (name, NUL, line number, colon, text), file by file; those of binary files are left out."""

    def __init__(self, found: _Found, base: Path) -> None:
        self._found = found
        self._base = base
        self._start = b"\0"
        self._name = ""
        self._broken = b""
        self._hits: list[Hit] = []
        self._count = 0

    def take(self, row: bytes) -> None:
        if self._broken:
            row, self._broken = self._broken + row, b""
        if not row.startswith(self._start):
            name, nul, _ = row.partition(b"\0")
            if not nul:  # a name may hold a line end
                self._broken = row + b"\n"
                return
            self.end()
            self._start, self._name = name + nul, os.fsdecode(name)
        self._count += 1
        if self._count <= _LINES:
            number, _, text = row[len(self._start) :].partition(b":")
            line = text.decode("utf-8", "replace").removesuffix("\r")
            self._hits.append(Hit(self._name, int(number), line[: _LINE_CHARS + 1]))

    def end(self) -> None:
        """The file has no more lines."""
        if self._count and b"\0" not in _beginning(self._base / self._name):
            self._found.add(self._hits)
            self._found.count(self._count)
        self._start, self._hits, self._count = b"\0", [], 0


async def _feed(pipe: asyncio.StreamWriter, data: bytes) -> None:
    try:
        pipe.write(data)
        await pipe.drain()
    except (BrokenPipeError, ConnectionResetError):
        pass  # it ended before it read all
    pipe.close()


async def _lines(pipe: asyncio.StreamReader, take: Callable[[bytes], None]) -> None:
    """Hands on each line; one may be as long as a file."""
    begun: list[bytes] = []
    while data := await pipe.read(2**16):
        first, *rest = data.split(b"\n")
        begun.append(first)
        if rest:
            for line in (b"".join(begun), *rest[:-1]):
                take(line)
            begun = [rest[-1]]


def _beginning(path: Path) -> bytes:
    """The bytes by which a binary file is known; none of what is no file any more."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            return file.read(8000)
    except OSError:
        return b""


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _proven(workspace: Workspace, base: Path, hits: list[Hit]) -> Iterator[Hit]:
    """The hits that stand in the files that were judged: another program follows links, also those made meanwhile."""
    for path, found in groupby(hits, key=lambda hit: hit.path):
        try:
            lines = workspace.read_bytes(base / path).split(b"\n")
        except ToolError:
            continue
        for hit in found:
            line = lines[hit.line - 1] if hit.line <= len(lines) else b""
            text = line.decode("utf-8", "replace").rstrip("\r").lstrip("\ufeff")
            said = hit.text.lstrip("\ufeff")
            if text == said or (len(hit.text) > _LINE_CHARS and text.startswith(said)):
                yield hit
