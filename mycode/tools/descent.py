"""Opens and makes folders name by name without following a link: what was judged is what is reached."""

from __future__ import annotations

import os
import stat
from pathlib import Path

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# On the way to a folder only passing through is needed, for which Linux needs no right to list it.
PASSING = FOLDER | getattr(os, "O_PATH", 0)


class LinkOnTheWayError(OSError):
    """A part of the path is a link, which it was not when the path was resolved."""


def open_folder(folder: Path, flags: int = FOLDER) -> int:
    """A handle on an absolute folder, no part of which is a link. Raises OSError, `LinkOnTheWayError` for a link."""
    if hasattr(os, "O_NOFOLLOW_ANY"):  # macOS: the system does it in one step
        steps = [(str(folder), flags | os.O_NOFOLLOW_ANY)]
    else:
        steps = [(name, PASSING) for name in folder.parts[:-1]] + [(folder.parts[-1], flags)]
    handle: int | None = None
    for name, wanted in steps:
        before = handle
        try:
            handle = os.open(name, wanted, dir_fd=before)
        except OSError as error:
            if _is_link(name, before):
                raise LinkOnTheWayError(error.errno, error.strerror, str(folder)) from error
            raise
        finally:
            if before is not None:
                os.close(before)
    assert handle is not None
    return handle


def make_folders(folder: Path) -> tuple[Path, ...]:
    """Makes an absolute folder and its missing parents; returns those it made, outermost first, or leaves none."""
    there = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    made: list[Path] = []
    place, handle = there, open_folder(there, PASSING)
    try:
        for name in folder.relative_to(there).parts:
            place = place / name
            os.mkdir(name, dir_fd=handle)
            made.append(place)
            handle, before = os.open(name, PASSING, dir_fd=handle), handle
            os.close(before)
    except OSError:
        for place in reversed(made):
            place.rmdir()
        raise
    finally:
        os.close(handle)
    return tuple(made)


def _is_link(name: str, folder: int | None) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode)
    except OSError:
        return False
