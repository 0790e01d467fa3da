"""When a model is asked again, and what the person sees meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from mycode.core.errors import BadResponse, ModelError, RateLimited, Unavailable
from mycode.core.events import Retrying, TextDelta
from mycode.core.messages import AssistantMessage
from mycode.core.models import ModelItem
from mycode.llm.retry import ATTEMPTS, RetryingModel
from mycode.llm.scripted import Failure, Reply, ScriptedModel
from tests.llm.conftest import ask


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def broken(kind: str = "Unavailable", **more: object) -> Reply:
    return Reply(error=Failure(kind, "it broke", **more))  # type: ignore[arg-type]


async def play(*script: Reply, budget: float = 600.0, repeat: bool = False) -> tuple[list[ModelItem], Clock, object]:
    """Everything that came, the clock, and the error at the end if there was one."""
    clock = Clock()
    inner = ScriptedModel((lambda _: script[0]) if repeat else script)
    model = RetryingModel(inner, budget=budget, sleep=clock.sleep, clock=clock, jitter=lambda: 1.0)
    items: list[ModelItem] = []
    try:
        async for item in model.stream(ask()):
            items += [item]
    except ModelError as error:
        return items, clock, error
    return items, clock, None


async def test_a_passing_fault_is_tried_again_and_told_before_the_wait() -> None:
    items, clock, error = await play(broken(status=503), broken(), Reply(text="Here."))
    assert error is None
    assert items[:2] == [
        Retrying(1, ATTEMPTS, 1.0, "it broke", 503, discard=False),
        Retrying(2, ATTEMPTS, 2.0, "it broke", None, discard=False),
    ]
    assert isinstance(items[-1], AssistantMessage)
    assert clock.slept == [1.0, 2.0]


async def test_text_that_was_already_shown_is_discarded_by_the_retry() -> None:
    items, _, _ = await play(Reply(text="Hel", error=Failure("Unavailable", "cut")), Reply(text="Hello."))
    assert items[0] == TextDelta("Hel")
    assert isinstance(items[1], Retrying)
    assert items[1].discard


async def test_the_wait_that_the_provider_asks_for_is_the_wait() -> None:
    _, clock, _ = await play(broken("RateLimited", status=429, retry_after=17.0), Reply(text="Here."))
    assert clock.slept == [17.0]


@pytest.mark.parametrize("kind", ["AuthError", "UnknownModel", "BadRequest", "ContextOverflow"])
async def test_what_will_not_mend_itself_is_never_tried_again(kind: str) -> None:
    items, clock, error = await play(broken(kind), Reply(text="never asked"))
    assert (items, clock.slept) == ([], [])
    assert type(error).__name__ == kind


async def test_an_empty_answer_is_tried_again_twice() -> None:
    items, clock, error = await play(broken("BadResponse"), repeat=True)
    assert len(items) == len(clock.slept) == 2
    assert isinstance(error, BadResponse)


async def test_waits_grow_to_a_minute_and_end_with_the_budget() -> None:
    _, clock, error = await play(broken(), repeat=True)
    assert clock.slept[:7] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0]
    assert max(clock.slept) == 60.0
    assert sum(clock.slept) <= 600.0
    assert isinstance(error, Unavailable)


async def test_a_wait_beyond_the_budget_is_not_begun() -> None:
    items, clock, error = await play(broken("RateLimited", retry_after=3600.0), Reply(text="never asked"))
    assert (items, clock.slept) == ([], [])
    assert isinstance(error, RateLimited)
    assert str(error) == "it broke It asks to wait 60 minutes: ask again then, or choose another model."


async def test_a_wait_can_be_cancelled() -> None:
    model = RetryingModel(ScriptedModel([broken("RateLimited", retry_after=300.0)]))
    waiting = asyncio.Event()

    async def consume() -> None:
        async with aclosing(model.stream(ask())) as stream:
            async for item in stream:
                assert isinstance(item, Retrying)
                waiting.set()

    task = asyncio.create_task(consume())
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_refusal_is_not_tried_again() -> None:
    items, clock, error = await play(Reply(text="I will not.", finish="refusal"))
    assert isinstance(items[-1], AssistantMessage)
    assert (clock.slept, error) == ([], None)
