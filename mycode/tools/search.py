"""The tools that find files: by name, and as a tree."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from mycode.core.errors import ToolError
from mycode.core.tools import Action, Report, TextDisplay, ToolOutput, Veil
from mycode.tools.walking import walk
from mycode.tools.workspace import Workspace

_WALKED = 100_000
_FOUND = 200
_LISTED = 250


class SearchFilesArgs(Struct, frozen=True, forbid_unknown_fields=True):
    pattern: Annotated[str, Meta(min_length=1, description="Glob (**/*.py) or part of a name")]
    path: str = "."


class SearchFiles:
    """`search_files`: paths that match, relative to the project, in the order of the tree."""

    name = "search_files"
    description = "Find files by name. Ignored files are left out."
    Args = SearchFilesArgs

    def __init__(self, workspace: Workspace, veil: Veil | None = None) -> None:
        self._workspace = workspace
        self._veil: Veil = veil or nothing_hidden

    def plan(self, args: SearchFilesArgs) -> Action:
        return Action(
            self.name, "read", f"{self.name} {args.pattern} in {args.path}", reads=self._workspace.touched(args.path)
        )

    async def run(self, args: SearchFilesArgs, _report: Report) -> ToolOutput:
        files = await files_below(self._workspace, self.name, args.path, self._veil, content=False)
        found = [path for path in files.names if _matches(path, args.pattern)]
        shown = [self._workspace.relative(self._workspace.resolve(args.path) / path) for path in found[:_FOUND]]
        line = f"{args.pattern} · {len(found)} {'file' if len(found) == 1 else 'files'}"
        if not found:
            told = f"No file matches {args.pattern} in {args.path} ({len(files.names)} files).{files.note}"
            return ToolOutput(told, TextDisplay(line))
        more = f"\n… {len(found) - _FOUND} more; narrow the pattern" if len(found) > _FOUND else ""
        return ToolOutput("\n".join(shown) + more + files.note, TextDisplay(line, "\n".join(shown)))


class ListFilesArgs(Struct, frozen=True, forbid_unknown_fields=True):
    path: str = "."


class ListFiles:
    """`list_files`: a tree of names, deep as far as it fits; folders that do not fit show how much is in them."""

    name = "list_files"
    description = "Show the files of a folder as a tree. Ignored files are left out."
    Args = ListFilesArgs

    def __init__(self, workspace: Workspace, veil: Veil | None = None) -> None:
        self._workspace = workspace
        self._veil: Veil = veil or nothing_hidden

    def plan(self, args: ListFilesArgs) -> Action:
        return Action(self.name, "read", f"{self.name} {args.path}", reads=self._workspace.touched(args.path))

    async def run(self, args: ListFilesArgs, _report: Report) -> ToolOutput:
        files = await files_below(self._workspace, self.name, args.path, self._veil, content=False)
        text = ("\n".join(tree(files.names, _LISTED)) or "(empty)") + files.note
        count = len(files.names)
        return ToolOutput(text, TextDisplay(f"{args.path} · {count} {'file' if count == 1 else 'files'}", text))


class Files(Struct, frozen=True):
    """Files below a folder, relative to it, and how many more there are that must not be shown."""

    names: list[str]
    left_out: int = 0

    @property
    def note(self) -> str:
        """A last line about what was left out, or an empty text."""
        if not self.left_out:
            return ""
        what = "1 file was" if self.left_out == 1 else f"{self.left_out} files were"
        return f"\n[{what} left out: secrets may be in there, or a rule forbids it]"


def nothing_hidden(action: Action, names: Iterable[str], *, content: bool) -> frozenset[str]:
    """For tools that are used without permissions."""
    del action, names, content
    return frozenset()


async def files_below(workspace: Workspace, tool: str, path: str, veil: Veil, *, content: bool) -> Files:
    """Files below a folder that may be shown; a file is given as `.`. Raises ToolError for what is neither."""
    folder = workspace.resolve(path)
    if os.path.realpath(folder) != str(folder):
        message = f"A link came to lie on the way to {path} meanwhile; nothing was read."
        raise ToolError(message)
    if folder.is_file():
        return Files(["."])
    if not folder.is_dir():
        message = f"There is no folder {path}. list_files without a path shows the project."
        raise ToolError(message)
    action = Action(tool, "read", "", reads=(str(folder),))

    def looked() -> Files:
        names = list(walk(folder, limit=_WALKED))
        hidden = veil(action, names, content=content)
        return Files([name for name in names if name not in hidden], len(hidden)) if hidden else Files(names)

    return await asyncio.to_thread(looked)


def tree(files: Iterable[str], lines: int) -> list[str]:
    """Paths as an indented tree of at most about `lines` lines, cut at the depth that fits (pure)."""
    paths = [path.split("/") for path in files]
    deepest = max(map(len, paths), default=1)
    best: list[str] = []
    for depth in range(1, deepest + 1):
        shown = _tree(paths, depth)
        if best and len(shown) > lines:
            break
        best = shown
    return best if len(best) <= lines else [*best[:lines], f"… {len(best) - lines} more"]


def _tree(paths: list[list[str]], depth: int) -> list[str]:
    out: list[str] = []
    counts: dict[tuple[str, ...], int] = {}
    for parts in paths:
        for level in range(1, len(parts)):
            counts[tuple(parts[:level])] = counts.get(tuple(parts[:level]), 0) + 1
    seen: set[tuple[str, ...]] = set()
    for parts in paths:
        for level in range(1, min(len(parts), depth + 1)):
            folder = tuple(parts[:level])
            if folder not in seen:
                seen.add(folder)
                closed = f" ({counts[folder]} files)" if level == depth else ""
                out.append("  " * (level - 1) + parts[level - 1] + "/" + closed)
        if len(parts) <= depth:
            out.append("  " * (len(parts) - 1) + parts[-1])
    return out


def _matches(path: str, pattern: str) -> bool:
    if not any(sign in pattern for sign in "*?["):
        return pattern.casefold() in path.casefold()
    target = path if "/" in pattern else path.rpartition("/")[2]
    return glob_regex(pattern.removeprefix("./")).fullmatch(target) is not None


def glob_regex(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression over `/`-separated paths: `*` and `?` stay within a name, `**` crosses folders.

    What is between two stars of a name is looked for once, at its first place (`?>`): nothing is gained by a later one.
    """
    pattern = re.sub(r"\*{3,}", "**", re.sub(r"(?:\*\*/)+", "**/", pattern))
    choices = re.search(r"\{|\[[^\]]*\*", pattern) is not None
    if pattern.count("**") > 8 or (choices and pattern.count("*") > 8):
        message = "The pattern has too many stars; use fewer."
        raise ToolError(message)
    out, at, opened = "", 0, False
    while at < len(pattern):
        if pattern.startswith("**/", at):
            out, at = out + "(?:.*/)?", at + 3
        elif pattern.startswith("**", at):
            out, at = out + ".*", at + 2
        elif pattern[at] == "*" and choices:
            out, at = out + "[^/]*", at + 1
        elif pattern[at] == "*":
            out += ")" if opened else ""
            later = re.match(r"[^/*]*\*(?!\*)", pattern[at + 1 :])
            opened = later is not None
            out, at = out + ("(?>[^/]*?" if opened else "[^/]*"), at + 1
        elif pattern[at] == "?":
            out, at = out + "[^/]", at + 1
        elif pattern[at] == "[" and (end := pattern.find("]", at + 2)) > 0:
            inside = pattern[at + 1 : end].replace("\\", "\\\\")
            out, at = out + "[" + ("^" + inside[1:] if inside[0] in "!^" else inside) + "]", end + 1
        elif pattern[at] == "{" and (end := pattern.find("}", at)) > 0:
            out += "(?:" + "|".join(re.escape(choice) for choice in pattern[at + 1 : end].split(",")) + ")"
            at = end + 1
        else:
            out, at = out + re.escape(pattern[at]), at + 1
    try:
        return re.compile(out)
    except re.error as error:
        message = f"The pattern {pattern} cannot be read: {error}."
        raise ToolError(message) from error
