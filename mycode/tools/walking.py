"""Walks the files of a project as its people see them: without what git ignores, and without git's own folder."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_SKIPPED = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".ruff_cache"})
# Our own calls of git run nothing that a repository could name.
SAFE_SETTINGS = (
    "-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", "-c", "diff.external=", "-c", "core.pager=cat",
    "-c", "safe.bareRepository=explicit",
)  # fmt: skip


def walk(root: Path, *, limit: int) -> Iterator[str]:
    """Relative paths of files below `root`, at most `limit`; each folder's files before its folders, both by name.

    Ignore files are honoured (also nested ones and `.git/info/exclude`), links are not followed.
    """
    return islice(_listed_by_git(root) or _walked(root), limit)


def find_git(path: str, root: Path) -> str | None:
    """The git of the system: never one that lies below `root` or is found relative to a folder."""
    return find_program("git", path, root)


def find_program(name: str, path: str, root: Path) -> str | None:
    """A program of the system by its name: never one that lies below `root` or is found relative to a folder."""
    root = Path(os.path.realpath(root))
    places = [place for place in path.split(os.pathsep) if place.startswith("/")]
    outside = [place for place in places if not Path(os.path.realpath(place)).is_relative_to(root)]
    return shutil.which(name, path=os.pathsep.join(outside)) if outside else None


def quiet_git(env: Mapping[str, str]) -> dict[str, str]:
    """The environment for reading with the person's git: the folder's own repository, no locks, questions, fetches."""
    kept = {name: value for name, value in env.items() if name not in _REDIRECTING}
    return {**kept, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", **_NO_FETCH}


# A repository may say that its objects lie elsewhere, and how to get them: by any program it likes.
_NO_FETCH = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
_REDIRECTING = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"})


def _listed_by_git(root: Path) -> list[str]:
    """What git lists, in our order; empty where there is no repository or no git."""
    program = find_git(os.environ.get("PATH", os.defpath), root)
    if program is None or not any((folder / ".git").exists() for folder in (root, *root.parents)):
        return []
    try:
        asked = subprocess.run(
            [program, *SAFE_SETTINGS, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            timeout=20,
            check=False,
            env=quiet_git(os.environ),
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    if asked.returncode != 0:
        return []
    # An index is a file of the repository: whoever wrote it may have named what lies elsewhere.
    names = {os.fsdecode(name) for name in asked.stdout.split(b"\0") if name and not _leads_out(name)}
    present = (name for name in names if not (root / name).is_dir() and os.path.lexists(root / name))
    return sorted(present, key=_order)


def _leads_out(name: bytes) -> bool:
    return name.startswith(b"/") or b".." in name.split(b"/")


def _order(path: str) -> tuple[tuple[int, str], ...]:
    *folders, name = path.split("/")
    return (*((1, folder) for folder in folders), (0, name))


def _walked(root: Path) -> Iterator[str]:
    from pathspec import GitIgnoreSpec

    def spec_of(file: Path) -> GitIgnoreSpec:
        lines = _lines(file)
        try:
            return GitIgnoreSpec.from_lines(lines)
        except ValueError:
            return GitIgnoreSpec.from_lines(line for line in lines if readable(line))

    def readable(line: str) -> bool:
        """Git passes over a pattern that makes no sense; so do we."""
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            return False
        return True

    def inside(folder: Path, prefix: str, specs: list[tuple[str, GitIgnoreSpec]]) -> Iterator[str]:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            return
        if any(entry.name == ".gitignore" for entry in entries):
            specs = [*specs, (prefix, spec_of(folder / ".gitignore"))]
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

    yield from inside(root, "", [("", spec_of(root / ".git" / "info" / "exclude"))])


def _lines(file: Path) -> list[str]:
    """The lines of a regular file; none of anything else, which might never end."""
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            return []
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _ignored(path: str, specs: list[tuple[str, GitIgnoreSpec]]) -> bool:
    """The nearest ignore file that says something about the path decides."""
    for prefix, spec in reversed(specs):
        include = spec.check_file(path.removeprefix(prefix)).include
        if include is not None:
            return include
    return False
