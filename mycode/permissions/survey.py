"""Looks at the disk for what patterns, links and repositories are, as the shell and git will see them."""

from __future__ import annotations

import glob
import os
import re
from itertools import islice
from pathlib import Path

from mycode.core.patterns import pattern
from mycode.permissions.git_index import gitlinks
from mycode.permissions.ground import Ground, Repository
from mycode.permissions.places import components

_MOST = 2000
_MOST_LOOKED_AT = 50_000
_LARGEST = 10_000_000


def on_disk() -> Ground:
    """The disk of this machine, as it is now."""
    return Ground(_matches, _links, _files, _repository)


def _matches(text: str) -> tuple[str, ...] | None:
    if "[:" in text or "[." in text or "[=" in text or "\0" in text:
        return None
    try:
        found = tuple(islice(glob.iglob(text.replace("[^", "[!")), _MOST + 1))  # noqa: PTH207  # Path.glob has no absolute patterns
    except (OSError, ValueError, re.error):
        return None
    return found if len(found) <= _MOST else None


def _links(folder: str) -> tuple[str, ...] | None:
    below = _below(folder)
    return None if below is None else tuple(os.path.realpath(entry.path) for entry in below if entry.is_symlink())


def _files(folder: str) -> tuple[str, ...] | None:
    below = _below(folder)
    return None if below is None else tuple(entry.path for entry in below)


def _below(folder: str) -> list[os.DirEntry[str]] | None:
    found: list[os.DirEntry[str]] = []
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    found.append(entry)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    if len(found) > _MOST_LOOKED_AT:
                        return None
        except OSError:
            continue
    return found


# --- what git would run -----------------------------------------------------------------------------------------------


def _repository(folder: str) -> Repository | None:
    start = Path(os.path.realpath(folder))
    for place in (start, *start.parents):
        if os.path.lexists(place / ".git"):
            return Repository(str(place), _runs(place) or _passed_over(place))
        if (place / "HEAD").is_file() and (place / "objects").is_dir():
            return Repository(str(place), "its settings lie among the files, as in a bare repository")
    return None


def _runs(root: Path, depth: int = 0) -> str | None:
    """What the settings of this repository and of those inside it make git run while it only looks."""
    git = _folder_of(root)
    if git is None or depth > 3:
        return "its .git cannot be read"
    common = git / (_text(git / "commondir").strip() or ".")
    for file in (common / "config", git / "config.worktree"):
        if (named := _named_program(_text(file))) is not None:
            return named
    for hooks in (common / "hooks", *(root / value for value in _values(_text(common / "config"), "hookspath"))):
        if os.access(hooks / "post-index-change", os.X_OK):
            return "its hook post-index-change"
    inside = gitlinks(git)
    if inside is None:
        return "its index cannot be read"
    for inner in inside:
        if not os.path.lexists(root / inner / ".git"):
            continue
        if (root / inner / ".git").is_dir() or not components(str(root / inner)):
            return f"the repository inside {inner}"
        if (named := _runs(root / inner, depth + 1)) is not None:
            return named
    return None


def _passed_over(root: Path) -> str | None:
    """Why git may take no notice of this `.git`, and take another repository in or above its folder."""
    git = _folder_of(root) or root
    common = git / (_text(git / "commondir").strip() or ".")
    whole = (common / "objects").is_dir() and (common / "refs").is_dir()
    if whole and re.match(r"ref:\s*refs/|[0-9a-f]{40}", _text(git / "HEAD")):
        return None
    return "git may take another repository than this .git, which is not whole"


def _folder_of(root: Path) -> Path | None:
    git = root / ".git"
    if git.is_dir():
        return git
    where = _text(git).partition("gitdir:")[2].strip()
    return root / where if where and "\0" not in where else None


def _named_program(config: str) -> str | None:
    """The first key of these settings by which git would run something or read other settings, whatever its section.

    Sections are left aside on purpose: a value carried over to the next line may look like a section and hide one.
    """
    for found in _setting().finditer(config):
        name, value = found[1].lower(), found[2].strip()
        if name == "fsmonitor" and re.fullmatch(r"(?i)(?:true|false|yes|no|on|off|[01]?)", value):
            continue
        if name in {"clean", "smudge", "process"} and re.fullmatch(r"git-lfs [a-z -]+(?:%f)?", value):
            continue
        if name == "url" and not re.search(r"::|[\"\\]", value):
            continue
        return f"{found[1]} = {value[:60]}"
    return None


def _setting() -> re.Pattern[str]:
    keys = (
        "fsmonitor|external|textconv|command|clean|smudge|process|program|path|worktree|uploadpack|sshcommand|gitproxy"
        "|allow|vcs|url"
    )
    return pattern(rf"(?:^|[\]\r])\s*({keys})[ \t]*=[ \t]*(.*)$", re.IGNORECASE | re.MULTILINE)


def _values(config: str, key: str) -> list[str]:
    found = re.findall(rf"(?im)^[ \t]*{key}[ \t]*=[ \t]*(.+?)[ \t]*$", config)
    return [value.strip('"') for value in found if "\0" not in value]


def _text(file: Path) -> str:
    return _bytes(file).decode("utf-8", "replace")


def _bytes(file: Path) -> bytes:
    """The content of a regular file; nothing of what is none, which might never end."""
    try:
        if not file.is_file():
            return b""
        with file.open("rb") as opened:
            return opened.read(_LARGEST)
    except (OSError, ValueError):
        return b""
