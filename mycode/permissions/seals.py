"""What a box keeps as it is in a writable folder: files that other programs run later, also where they are missing.

What is there is laid over itself, read-only. For what is not there an empty folder holds the place while commands run;
it goes away afterwards. Its lock says to other processes that their box still needs it.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from mycode.permissions.git_programs import git_hooks, git_programs, worktree_of
from mycode.permissions.places import Places, inside
from mycode.permissions.protected import SHELL_FILES, protected

# Acted on by editors, shells and agents without anybody starting them; no other program minds an empty folder there.
ABSENT = (
    *(".git", ".mycode", ".vscode", ".idea", ".husky", ".githooks", ".github/workflows", ".claude", ".cursor"),
    *(".codex", ".gemini", ".devcontainer", ".direnv", ".envrc", ".mcp.json"),
)
_IN_GIT = ("config", "config.worktree", "hooks", "commondir")
_BELOW = {".github": ("workflows", "actions"), ".yarn": ("plugins", "releases"), ".config": ("git", "fish", "systemd")}


def kept(root: Path, home: Path) -> Iterator[str]:
    """The paths in `root` that are there and must stay as they are, each with no link on its way."""
    places = Places(workspace=(str(root),), home=str(home), run_later=git_programs(root))
    for entry in _entries(root):
        path = root / entry
        if entry == ".git" and path.is_dir():
            yield from _kept_of_git(path)
        elif entry in _BELOW:
            yield from (str(path / name) for name in _BELOW[entry] if (path / name).exists())
        elif protected(str(path), places, by_shell=True):
            yield str(path)
    yield from (path for path in places.run_later if inside(path, str(root)) and os.path.lexists(path))


def absent(root: Path, home: Path) -> Iterator[Path]:
    """The paths in `root` that are not there, or hold an empty place, and must not come to be there."""
    names = [*ABSENT, *(SHELL_FILES if inside(str(home), str(root)) else ())]
    yield from (root / name for name in names if not os.path.lexists(root / name) or _empty(root / name))
    git = root / ".git"
    if git.is_dir() and _entries(git):
        hooks = [git / "hooks", *(Path(path) for path in git_hooks(root) if inside(path, str(root)))]
        yield from (path for path in hooks if not os.path.lexists(path) and path.parent.is_dir())


def redirections(root: Path) -> Iterator[Path]:
    """Missing files that would send git to other settings; a place held for them would break git."""
    folders = git_hooks(root)
    for path in git_programs(root):
        if path not in folders and inside(path, str(root)) and not os.path.lexists(path):
            yield Path(path)
    git = root / ".git"
    if git.is_dir() and not git.is_symlink():
        yield from (git / name for name in ("commondir", "config.worktree") if not os.path.lexists(git / name))


class Held:
    """Empty folders that hold the place of what must not come to be, for as long as any box needs them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._boxes = 0
        self._handles: dict[Path, int] = {}
        self._forbidden: set[Path] = set()

    def hold(self, paths: Iterable[Path], forbidden: Iterable[Path]) -> tuple[Path, ...]:
        """Makes the folders and returns those there are; at the end, `forbidden` files get `.held` to their name."""
        with self._lock:
            if not self._boxes:
                self._forbidden = set(forbidden)
            self._boxes += 1
            for path in paths:
                for place in (path.parent, path) if path.parent.name == ".github" else (path,):
                    self._take(place)
            return tuple(self._handles)

    def release(self) -> None:
        """One box has ended; after the last one nothing is left of the places that nobody else holds."""
        with self._lock:
            self._boxes = max(0, self._boxes - 1)
            if self._boxes:
                return
            for path, handle in sorted(self._handles.items(), reverse=True):
                _give_back(path, handle)
            self._handles.clear()
            for path in self._forbidden:
                try:
                    path.rename(path.with_name(f"{path.name}.held"))
                except OSError:
                    pass  # it is not there, as it should be; a folder of that name redirects nothing
            self._forbidden.clear()

    def _take(self, path: Path) -> None:
        if path in self._handles:
            return
        try:
            path.mkdir(exist_ok=True)
            if _empty(path):
                handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
                self._handles[path] = handle
        except OSError:
            return  # where we cannot write, the box cannot either


def _give_back(path: Path, handle: int) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.rmdir()
    except OSError:
        pass  # another box needs it, or somebody has put something there
    finally:
        os.close(handle)


def _kept_of_git(git: Path) -> Iterator[str]:
    """Settings and hooks of a repository, of its submodules, and what leads its linked worktrees to it."""
    yield from (str(git / name) for name in _IN_GIT if os.path.lexists(git / name))
    for folder in _entries(git / "worktrees"):
        for name in ("commondir", "gitdir", "config.worktree"):
            if os.path.lexists(path := git / "worktrees" / folder / name):
                yield str(path)
    waiting = [git / "modules"]
    while waiting:
        place = waiting.pop()
        for name in _entries(place):
            path = place / name
            if (path / "HEAD").exists():
                yield from (str(path / part) for part in _IN_GIT if os.path.lexists(path / part))
                if (files := worktree_of(path)) is not None:
                    yield str(files / ".git")
                waiting.append(path / "modules")
            elif path.is_dir() and not path.is_symlink():
                waiting.append(path)


def _entries(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208  # names only
    except OSError:
        return []


def _empty(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and not _entries(path)
