"""What a box keeps as it is in a writable folder: files that other programs run later, also where they are missing.

What is there is laid over itself, read-only. For what is not there an empty folder holds the place while commands run;
it goes away afterwards. Its lock says to other processes that their box still needs it.
"""

from __future__ import annotations

import fcntl
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from mycode.permissions.aside import lead_back, put_aside
from mycode.permissions.git_index import embedded, folder_of, gitlinks
from mycode.permissions.git_programs import git_hooks, git_programs, linked_from, worktree_of
from mycode.permissions.places import Places, inside
from mycode.permissions.protected import SHELL_FILES, protected

# Acted on by editors, shells and agents without anybody starting them; no other program minds an empty folder there.
ABSENT = (
    *(".git", ".mycode", ".vscode", ".idea", ".husky", ".githooks", ".github/workflows", ".claude", ".cursor"),
    *(".codex", ".gemini", ".devcontainer", ".direnv", ".envrc", ".mcp.json", ".github/hooks", ".opencode", ".kiro"),
    *(".windsurf", ".qwen", ".openhands"),
)
_IN_GIT = ("config", "config.worktree", "hooks", "commondir")
# Tells an empty folder of ours, also one left behind, from anybody else's: it has it from the moment it is made.
_OURS = stat.S_ISVTX
_BELOW = {
    ".github": ("workflows", "actions", "hooks"),
    ".yarn": ("plugins", "releases"),
    ".config": ("git", "fish", "systemd"),
}


def kept(root: Path, home: Path) -> Iterator[str]:
    """The paths in `root` that are there and must stay as they are, each with no link on its way."""
    places = Places(workspace=(str(root),), home=str(home), run_later=git_programs(root))
    folders = (root, home) if root in home.parents else (root,)
    for path in (folder / entry for folder in folders for entry in _entries(folder)):
        entry = path.name
        if entry == ".git":
            git = folder_of(path)
            for inner in (path, *embedded(root, git)):
                yield from _kept_of_git(folder_of(inner))
                yield from (str(inner),) if inner.is_symlink() or not inner.is_dir() or _empty(inner) else ()
        elif entry in _BELOW:
            yield from (str(path / name) for name in _BELOW[entry] if (path / name).exists())
        elif protected(str(path), places, by_shell=True):
            yield str(path)
    yield from (path for path in places.run_later if inside(path, str(root)) and os.path.lexists(path))
    if os.path.lexists(root / "HEAD"):
        yield from (str(root / name) for name in _IN_GIT if os.path.lexists(root / name))


def absent(root: Path, home: Path) -> Iterator[Path]:
    """The paths in `root` that are not there, or hold an empty place, and must not come to be there."""
    places = [root / name for name in ABSENT]
    places += [home / name for name in SHELL_FILES] if home.is_dir() and inside(str(home), str(root)) else []
    yield from (path for path in places if not os.path.lexists(path) or _empty(path))
    hooks = [place / "hooks" for place in _repositories(root)]
    hooks += [Path(path) for path in git_hooks(root) if inside(os.path.realpath(path), str(root))]
    yield from (path for path in hooks if path.parent.is_dir() and (not os.path.lexists(path) or _empty(path)))


def redirections(root: Path) -> Iterator[Path]:
    """Missing files that would send git to other settings; a place held for them would break git."""
    # Without a `.git` that it takes for one, git takes the folder itself for a repository if it looks like one.
    yield from (root / name for name in ("HEAD", *_IN_GIT) if name == "HEAD" or os.path.lexists(root / "HEAD"))
    folders = git_hooks(root)
    for path in git_programs(root):
        if path not in folders and inside(path, str(root)) and not os.path.lexists(path):
            yield Path(path)
    for place in _repositories(root):
        for folder in (place, *(place / "worktrees" / name for name in _entries(place / "worktrees"))):
            names = ("commondir", "config.worktree") if folder == place else ("config.worktree",)
            yield from (folder / name for name in names if not os.path.lexists(folder / name))


def unasked(root: Path) -> frozenset[Path]:
    """Repositories inside that of `root`, into which git looks; the index where it cannot be told which these are."""
    git = folder_of(root / ".git")
    if gitlinks(git) is None:
        return frozenset([git / "index"] if inside(str(git), str(root)) else ())
    return frozenset(embedded(root, git))


def links(root: Path, paths: Iterable[Path]) -> frozenset[Path]:
    """The links in `root` that are such paths or lie on the way to them: nothing can be laid over a link."""
    places = {place for path in paths for place in (path, *path.parents) if root in place.parents}
    return frozenset(place for place in places if place.is_symlink())


class Held:
    """Empty folders that hold the place of what must not come to be, for as long as any box needs them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._boxes = 0
        self._handles: dict[Path, int] = {}
        self._forbidden: set[Path] = set()
        self._links: dict[Path, tuple[Path, str]] = {}
        self._found: Callable[[], Iterable[Path]] = tuple
        self._known: frozenset[Path] = frozenset()

    def hold(
        self,
        paths: Iterable[Path],
        forbidden: Iterable[Path],
        links: Iterable[Path] = (),
        found: Callable[[], Iterable[Path]] = tuple,
    ) -> tuple[Path, ...]:
        """Makes the folders and returns those there are.

        At the end, `forbidden` files get `.held` to their name, and `links` lead where they lead now: what came in
        their stead gets `.held` to its name, too. So does what is `found` then and was not now.
        """
        with self._lock:
            if not self._boxes:
                self._forbidden = set(forbidden)
                self._found, self._known = found, frozenset(found())
                self._links = {path: (path.readlink(), os.path.realpath(path.parent)) for path in links}
            self._boxes += 1
            for path in paths:
                for place in (path.parent, path) if path.parent.name == ".github" else (path,):
                    self._take(place)
            return tuple(self._handles)

    def release(self) -> None:
        """One box has ended; after the last one nothing is left of the places that nobody else holds."""
        with self._lock:
            self._boxes = max(0, self._boxes - 1)
            for path, (target, folder) in sorted(self._links.items()):
                lead_back(path, target, folder)
            if self._boxes:  # it may go on for hours in the background
                self._put_aside()
                return
            above = {path.parent for path in self._handles if path.parent.name == ".github"}
            self._give_back()
            for path in above:
                self._take(path)  # another program may have made it and left it to us
            self._give_back()
            self._put_aside()
            self._links.clear()
            self._forbidden.clear()
            self._found, self._known = tuple, frozenset()

    def _put_aside(self) -> None:
        for path in (*self._forbidden, *(path for path in self._found() if path not in self._known)):
            put_aside(path, str(path.parent))

    def _give_back(self) -> None:
        for path, handle in sorted(self._handles.items(), reverse=True):
            _give_back(path, handle)
        self._handles.clear()

    def _take(self, path: Path) -> None:
        if path in self._handles:
            return
        try:
            while (handle := _locked(path)) is None:
                continue
        except FileExistsError:
            return  # somebody has put something there, which is kept like all that is there
        except OSError:
            self._forbidden.add(path)  # mostly the box cannot write there either, but a full disk may become emptier
            return
        self._handles[path] = handle


def _locked(path: Path) -> int | None:
    """The empty folder `path`, made if need be, with a lock; None when another program took it away meanwhile."""
    try:
        path.mkdir(_OURS | 0o777)
    except FileExistsError:
        if not (_ours(path) and _empty(path)) and os.path.lexists(path):
            raise
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    _lock(handle)
    try:
        if os.path.samestat(os.fstat(handle), os.lstat(path)):
            return handle
    except FileNotFoundError:
        pass
    os.close(handle)
    return None


def _ours(path: Path) -> bool:
    try:
        return bool(path.lstat().st_mode & _OURS)
    except OSError:
        return False


def _lock(folder: int) -> None:
    """Says that we need the folder. Who is just taking it away does so in a moment; some folders have no locks."""
    for _ in range(100):
        try:
            return fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:
            return None
    return None


def _give_back(path: Path, handle: int) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.close(handle)  # another box needs it
    except OSError:
        pass
    try:
        path.rmdir()
    except OSError:
        # Somebody has put something there: it is theirs now, unless that is a place which another box needs.
        if not any(_ours(path / name) for name in _entries(path)):
            os.fchmod(handle, os.fstat(handle).st_mode & 0o777)
    return os.close(handle)


def _kept_of_git(git: Path) -> Iterator[str]:
    """Settings and hooks of a repository, of its submodules, and what leads its linked worktrees to it."""
    yield from (str(git / name) for name in _IN_GIT if os.path.lexists(git / name))
    for folder in _entries(git / "worktrees"):
        for name in ("commondir", "gitdir", "config.worktree"):
            if os.path.lexists(path := git / "worktrees" / folder / name):
                yield str(path)
        if (leading := linked_from(git / "worktrees" / folder)) is not None:
            yield str(leading)
    for path in _submodules(git):
        yield from (str(path / part) for part in _IN_GIT if os.path.lexists(path / part))
        if (files := worktree_of(path)) is not None:
            yield str(files / ".git")


def _repositories(root: Path) -> list[Path]:
    """The folders below `root` of its repository, of its submodules and of the repositories inside."""
    git = folder_of(root / ".git")
    folders = [git, *_submodules(git), *(folder_of(inner) for inner in embedded(root, git))]
    real = (Path(os.path.realpath(folder)) for folder in folders if folder.is_dir() and _entries(folder))
    return [folder for folder in dict.fromkeys(real) if root in folder.parents]


def _submodules(git: Path) -> Iterator[Path]:
    """The repositories of submodules that a repository holds, those of their own submodules too."""
    waiting = [git / "modules"]
    while waiting:
        place = waiting.pop()
        for name in _entries(place):
            path = place / name
            if (path / "HEAD").exists():
                yield path
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
