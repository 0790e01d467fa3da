"""The moment before an automatic summary in which the person may put it off."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from mycode.core.summaries import Trigger


class Grace:
    """Waits `seconds` before each automatic summary, unless it is an emergency; 0 waits for nothing.

    It is made before there is a screen; `attach` gives it the one to draw anew while it runs.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds
        self._refresh: Callable[[], None] = lambda: None
        self._until = 0.0
        self._answer: asyncio.Future[bool] | None = None

    def attach(self, refresh: Callable[[], None]) -> None:
        self._refresh = refresh

    @property
    def left(self) -> int:
        """Whole seconds in which it can still be put off; 0 when nothing waits."""
        if self._answer is None:
            return 0
        return max(1, math.ceil(self._until - asyncio.get_running_loop().time()))

    async def may_fold(self, trigger: Trigger) -> bool:
        """Whether the summary may be written now: yes, unless `put_off` is called in time."""
        if self._seconds <= 0 or trigger.emergency:
            return True
        loop = asyncio.get_running_loop()
        self._answer = loop.create_future()
        self._until = loop.time() + self._seconds
        self._refresh()
        try:
            async with asyncio.timeout(self._seconds):
                return await self._answer
        except TimeoutError:
            return True
        finally:
            self._answer = None
            self._refresh()

    def put_off(self) -> bool:
        """Not now; False when nothing waits for it."""
        if self._answer is None or self._answer.done():
            return False
        self._answer.set_result(False)
        return True
