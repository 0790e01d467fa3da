"""The tool that finds lines: by ripgrep where there is one, else by Python, with the same answer."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
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
        # A link may lead out of what was judged: what it points to is searched where it really is.
        files = [path for path in below.names if path == "." or not (target / path).is_symlink()]
        if args.glob:
            wanted = glob_regex(args.glob if "/" in args.glob else f"**/{args.glob}")
            files = [path for path in files if wanted.fullmatch(path)]
        base = target if target.is_dir() else target.parent
        names = files if target.is_dir() else [target.name]
        found = await self._by_ripgrep(args.pattern, base, names) if self._ripgrep else None
        if found is None:
            found = await self._by_python(args.pattern, base, names)
        hits = found if target.is_dir() else [Hit(".", hit.line, hit.text) for hit in found]
        hits.sort(key=lambda hit: hit.line)
        order = {path: place for place, path in enumerate(files)}
        hits.sort(key=lambda hit: order.get(hit.path, 0))
        proven = await asyncio.to_thread(lambda: list(_proven(self._workspace, target, hits[:_LINES])))
        hits = proven + hits[_LINES:]
        return self._told(args, target, hits, below.note)

    async def _by_ripgrep(self, pattern: str, base: Path, names: list[str]) -> list[Hit] | None:
        """Ripgrep over exactly the files that Python would read, a batch at a time.

        None for an expression that only Python understands (look-around, back references).
        """
        assert self._ripgrep is not None
        hits: list[Hit] = []
        for start in range(0, len(names), 2000):
            argv = [self._ripgrep, "--json", "--no-config", "--no-ignore", "--hidden", "--max-filesize", "20M"]
            argv += ["-e", pattern, "--", *names[start : start + 2000]]
            code, out, trouble = await self._asked(argv, base)
            if code == 2 and b"regex" in trouble:
                return None
            hits += _hits(out)
        return hits

    async def _by_python(self, pattern: str, base: Path, names: list[str]) -> list[Hit]:
        """Python in a process of its own: an expression that takes for ever would hold up everything else here."""
        asked = json.dumps({"pattern": pattern, "files": names, "largest": _FILE_BYTES}).encode()
        script = str(Path(__file__).with_name("line_search.py"))
        _, out, _ = await self._asked([sys.executable, "-I", "-S", "-X", "utf8", script], base, asked)
        return [Hit(*json.loads(row)) for row in out.splitlines()]

    async def _asked(self, argv: list[str], base: Path, data: bytes = b"") -> tuple[int | None, bytes, bytes]:
        """Exit code, output and complaints of a program, which never outlives this call."""
        process = await asyncio.create_subprocess_exec(
            *argv, cwd=base, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            out, trouble = await asyncio.wait_for(process.communicate(data), self._seconds)
        except TimeoutError as error:
            message = f"The search took longer than {self._seconds:g} s. Narrow the path or the glob."
            raise ToolError(message) from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode, out, trouble

    def _told(self, args: GrepArgs, target: Path, hits: list[Hit], note: str) -> ToolOutput:
        def shown(hit: Hit) -> str:
            path = self._workspace.relative(target if hit.path == "." else target / hit.path)
            text = hit.text if len(hit.text) <= _LINE_CHARS else hit.text[:_LINE_CHARS] + " …"
            return f"{path}:{hit.line}: {text.strip()}"

        count = len({hit.path for hit in hits})
        found = f"{len(hits)} {'match' if len(hits) == 1 else 'matches'} in {count} {'file' if count == 1 else 'files'}"
        line = f"{args.pattern} · {found}"
        if not hits:
            return ToolOutput(f"No line matches {args.pattern} in {args.path}.{note}", TextDisplay(line))
        lines = [shown(hit) for hit in hits[:_LINES]]
        head = f"{found}; the first {_LINES}:\n" if len(hits) > _LINES else ""
        return ToolOutput(head + "\n".join(lines) + note, TextDisplay(line, "\n".join(lines)))


def _proven(workspace: Workspace, target: Path, hits: list[Hit]) -> Iterator[Hit]:
    """The hits that stand in the files that were judged: another program follows links, also those made meanwhile."""
    for path, found in groupby(hits, key=lambda hit: hit.path):
        try:
            lines = workspace.read_bytes(target if path == "." else target / path).split(b"\n")
        except ToolError:
            continue
        for hit in found:
            line = lines[hit.line - 1] if hit.line <= len(lines) else b""
            if line.decode("utf-8", "replace").rstrip("\r").lstrip("\ufeff") == hit.text.lstrip("\ufeff"):
                yield hit


def _hits(out: bytes) -> Iterator[Hit]:
    """The matches of ripgrep's JSON lines; those of a file that turns out to be binary at its end are left out."""
    found: list[Hit] = []
    for row in out.splitlines():
        said = json.loads(row)
        data = said["data"]
        if said["type"] == "match" and "text" in data["path"]:
            found.append(Hit(data["path"]["text"], data["line_number"], _text(data["lines"]).rstrip("\r\n")))
        elif said["type"] == "end":
            if data.get("binary_offset") is None:
                yield from found
            found = []


def _text(lines: dict[str, str]) -> str:
    """A matched line; one that is no UTF-8 comes as base64."""
    if "text" in lines:
        return lines["text"]
    from base64 import b64decode

    return b64decode(lines["bytes"]).decode("utf-8", "replace")
