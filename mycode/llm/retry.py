"""The only retries there are: visible, cancellable, and at an end after a budget of time."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from mycode.core.errors import BadResponse, ModelError
from mycode.core.events import ReasoningDelta, Retrying, TextDelta
from mycode.core.models import Model, ModelInfo, ModelItem, ModelRequest
from mycode.llm.faults import Unreachable

ATTEMPTS = 12
_FEWER = {BadResponse: 2, Unreachable: 4}  # retries of what seldom mends itself
_FIRST, _LONGEST = 1.0, 60.0


class RetryingModel:
    """Asks `inner` again after errors that may pass, and says so with a `Retrying` event before each wait.

    Waits as long as the provider asks, else 1, 2, 4 ... 60 seconds with jitter, until `budget` seconds are used up;
    then the last error is raised. What must not be asked again (keys, unknown models, bad requests, overflow) is raised
    at once. `discard` of the event says that text was already shown which does not count. Cancelling a wait is at once.
    """

    def __init__(
        self,
        inner: Model,
        *,
        budget: float = 600.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.inner = inner
        self._budget = budget
        self._sleep = sleep
        self._clock = clock
        self._jitter = jitter

    @property
    def info(self) -> ModelInfo:
        return self.inner.info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        start = self._clock()
        counts: dict[type[ModelError], int] = {}
        for attempt in range(1, ATTEMPTS + 1):
            shown = False
            try:
                async with aclosing(self.inner.stream(request)) as stream:
                    async for item in stream:
                        shown = shown or isinstance(item, TextDelta | ReasoningDelta)
                        yield item
                return
            except ModelError as error:
                counts[type(error)] = counts.get(type(error), 0) + 1
                delay = self._delay(error, attempt)
                if (
                    not error.retryable
                    or attempt == ATTEMPTS
                    or counts[type(error)] > _FEWER.get(type(error), ATTEMPTS)
                ):
                    raise
                if self._clock() - start + delay > self._budget:
                    if error.retry_after is None:
                        raise
                    raise _for_later(error, delay) from None
                retrying = Retrying(attempt, ATTEMPTS, round(delay, 2), str(error), error.status, shown)
            yield retrying
            await self._sleep(retrying.delay)

    async def aclose(self) -> None:
        await self.inner.aclose()

    def _delay(self, error: ModelError, attempt: int) -> float:
        if error.retry_after is not None:
            return error.retry_after
        return float(min(_LONGEST, _FIRST * 2 ** (attempt - 1)) * (0.5 + self._jitter() / 2))


def _for_later(error: ModelError, delay: float) -> ModelError:
    """A wait that is too long to sit through is the person's to decide on."""
    wait = f"{math.ceil(delay / 60)} minutes" if delay > 90 else f"{math.ceil(delay)} seconds"
    message = f"{error} It asks to wait {wait}: ask again then, or choose another model."
    return type(error)(message, status=error.status, retry_after=error.retry_after)
