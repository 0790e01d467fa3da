"""Where the git of a project takes programs and more settings from: no tool may change that in silence."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from mycode.core.patterns import pattern

_LARGEST = 1_000_000
_WORKTREE = pattern(r"^[ \t]*worktree[ \t]*=[ \t]*\"?(.+?)\"?[ \t]*$", re.IGNORECASE | re.MULTILINE)
_SETTING = pattern(r"(?:^|\])[ \t]*(hookspath|path|templatedir)[ \t]*=[ \t]*(.+?)[ \t]*$", re.IGNORECASE | re.MULTILINE)
_MOST_FILES = 50


def git_programs(folder: Path) -> tuple[str, ...]:
    """Absolute paths that the settings of the repository around `folder` name as hooks or as included settings.

    As they are written and where that leads; included settings are read, too.
    """
    return tuple(path for _, path in _named(folder))


def git_hooks(folder: Path) -> tuple[str, ...]:
    """Those of `git_programs` that are folders of hooks."""
    return tuple(path for setting, path in _named(folder) if setting != "path")


def worktree_of(git: Path) -> Path | None:
    """Where the files of a submodule lie whose repository is `git`."""
    found = _WORKTREE.search(_text(git / "config"))
    return Path(os.path.realpath(git / found[1])) if found and "\0" not in found[1] else None


def linked_from(folder: Path) -> Path | None:
    """The file by which the linked worktree whose own folder is `folder` leads to it."""
    name = _text(folder / "gitdir").strip()
    return Path(os.path.realpath(folder / name)) if name and "\0" not in name else None


def _named(folder: Path) -> tuple[tuple[str, str], ...]:
    root = next((place for place in (folder, *folder.parents) if os.path.lexists(place / ".git")), None)
    if root is None:
        return ()
    waiting = [_common(root) / "config", _own(root) / "config.worktree"]
    found: list[tuple[str, str]] = []
    for file in waiting:
        for setting, value in _SETTING.findall(_text(file)):
            name, path = setting.lower(), value.partition(" #")[0].partition(" ;")[0].strip().strip('"')
            if not path or "\0" in path:
                continue
            start = file.parent if name == "path" else root
            spelled = os.path.normpath(start / os.path.expanduser(path))  # noqa: PTH111  # Path.expanduser raises
            found += [(name, spelled), (name, os.path.realpath(spelled))]
            if name == "path" and len(waiting) < _MOST_FILES and Path(spelled) not in waiting:
                waiting.append(Path(spelled))
    return tuple(dict.fromkeys(found))


def _own(root: Path) -> Path:
    """The folder of the repository: `.git`, or where the file of that name leads."""
    git = root / ".git"
    return root / _text(git).partition("gitdir:")[2].strip() if git.is_file() else git


def _common(root: Path) -> Path:
    """The folder with the settings: `.git`, or for a linked worktree that of the main one."""
    own = _own(root)
    return own / (_text(own / "commondir").strip() or ".") if own != root / ".git" else own


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
