"""What the disk says of a command's words beyond single paths: patterns, links inside folders, repositories.

The shell turns `*.txt` into names, some programs follow the links they find in a folder, and git runs what a
repository's own settings name. Whoever judges a command must see the same disk as they do.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct


class Repository(Struct, frozen=True):
    """The repository that git finds from a folder: its root, and what its settings would have git run, if anything."""

    root: str
    runs: str | None = None


class Ground(Struct, frozen=True):
    """Questions to the disk about absolute paths; as made by hand it knows of nothing.

    `matches`: the paths a shell pattern stands for; `links`: where the links below a folder lead; `files`: all that
    is below it. None: too many to tell. `repository`: what git finds from a folder.
    """

    matches: Callable[[str], tuple[str, ...] | None] = lambda _: ()
    links: Callable[[str], tuple[str, ...] | None] = lambda _: ()
    files: Callable[[str], tuple[str, ...] | None] = lambda _: ()
    repository: Callable[[str], Repository | None] = lambda _: None
