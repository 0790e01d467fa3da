"""The next summary, prepared in the background over a part of the past that no longer changes."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from mycode.context.projection import Row
from mycode.core.errors import ModelError

if TYPE_CHECKING:
    from mycode.context.folding import Told


class Prepared(Struct, frozen=True):
    """A telling that waits for its trigger: good as long as the first `rows` visible messages hash to `prefix`."""

    prefix: str
    rows: int
    told: Told


class Precompute:
    """Owns at most one background task, and what the last one brought."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._prepared: Prepared | None = None
        self._tried: str | None = None

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self, rows: Sequence[Row], base: str, tell: Callable[[], Awaitable[Told]]) -> bool:
        """Begins to prepare a telling of `rows` unless one was begun on this `base`; whether it began.

        `base` names what lies under the rows (the summary before them): on each there is one try, whatever comes of
        it, so that neither a growing conversation nor a failing model costs a call at every step.
        """
        if not self.may_start(base):
            return False
        self._tried = base
        self._task = asyncio.create_task(self._run(prefix_hash(rows, base), len(rows), tell))
        return True

    def may_start(self, base: str) -> bool:
        """Whether nothing is under way and nothing was tried on this base yet."""
        return not self.running and base != self._tried

    def take(self, rows: Sequence[Row], base: str) -> Prepared | None:
        """What was prepared, if the past still begins as it did then. It is handed out once."""
        prepared, self._prepared = self._prepared, None
        if prepared is None or prepared.rows > len(rows):
            return None
        return prepared if prefix_hash(rows[: prepared.rows], base) == prepared.prefix else None

    def give_back(self, prepared: Prepared) -> None:
        """It was not needed yet: the next `take` may have it."""
        self._prepared = prepared

    async def wait(self, seconds: float) -> bool:
        """Until nothing is under way, or so many seconds have passed; whether nothing is."""
        if self._task is None:
            return True
        _, pending = await asyncio.wait([self._task], timeout=seconds)
        return not pending

    def cancel(self) -> None:
        """Stops preparing; what was ready is forgotten too."""
        if self._task is not None:
            self._task.cancel()
        self._task = None
        self._prepared = None
        self._tried = None

    async def _run(self, prefix: str, rows: int, tell: Callable[[], Awaitable[Told]]) -> None:
        try:
            told = await tell()
        except ModelError:
            return  # nobody waits for it: the trigger will find nothing and tell the fold itself
        if told.draft is not None and not told.failed:
            self._prepared = Prepared(prefix, rows, told)


def prefix_hash(rows: Sequence[Row], base: str) -> str:
    """A name for these rows on that base; equal only if every message is the same."""
    digest = hashlib.sha256(base.encode())
    for row in rows:
        digest.update(f"{row.seq}:{row.sha256}\n".encode())
    return digest.hexdigest()
