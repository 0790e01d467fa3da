"""Where the git of a project takes programs and more settings from: no tool may change that in silence."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from mycode.core.patterns import pattern

_LARGEST = 1_000_000
_WORKTREE = pattern(r"^[ \t]*worktree[ \t]*=[ \t]*\"?(.+?)\"?[ \t]*$", re.IGNORECASE | re.MULTILINE)
_SETTING = pattern(r"^[ \t]*(hookspath|path|templatedir)[ \t]*=[ \t]*(.+?)[ \t]*$", re.IGNORECASE | re.MULTILINE)


def git_programs(folder: Path) -> tuple[str, ...]:
    """Absolute paths that the settings of the repository around `folder` name as hooks or as included settings."""
    return tuple(path for _, path in _named(folder))


def git_hooks(folder: Path) -> tuple[str, ...]:
    """Those of `git_programs` that are folders of hooks."""
    return tuple(path for setting, path in _named(folder) if setting != "path")


def worktree_of(git: Path) -> Path | None:
    """Where the files of a submodule lie whose repository is `git`."""
    found = _WORKTREE.search(_text(git / "config"))
    return Path(os.path.realpath(git / found[1])) if found and "\0" not in found[1] else None


def _named(folder: Path) -> tuple[tuple[str, str], ...]:
    root = next((place for place in (folder, *folder.parents) if os.path.lexists(place / ".git")), None)
    if root is None:
        return ()
    config = _common(root) / "config"
    found = []
    for name, value in _SETTING.findall(_text(config)):
        path = value.partition(" #")[0].partition(" ;")[0].strip().strip('"')
        if not path or "\0" in path:
            continue
        start = config.parent if name.lower() == "path" else root
        named = os.path.realpath(start / os.path.expanduser(path))  # noqa: PTH111  # Path.expanduser raises
        found.append((name.lower(), named))
    return tuple(dict.fromkeys(found))


def _common(root: Path) -> Path:
    """The folder with the settings: `.git`, or for a linked worktree that of the main one."""
    git = root / ".git"
    if not git.is_file():
        return git
    where = root / _text(git).partition("gitdir:")[2].strip()
    return where / (_text(where / "commondir").strip() or ".")


def _text(file: Path) -> str:
    """What a regular file says; nothing of what is none, which might never end."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    with os.fdopen(handle, "rb") as opened:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return ""
        return opened.read(_LARGEST).decode("utf-8", "replace")
