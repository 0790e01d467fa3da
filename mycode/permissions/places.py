"""Where things are, and whether a path lies inside: whole components of absolute paths are compared, never prefixes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct


class Places(Struct, frozen=True):
    """The folders that decisions are about; all absolute and resolved, without a slash at the end.

    `workspace` holds the root of the person's project first, then folders added by name. `cwd` is where commands start.
    `private` holds our own settings, data and state: never written by a tool, read only after a question. `session` is
    the current session's folder, which may be read. `fold_case` is set where `A` and `a` name the same file.
    `run_later` is what the settings of the repository name as hooks and further settings.
    """

    workspace: tuple[str, ...]
    home: str
    cwd: str = ""
    private: tuple[str, ...] = ()
    session: str | None = None
    fold_case: bool = False
    run_later: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        return self.workspace[0]

    @property
    def start(self) -> str:
        """Where relative paths begin."""
        return self.cwd or self.root


Kind = Literal["missing", "file", "folder", "other"]


class Seen(Struct, frozen=True):
    """What is on disk at a path: the path with all links followed, what it is, and how many names the file has.

    `other` is whatever is neither file nor folder: a pipe, a socket, a device.
    """

    path: str
    kind: Kind = "missing"
    links: int = 1


Look = Callable[[str], Seen]


def unseen(path: str) -> Seen:
    """A look that touches no disk: every path is taken at its word."""
    return Seen(path)


def absolute(path: str, start: str, home: str) -> str:
    """The path as an absolute one: `~` and `~/` are home, relative ones begin at `start`, `.` and `..` are resolved."""
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    elif not path.startswith("/"):
        path = f"{start}/{path}"
    return "/" + "/".join(components(path))


def components(path: str) -> tuple[str, ...]:
    """The names of an absolute path from the root down; `..` takes away the name before it."""
    names: list[str] = []
    for name in path.split("/"):
        if name == "..":
            del names[-1:]
        elif name not in {"", "."}:
            names.append(name)
    return tuple(names)


def inside(path: str, folder: str, *, fold_case: bool = False) -> bool:
    """Whether an absolute path is the folder or lies below it."""
    if fold_case:
        path, folder = path.casefold(), folder.casefold()
    names, parents = components(path), components(folder)
    return names[: len(parents)] == parents


def inside_any(path: str, folders: tuple[str, ...], *, fold_case: bool = False) -> bool:
    return any(inside(path, folder, fold_case=fold_case) for folder in folders)
