"""The moment in which a summary can be put off: it ends by itself, by a key, and it never comes in an emergency."""

import asyncio

from mycode.core.summaries import Trigger
from mycode.repl.grace import Grace

FULL = Trigger("ratio", 0.8, 8000)


async def test_without_a_key_the_summary_begins() -> None:
    assert await Grace(0.001).may_fold(FULL)


async def test_a_key_in_time_puts_it_off_and_what_is_left_is_shown() -> None:
    grace = Grace(60.0)
    left: list[int] = []
    begun = asyncio.Event()

    def refresh() -> None:
        left.append(grace.left)
        begun.set()

    grace.attach(refresh)
    asked = asyncio.create_task(grace.may_fold(FULL))
    await begun.wait()

    assert grace.put_off()
    assert not await asked
    assert left == [60, 0]


async def test_when_nothing_waits_there_is_nothing_to_put_off() -> None:
    assert not Grace(60.0).put_off()


async def test_an_emergency_and_a_grace_of_nothing_do_not_wait() -> None:
    assert await Grace(60.0).may_fold(Trigger("emergency", 1.2, 12_000, emergency=True))
    assert await Grace(0.0).may_fold(FULL)
