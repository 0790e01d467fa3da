"""Which folders an index of git says are repositories of their own: git looks into those, and does what they say."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

_LARGEST = 64_000_000
_DEEPEST = 8


def gitlinks(git: Path) -> tuple[str, ...] | None:
    """The names of such folders in the index of the repository `git` (its own folder); None where nobody can tell."""
    try:
        data = _bytes(git / "index")
        wide = re.search(r"(?i)objectformat\s*=\s*\"?sha256", _bytes(git / "config").decode("utf-8", "replace"))
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
        inner = root / name / ".git"
        if name.startswith("/") or ".." in name.split("/") or not os.path.lexists(inner):
            continue
        yield inner
        if depth < _DEEPEST:
            yield from embedded(root / name, _folder_of(inner), depth + 1)


def _folder_of(git: Path) -> Path:
    """The folder of a repository: its `.git`, or where the file of that name leads."""
    try:
        where = _bytes(git).partition(b"gitdir:")[2].strip()
        return Path(os.path.realpath(git.parent / os.fsdecode(where))) if where else git
    except ValueError:
        return git


def _read(data: bytes, digest: int) -> tuple[list[bytes], bytes]:
    """Names of the entries that are repositories, and what follows the entries; ValueError for no index."""
    if not data:
        return [], b""
    version, count, at = int.from_bytes(data[4:8]), int.from_bytes(data[8:12]), 12
    if data[:4] != b"DIRC" or version not in {2, 3, 4}:
        raise ValueError(version)
    if not re.search(rb"\0\0[\xe0-\xef]", data) and b"link\0" not in data:
        return [], b""  # the kind of such an entry is written so, and nothing else has to be looked at
    names: list[bytes] = []
    name = b""
    for _ in range(count):
        flags = at + 40 + digest
        start = flags + (4 if data[flags] & 0x40 and version > 2 else 2)
        if version == 4:
            cut, start = _number(data, start)
            end = data.index(0, start)
            name = name[: len(name) - cut] + data[start:end]
            following = end + 1
        else:
            end = data.index(0, start)
            name = data[start:end]
            following = at + ((end - at) // 8 + 1) * 8
        if data[at + 26] & 0xF0 == 0xE0:
            names.append(name)
        at = following
    return names, data[at:-digest]


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
