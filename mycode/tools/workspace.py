"""The folder the agent works in: how paths are read, how files are read and written without losing anything."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from mycode.core.errors import ToolError
from mycode.tools.descent import FOLDER, PASSING, LinkOnTheWayError, make_folders, open_folder

_DESCRIPTORS = "/proc/self/fd"


class Workspace:
    """One root folder (and the `extra` ones the person added), with a memory of which bytes of which file were seen.

    Every failure is a `ToolError`. Whether a path outside may be touched is for the permissions to say. What a path led
    to when an `Action` named it is what is read and written afterwards: every folder on the way is opened without
    following links, so a link put there in between ends in a failure, never in another file.
    """

    def __init__(self, root: Path, extra: tuple[Path, ...] = ()) -> None:
        self._given = Path(os.path.abspath(root))  # noqa: PTH100  # must not follow links
        self.root = Path(os.path.realpath(root))
        self.extra = tuple(Path(os.path.realpath(folder)) for folder in extra)
        self._seen: dict[Path, str] = {}
        self._judged: dict[str, Path] = {}
        self._to_write: set[Path] = set()
        self._locks: dict[Path, threading.Lock] = {}
        self._guard = threading.Lock()

    # Paths

    def named(self, path: str) -> Path:
        """The absolute path as it was spelled (`~` expanded, relative to the root), links not followed."""
        if not path or "\0" in path:
            message = "The path is empty." if not path else "The path holds a NUL character."
            raise ToolError(message)
        named = self.root / os.path.expanduser(path)  # noqa: PTH111  # Path.expanduser raises on unknown users
        if self._given != self.root and named.is_relative_to(self._given):
            return self.root / named.relative_to(self._given)
        return named

    def resolve(self, path: str) -> Path:
        """The absolute path with every link followed, as far as it exists; once `touched`, what it led to then."""
        judged = self._judged.get(path)
        return Path(os.path.realpath(self.named(path))) if judged is None else judged

    def touched(self, path: str, *, write: bool = False) -> tuple[str, ...]:
        """What an `Action` names for `path`: the file behind all links first, then the spelling if that is another.

        Outside the root, only what was named so with `write` can be written afterwards.
        """
        target, named = os.path.realpath(self.named(path)), os.path.normpath(self.named(path))
        self._judged[path] = Path(target)
        if write:
            self._to_write.add(Path(target))
        return (target,) if named == target else (target, named)

    def inside(self, path: Path | str) -> bool:
        """Whether the file behind `path` lies in the root or an extra folder (compared by path components)."""
        resolved = Path(os.path.realpath(self.root / path))
        return any(resolved.is_relative_to(folder) for folder in (self.root, *self.extra))

    def relative(self, path: Path | str) -> str:
        """`path` as people and models are shown it: relative to the root where it lies in it, else absolute."""
        path = self.root / path
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)

    # Reading

    @contextmanager
    def open(self, path: Path | str) -> Iterator[BinaryIO]:
        """A regular file, for reading bytes; anything that could hang or never end (FIFO, device) is refused."""
        resolved = self._exact(path)
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        with self._folder(resolved, PASSING) as folder:
            try:
                handle = os.open(resolved.name or ".", flags, dir_fd=folder)
            except OSError as error:
                raise self._failure(resolved, error) from error
        try:
            self._require_regular(resolved, os.fstat(handle).st_mode)
        except ToolError:
            os.close(handle)
            raise
        with os.fdopen(handle, "rb") as file:
            yield file

    def read_bytes(self, path: Path | str) -> bytes:
        with self.open(path) as file:
            return file.read()

    # Writing

    def write_atomic(self, path: Path | str, data: bytes, *, mode: int | None = None) -> None:
        """All of `data` replaces the file, or nothing changes; durable when it returns. The write counts as seen.

        Links are kept (the file behind them is replaced), the mode of an existing file too; a new file follows the
        umask unless `mode` is given. The folder must exist (`make_folders`).
        """
        target = self._target(path)
        with self._folder(target) as folder:
            before = self._status(target, folder)
            temporary = f".mycode-{os.urandom(8).hex()}.tmp"
            try:
                self._write_temporary(temporary, folder, data, before, mode)
                os.replace(temporary, target.name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError as error:
                raise self._failure(target, error) from error
            finally:
                _unlink_if_there(temporary, folder)
            _sync_folder(folder)
        self.note(target, data)

    def mode(self, path: Path | str) -> int:
        """The permission bits of a file."""
        resolved = self._exact(path)
        try:
            return stat.S_IMODE(resolved.lstat().st_mode)
        except OSError as error:
            raise self._failure(resolved, error) from error

    def remove(self, path: Path | str) -> None:
        """Deletes one regular file (behind a link: the file, not the link)."""
        target = self._target(path)
        with self._folder(target) as folder:
            try:
                if self._status(target, folder) is None:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(target))
                os.unlink(target.name, dir_fd=folder)
            except OSError as error:
                raise self._failure(target, error) from error
            _sync_folder(folder)
        self._seen.pop(target, None)

    def make_folders(self, folder: Path) -> tuple[Path, ...]:
        """Makes `folder` and its missing parents; returns those it made, outermost first."""
        folder = self._target(folder)
        try:
            return make_folders(folder)
        except OSError as error:
            raise self._failure(folder, error) from error

    # What was seen

    def note(self, path: Path | str, data: bytes) -> None:
        """Remembers that `data` is the whole content last read from or written to `path`."""
        self._seen[self._exact(path)] = _digest(data)

    def note_digest(self, path: Path | str, digest: str) -> None:
        """Like `note`, for content too big to hold: its sha256 in hex."""
        self._seen[self._exact(path)] = digest

    def seen(self, path: Path | str) -> str | None:
        """sha256 (hex) of the content last noted, None if the file was never read or written in this session."""
        return self._seen.get(self._exact(path))

    def changed(self, path: Path | str, data: bytes) -> bool:
        """Whether `data`, the content now, differs from what was seen; False if nothing was."""
        seen = self.seen(path)
        return seen is not None and seen != _digest(data)

    @contextmanager
    def editing(self, *paths: Path) -> Iterator[None]:
        """Holds the locks of these files, so that reading, changing and writing them is one step for other threads."""
        with ExitStack() as stack:
            for path in sorted({self._exact(path) for path in paths}):
                with self._guard:
                    lock = self._locks.setdefault(path, threading.Lock())
                stack.enter_context(lock)
            yield

    # Helpers

    def _exact(self, path: Path | str) -> Path:
        """An absolute path is taken at its word; another is resolved, or is what it was when an `Action` named it."""
        return path if isinstance(path, Path) and path.is_absolute() else self.resolve(str(path))

    def _target(self, path: Path | str) -> Path:
        """What is to be written; outside the root only what an `Action` has named, and the folders to it."""
        target = self._exact(path)
        inside = any(target.is_relative_to(folder) for folder in (self.root, *self.extra))
        if not inside and not any(named.is_relative_to(target) for named in self._to_write):
            message = f"{path} leads out of the project, which it did not when this was allowed; nothing was written."
            raise ToolError(message)
        return target

    @contextmanager
    def _folder(self, target: Path, flags: int = FOLDER) -> Iterator[int]:
        """The folder of `target`, reached without following a link: no swap leads elsewhere."""
        try:
            handle = open_folder(target.parent, flags)
        except OSError as error:
            raise self._failure(target, error) from error
        try:
            yield handle
        finally:
            os.close(handle)

    def _status(self, target: Path, folder: int) -> os.stat_result | None:
        try:
            status = os.stat(target.name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        self._require_regular(target, status.st_mode)
        if not os.access(target.name, os.W_OK, dir_fd=folder):
            message = f"{self.relative(target)} is read-only; nothing was written."
            raise ToolError(message)
        return status

    def _write_temporary(
        self, name: str, folder: int, data: bytes, before: os.stat_result | None, mode: int | None
    ) -> None:
        handle, nameless = _new_file(name, folder, 0o600 if before else 0o666)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(handle, rest) :]
            if before is not None:
                _keep_owner(handle, before)
                mode = stat.S_IMODE(before.st_mode)
            if mode is not None:
                os.fchmod(handle, mode)
            os.fsync(handle)
            if nameless:
                os.link(f"{_DESCRIPTORS}/{handle}", name, dst_dir_fd=folder)
        finally:
            os.close(handle)

    def _require_regular(self, path: Path, mode: int) -> None:
        if stat.S_ISREG(mode):
            return
        holds = ""
        if stat.S_ISDIR(mode):
            names = sorted(os.listdir(path))  # noqa: PTH208  # names only
            holds = f" It holds {', '.join(names[:10])}{' and more' if len(names) > 10 else ''}." if names else ""
        message = f"{self.relative(path)} is {_kind(mode)}, not a regular file.{holds}"
        raise ToolError(message)

    def _failure(self, path: Path, error: OSError) -> ToolError:
        shown = self.relative(path)
        if isinstance(error, LinkOnTheWayError):
            return ToolError(f"A link came to lie on the way to {shown} meanwhile; nothing was done.")
        match error.errno:
            case errno.ENOENT:
                return ToolError(f"{shown} does not exist.{self.nearby(path)}")
            case errno.ENOTDIR:
                return ToolError(f"A part of the path {shown} is a file, not a folder.")
            case errno.EISDIR:
                return ToolError(f"{shown} is a folder, not a file.")
            case errno.ELOOP:
                return ToolError(f"{shown} is a link that leads in a circle, or became a link meanwhile.")
            case errno.EACCES | errno.EPERM:
                return ToolError(f"No permission for {shown}.")
            case errno.ENOSPC | errno.EDQUOT:
                return ToolError(f"The disk is full; {shown} was left as it was.")
            case _:
                return ToolError(f"{shown}: {os.strerror(error.errno or 0)}.")

    def nearby(self, path: Path) -> str:
        """` Did you mean a, b?` with names like the missing `path`, or an empty text."""
        from difflib import get_close_matches

        folder = path.parent
        while not folder.is_dir() and folder != folder.parent:
            folder = folder.parent
        try:
            names = sorted(os.listdir(folder))[:2000]  # noqa: PTH208  # names only, no Path for each
        except OSError:
            return ""
        wanted = path.relative_to(folder).parts[0]
        close = get_close_matches(wanted, names, n=3, cutoff=0.5)
        folded = [name for name in names if name.casefold() == wanted.casefold() and name not in close]
        shown = [self.relative(folder / name) for name in (*folded, *close)[:3]]
        return f" Did you mean {', '.join(shown)}?" if shown else ""


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISLNK(mode):
        return "a link"
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def _keep_owner(handle: int, before: os.stat_result) -> None:
    now = os.fstat(handle)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.fchown(handle, before.st_uid, before.st_gid)
        except PermissionError:
            pass  # only root may give files away; the content matters more


def _new_file(name: str, folder: int, mode: int) -> tuple[int, bool]:
    """A new file for writing. Where the system can, it has no name yet: when the program is killed, nothing is left."""
    flags = os.O_WRONLY | os.O_CLOEXEC
    if hasattr(os, "O_TMPFILE") and Path(_DESCRIPTORS).is_dir():
        try:
            return os.open(".", flags | os.O_TMPFILE, mode, dir_fd=folder), True
        except OSError:
            pass  # not every file system has such files
    return os.open(name, flags | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode, dir_fd=folder), False


def _unlink_if_there(name: str, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        pass


def _sync_folder(folder: int) -> None:
    try:
        os.fsync(folder)
    except OSError:
        pass  # some file systems cannot; the file itself was synced
