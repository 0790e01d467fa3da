"""Looks at the disk for the deciders: where a path really leads, and what is there."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from mycode.permissions.git_programs import git_programs
from mycode.permissions.places import Places, Seen


def look(path: str) -> Seen:
    """What is at an absolute path now, with every link followed, also those that lead nowhere.

    A path that cannot be resolved or looked at (a circle of links, no right to read, a NUL byte) is taken for
    something that is neither file nor folder, so that nobody lets it pass.
    """
    try:
        resolved = os.path.realpath(path)
        status = os.lstat(resolved)
    except (FileNotFoundError, NotADirectoryError):
        return Seen(os.path.realpath(path))
    except (OSError, ValueError):
        return Seen(path, "other")
    if stat.S_ISREG(status.st_mode):
        return Seen(resolved, "file", status.st_nlink)
    return Seen(resolved, "folder" if stat.S_ISDIR(status.st_mode) else "other")


def find_places(
    workspace: Path, *, added: Iterable[Path] = (), private: Iterable[Path] = (), session: Path | None = None
) -> Places:
    """The places of a session that starts in `workspace`: everything resolved once, so that no later link moves it."""
    return Places(
        workspace=tuple(os.path.realpath(folder) for folder in (workspace, *added)),
        home=os.path.realpath(Path.home()),
        private=tuple(os.path.realpath(folder) for folder in private),
        session=None if session is None else os.path.realpath(session),
        fold_case=_folds_case(workspace),
        run_later=git_programs(Path(os.path.realpath(workspace))),
    )


def _folds_case(folder: Path) -> bool:
    """Whether names that differ in case only are one file here; macOS says so by habit, others are asked."""
    try:
        resolved = folder.resolve()
        # A name without letters says nothing; the folder above it may.
        named = next(place for place in (resolved, *resolved.parents) if place.name.swapcase() != place.name)
        swapped = named.with_name(named.name.swapcase())
        return swapped.exists() and swapped.samefile(named)
    except StopIteration:
        return sys.platform == "darwin"
    except (OSError, ValueError):
        return sys.platform == "darwin"
