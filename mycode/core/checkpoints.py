"""What it means to go back: the states of a workspace that are kept, and what returning to one would change."""

from __future__ import annotations

from typing import Literal, Protocol

from msgspec import Struct


class FileChange(Struct, frozen=True):
    """What going back does to one file (path relative to the workspace); lines are None for binary content."""

    path: str
    kind: Literal["created", "changed", "deleted"]
    added: int | None = None
    removed: int | None = None


class Rewind(Struct, frozen=True):
    """Going back to checkpoint `ref`: what it changes, or changed when `done`.

    `foreign` are those of its files that somebody else changed since the agent last did: without `force` they stop it.
    `rescue` is the checkpoint of the state just left. `warnings` are sentences for the person.
    """

    ref: str
    changes: tuple[FileChange, ...]
    foreign: tuple[str, ...] = ()
    done: bool = False
    rescue: str | None = None
    warnings: tuple[str, ...] = ()


class Rewinder(Protocol):
    """Takes the files of the workspace back to how they were. An unknown `ref` or no git raises a `SessionError`."""

    @property
    def state(self) -> str:
        """One line for the person: `on`, or `off: ...` with the reason."""
        ...

    async def preview(self, ref: str) -> Rewind:
        """What `restore` would do; changes nothing."""
        ...

    async def restore(self, ref: str, *, force: bool = False) -> Rewind:
        """Does it, after keeping the present state; all files or none."""
        ...

    async def redo(self, *, force: bool = False) -> Rewind:
        """Takes back the newest `restore` of this turn."""
        ...
