"""Finds out what the model should know of its surroundings: folder, platform, branch, the project's instructions."""

import os
from datetime import date
from pathlib import Path

from msgspec import Struct

from mycode.core.visible import one_line

MEMORY_CAP = 32 * 1024
_LONGEST_BRANCH = 100
_MEMORY_NAMES = ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md")


class Environment(Struct, frozen=True):
    """Facts for the system prompt; empty strings where something is not there."""

    cwd: str
    platform: str
    shell: str
    date: str
    git_branch: str = ""
    sandbox: str = ""


class Memory(Struct, frozen=True):
    """The project's instruction files, joined root first; `cut` tells bytes left out beyond 32 KiB."""

    text: str
    files: tuple[str, ...] = ()
    cut: int = 0


def look_around(cwd: Path, *, today: date | None = None, sandbox: str = "") -> Environment:
    """Reads what the system and the repository's files say; runs no program."""
    system = os.uname()
    return Environment(
        cwd=one_line(str(cwd), 4096),
        platform=f"{system.sysname} {system.release}",
        shell=Path(os.environ.get("SHELL", "/bin/sh")).name,
        date=(today or date.today()).isoformat(),
        git_branch=_branch(cwd),
        sandbox=sandbox,
    )


def read_memory(cwd: Path, *, user_file: Path | None = None) -> Memory:
    """The instruction files from repository root to `cwd`, one per folder (override, AGENTS.md, else CLAUDE.md).

    The user's own file comes first, the closest one last. Together at most 32 KiB; what is cut is told in the text.
    A link of the repository's that leads out of it, or to a file of another kind, is not followed: it could name keys.
    """
    found = [path for path in [user_file] if path is not None and path.is_file()]
    folders = _chain(cwd)
    found += [path for folder in folders if (path := _memory_file(folder, folders[0])) is not None]
    parts: list[str] = []
    room, cut = MEMORY_CAP, 0
    for path in found:
        data, size = _start_of(path, room)
        kept = data.decode("utf-8", errors="ignore").strip()
        cut += size - len(data)
        room -= len(data)
        if kept:
            parts.append(f"## {path}\n{kept}")
    if cut:
        parts.append(f"[{cut} bytes of instruction files beyond {MEMORY_CAP // 1024} KiB were left out]")
    return Memory("\n\n".join(parts), tuple(str(path) for path in found), cut)


def repository_root(cwd: Path) -> Path | None:
    """The nearest folder upwards that holds `.git`, or None; a folder of somebody else around ours does not count."""
    found = next((folder for folder in (cwd, *cwd.parents) if (folder / ".git").exists()), None)
    return found if found is None or found == cwd or _same_owner(found, cwd) else None


def _same_owner(one: Path, other: Path) -> bool:
    try:
        return one.stat().st_uid == other.stat().st_uid
    except OSError:
        return False


def _chain(cwd: Path) -> list[Path]:
    root = repository_root(cwd)
    if root is None:
        return [cwd]
    below = cwd.relative_to(root).parts
    return [root.joinpath(*below[:depth]) for depth in range(len(below) + 1)]


def _memory_file(folder: Path, root: Path) -> Path | None:
    files = (folder / name for name in _MEMORY_NAMES)
    inside = Path(os.path.realpath(root))

    def counts(file: Path) -> bool:
        real = file.resolve()
        return file.is_file() and real.is_relative_to(inside) and real.suffix == ".md"

    return next((file for file in files if counts(file)), None)


def _branch(cwd: Path) -> str:
    """The branch by name, a short hash when detached; read from the files: nothing of the repository may run."""
    root = repository_root(cwd)
    if root is None:
        return ""
    git = root / ".git"
    if git.is_file():
        git = root / _line(git).removeprefix("gitdir:").strip()
    head = _line(git / "HEAD")
    return one_line(head.removeprefix("ref: refs/heads/") if head.startswith("ref:") else head[:10], _LONGEST_BRANCH)


def _line(file: Path) -> str:
    """The first line of a small file of git's; it is a stranger's text."""
    return (_start_of(file, 4096)[0].decode("utf-8", "replace").splitlines() or [""])[0].strip()


def _start_of(path: Path, most: int) -> tuple[bytes, int]:
    """At most so many first bytes of a regular file, and its size; nothing of what could keep us waiting."""
    try:
        if not path.is_file():
            return b"", 0
        with path.open("rb") as file:
            data = file.read(most)
            return data, max(len(data), os.fstat(file.fileno()).st_size)
    except OSError:
        return b"", 0
