"""When states of the workspace are kept, and how the person gets back to one."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from mycode.core.checkpoints import Rewind
from mycode.core.errors import SessionError
from mycode.core.messages import ToolCall
from mycode.session.snapshots import LIMITS, Limits, Recorded, Snapshots

_REF = 12


class Checkpoints:
    """The states of one workspace for one session, kept in `folder`: one before the first change of each turn.

    Ignored files, repositories inside the workspace and files over 10 MB are never kept nor touched. `changes` says of
    a call whether it may change files; `warn` is told, once each, what cannot be kept; `folder_of` gives the folder of
    a session that is opened later. A `Checkpointer` and a `Rewinder`.
    """

    def __init__(
        self,
        workspace: Path,
        folder: Path,
        *,
        env: Mapping[str, str] | None = None,
        changes: Callable[[ToolCall], bool] = lambda _: True,
        warn: Callable[[str], None] = lambda _: None,
        limits: Limits = LIMITS,
        folder_of: Callable[[str], Path] | None = None,
    ) -> None:
        self._folder_of = folder_of
        self._open: Callable[[Path], Snapshots] = lambda place: Snapshots(
            workspace, place, os.environ if env is None else env, limits
        )
        self._snapshots = self._open(folder)
        self._changes = changes
        self._warn = warn
        self._warned: set[str] = set()
        self._off = "" if self._snapshots.available else "git is not installed"
        self._turn: int | None = None
        self._one_at_a_time = threading.Lock()

    @property
    def state(self) -> str:
        """`on`, or `off: ...` with the reason."""
        return f"off: {self._off}" if self._off else "on"

    def opened(self, session_id: str) -> None:
        """Another session is kept from now on: its turns are numbered anew, its states may lie elsewhere."""
        self._turn = None
        if self._folder_of is not None:
            self._snapshots = self._open(self._folder_of(session_id))

    async def before(self, call: ToolCall, turn: int) -> str | None:
        """Told of every call before it runs; keeps the workspace before the first one of a turn that may change it."""
        if turn == self._turn or not self._changes(call):
            return None
        self._turn = turn
        return await self.take(turn)

    async def take(self, turn: int) -> str | None:
        """Keeps the workspace as it is; returns the id of the checkpoint, None when it cannot be kept (told once)."""
        return await asyncio.to_thread(self._take, turn)

    async def settle(self) -> None:
        """Told when the agent has changed something: what differs later was changed by somebody else."""
        await asyncio.to_thread(self._settle)

    async def preview(self, ref: str) -> Rewind:
        """What `restore` would do; changes nothing in the workspace."""
        return await asyncio.to_thread(self._preview, ref)

    async def restore(self, ref: str, *, force: bool = False) -> Rewind:
        """Takes the files back to checkpoint `ref`, all or none, after keeping what there is now (`rescue`).

        Where files were changed from outside (`foreign`), nothing is done unless forced.
        """
        return await asyncio.shield(asyncio.to_thread(self._restore, ref, force=force))

    async def redo(self, *, force: bool = False) -> Rewind:
        """Takes back the newest `restore`; once more, and it is done again. Ends with the next turn that changes."""
        return await asyncio.shield(asyncio.to_thread(self._redo, force=force))

    # What is done in a thread

    def _take(self, turn: int) -> str | None:
        with self._one_at_a_time:
            if self._off:
                self._tell(f"This turn cannot be taken back: {self._off}.")
                return None
            try:
                now = self._record()
                made = self._snapshots.commit(now.tree, f"turns/{turn}", f"before turn {turn}")
                self._snapshots.point("known", made)
                self._snapshots.point("redo", None)
            except SessionError as error:
                # It would fail, and take its time, before every turn.
                self._off = str(error).rstrip(".")
                self._tell(f"Turns cannot be taken back from here on: {error}")
                return None
        return made[:_REF]

    def _settle(self) -> None:
        with self._one_at_a_time:
            if self._off or self._turn is None:
                return
            try:
                now = self._record()
                self._snapshots.commit(now.tree, "known", "after a change")
            except SessionError as error:
                self._tell(str(error))

    def _preview(self, ref: str) -> Rewind:
        with self._one_at_a_time:
            return self._planned(ref)[0]

    def _restore(self, ref: str, *, force: bool) -> Rewind:
        with self._one_at_a_time:
            plan, now, then = self._planned(ref)
            if plan.foreign and not force:
                return plan
            rescue = self._snapshots.commit(now.tree, f"rescues/{now.tree}", f"before going back to {ref}")
            self._snapshots.point("redo", rescue)
            self._snapshots.apply(now.tree, then, plan.changes)
            self._snapshots.commit(then, "known", f"gone back to {ref}")
        return Rewind(ref, plan.changes, plan.foreign, done=True, rescue=rescue[:_REF], warnings=plan.warnings)

    def _redo(self, *, force: bool) -> Rewind:
        with self._one_at_a_time:
            rescue = self._snapshots.commit_of("refs/redo")
        if rescue is None:
            message = "There is nothing to redo: no going back since the last turn that changed files."
            raise SessionError(message)
        return self._restore(rescue[:_REF], force=force)

    def _planned(self, ref: str) -> tuple[Rewind, Recorded, str]:
        if not self._snapshots.available:
            message = "There are no checkpoints: git is not installed."
            raise SessionError(message)
        then = self._snapshots.tree_of(ref) if re.fullmatch("[0-9a-f]{7,40}", ref) else None
        if then is None:
            message = f"There is no checkpoint {ref} in this session."
            raise SessionError(message)
        now = self._record()
        changes = self._snapshots.changes(now.tree, then)
        known = self._snapshots.tree_of("refs/known") or now.tree
        touched = {change.path for change in self._snapshots.changes(known, now.tree)}
        foreign = tuple(change.path for change in changes if change.path in touched)
        warnings = tuple(f"Not kept, stays as it is: {what}." for what in now.left_out)
        return Rewind(ref, changes, foreign, warnings=warnings), now, then

    def _record(self) -> Recorded:
        now = self._snapshots.record()
        for what in now.left_out:
            self._tell(f"Not part of checkpoints: {what}.")
        return now

    def _tell(self, sentence: str) -> None:
        if sentence not in self._warned:
            self._warned.add(sentence)
            self._warn(sentence)
