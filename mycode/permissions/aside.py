"""Takes away what a command in a box has put where other programs would act on it: it gets another name, no more."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from mycode.permissions.places import components


def put_aside(path: Path, folder: str) -> None:
    """Gives what is at the path, if anything, a name that nobody acts on; nothing where another `folder` is now."""
    if not os.path.lexists(path):
        return
    try:
        with _opened(folder) as handle:
            names = (f"{path.name}.held{number or ''}" for number in count())
            aside = next(name for name in names if not _is_in(name, handle))
            os.rename(path.name, aside, src_dir_fd=handle, dst_dir_fd=handle)
    except OSError:
        pass  # it is not there, as it should be


def lead_back(path: Path, target: Path, folder: str) -> None:
    """The link leads to `target` again, whatever became of it."""
    try:
        if os.path.realpath(path.parent) != folder or (path.is_symlink() and path.readlink() == target):
            return
        put_aside(Path(folder, path.name), folder)
        with _opened(folder) as handle:
            os.symlink(target, path.name, dir_fd=handle)
    except OSError:
        pass  # its folder is gone or read-only


@contextmanager
def _opened(folder: str) -> Iterator[int]:
    """The folder, with no link on its way: a command of another box may just be moving links about."""
    handle = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in components(folder):
            flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            inner = os.open(name, flags, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _is_in(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
