"""Which folders an index of git says are repositories of their own: git looks into those, and does what they say."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

_LARGEST = 64_000_000
_DEEPEST = 8


def gitlinks(git: Path) -> tuple[str, ...] | None:
    """The names of such folders in the index of the repository `git` (its own folder); None where nobody can tell."""
    try:
        data = _bytes(git / "index")
        wide = re.search(
            r"(?i)objectformat\s*=\s*\"?sha256", _bytes(_common(git) / "config").decode("utf-8", "replace")
        )
        digest = 32 if wide else 20
        names, rest = _read(data, digest)
        while len(rest) >= 8 + digest:
            size = int.from_bytes(rest[4:8])
            if rest[:4] == b"link":  # the rest of the entries lies in a file beside it
                names += _read(_bytes(git / f"sharedindex.{rest[8 : 8 + digest].hex()}"), digest)[0]
            rest = rest[8 + size :]
    except (ValueError, IndexError):
        return None
    return None if b"" in names else tuple(dict.fromkeys(os.fsdecode(name) for name in names))


def embedded(root: Path, git: Path, depth: int = 0) -> Iterator[Path]:
    """The `.git` of each repository inside the one at `root`, whose own folder is `git`."""
    for name in gitlinks(git) or ():
        if name.startswith("/") or ".." in name.split("/"):
            continue
        for folder in _below(root / name) if name.endswith("/") else (root / name,):
            inner = folder / ".git"
            if os.path.lexists(inner):
                yield inner
                if depth < _DEEPEST:
                    yield from embedded(folder, folder_of(inner), depth + 1)


def _below(folder: Path) -> Iterator[Path]:
    """The folders below one that the index names as a whole; there are any only where somebody put them there."""
    for place, _, _ in os.walk(folder):
        yield Path(place)


def folder_of(git: Path) -> Path:
    """The folder of a repository: its `.git`, or where the file of that name leads; with no link on its way."""
    try:
        where = _bytes(git).partition(b"gitdir:")[2].strip()
        return Path(os.path.realpath(git.parent / os.fsdecode(where))) if where else Path(os.path.realpath(git))
    except ValueError:
        return git


def _common(git: Path) -> Path:
    """The folder with the settings, which linked worktrees share."""
    return git / os.fsdecode(_bytes(git / "commondir").strip() or b".")


@lru_cache(maxsize=2)  # it is asked for several times around each command, and some are large
def _read(data: bytes, digest: int) -> tuple[tuple[bytes, ...], bytes]:
    """Names of the entries that are repositories, and what follows the entries; ValueError for no index.

    What git itself never writes is no index: two readers could take it for different things.
    """
    if not data:
        return (), b""
    version, count, at = int.from_bytes(data[4:8]), int.from_bytes(data[8:12]), 12
    if data[:4] != b"DIRC" or version not in {2, 3, 4}:
        raise ValueError(version)
    names: list[bytes] = []
    blocks = _blocks(data, digest)
    name = b""
    for _ in range(count):
        start = at + 42 + digest
        length = int.from_bytes(data[start - 2 : start]) & 0xFFF
        if data[start - 2] & 0x40:
            start += 2
        if version == 4:
            cut, start = _number(data, start)
            end = data.index(0, start)
            odd = cut > len(name) or (at in blocks and cut != len(name))
            name = name[: len(name) - cut] + data[start:end]
            following = end + 1
        else:
            end = data.index(0, start)
            odd = False
            name = data[start:end]
            following = at + ((end - at) // 8 + 1) * 8
        if odd or data[at + 24] or data[at + 25] or length != min(len(name), 0xFFF):
            raise ValueError(name)
        if data[at + 26] & 0xF0 in {0xE0, 0x40}:  # a folder of which nothing is checked out may hold some, too
            names.append(name)
        blocks.discard(at)
        at = following
    blocks.discard(at)
    if blocks:
        raise ValueError(blocks)
    return tuple(names), data[at:-digest]


def _blocks(data: bytes, digest: int) -> set[int]:
    """Where git begins to read besides the first entry, when it reads with several threads."""
    last = data[-12 - 2 * digest : -digest]
    if last[:4] != b"EOIE":
        return set()
    at = int.from_bytes(last[8:12])
    blocks = {at}
    while at + 8 <= len(data) - digest:
        size = int.from_bytes(data[at + 4 : at + 8])
        if data[at : at + 4] == b"IEOT":
            blocks |= {int.from_bytes(data[place : place + 4]) for place in range(at + 12, at + 8 + size, 8)}
        at += 8 + size
    return blocks


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number as version 4 writes it, and where it ends."""
    value = data[at] & 127
    while data[at] & 128:
        at += 1
        value = ((value + 1) << 7) + (data[at] & 127)
    return value, at + 1


def _bytes(file: Path) -> bytes:
    """The content of a regular file, nothing where there is none; ValueError when it is too large."""
    try:
        if not file.is_file():
            return b""
        with file.open("rb") as opened:
            data = opened.read(_LARGEST + 1)
    except OSError as error:
        raise ValueError(file) from error
    if len(data) > _LARGEST:
        raise ValueError(file)
    return data
