"""Walks the files of a project as its people see them: without what git ignores, and without git's own folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_SKIPPED = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".ruff_cache"})
# Our own calls of git run nothing that a repository could name.
SAFE_GIT = (
    "git", "-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", "-c", "diff.external=", "-c", "core.pager=cat",
    "-c", "safe.bareRepository=explicit",
)  # fmt: skip


def walk(root: Path, *, limit: int) -> Iterator[str]:
    """Relative paths of files below `root`, at most `limit`; each folder's files before its folders, both by name.

    Ignore files are honoured (also nested ones and `.git/info/exclude`), links are not followed.
    """
    return islice(_listed_by_git(root) or _walked(root), limit)


def _listed_by_git(root: Path) -> list[str]:
    """What git lists, in our order; empty where there is no repository or no git."""
    if not any((folder / ".git").exists() for folder in (root, *root.parents)):
        return []
    try:
        asked = subprocess.run(
            [*SAFE_GIT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            timeout=20,
            check=False,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    if asked.returncode != 0:
        return []
    names = {os.fsdecode(name) for name in asked.stdout.split(b"\0") if name}
    present = (name for name in names if not (root / name).is_dir() and os.path.lexists(root / name))
    return sorted(present, key=_order)


def _order(path: str) -> tuple[tuple[int, str], ...]:
    *folders, name = path.split("/")
    return (*((1, folder) for folder in folders), (0, name))


def _walked(root: Path) -> Iterator[str]:
    from pathspec import GitIgnoreSpec

    def inside(folder: Path, prefix: str, specs: list[tuple[str, GitIgnoreSpec]]) -> Iterator[str]:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            return
        if any(entry.name == ".gitignore" for entry in entries):
            text = (folder / ".gitignore").read_text(encoding="utf-8", errors="replace")
            specs = [*specs, (prefix, GitIgnoreSpec.from_lines(text.splitlines()))]
        folders = []
        for entry in entries:
            path = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _SKIPPED and not _ignored(path + "/", specs):
                    folders.append((Path(entry.path), path + "/"))
            elif not _ignored(path, specs):
                yield path
        for deeper, deeper_prefix in folders:
            yield from inside(deeper, deeper_prefix, specs)

    yield from inside(root, "", [])


def _ignored(path: str, specs: list[tuple[str, GitIgnoreSpec]]) -> bool:
    """The nearest ignore file that says something about the path decides."""
    for prefix, spec in reversed(specs):
        include = spec.check_file(path.removeprefix(prefix)).include
        if include is not None:
            return include
    return False
