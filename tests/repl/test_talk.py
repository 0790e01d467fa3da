"""The loop behind the screen: one thing after the other, a queue, interruptions, and no silent death."""

import asyncio
from collections.abc import AsyncGenerator, Callable

import pytest
from rich.console import RenderableType

from mycode.core.errors import SessionError
from mycode.core.events import Event, Retrying, TextDelta, ToolFinished, ToolStarted
from mycode.core.messages import ToolCall, ToolResult
from mycode.core.tools import TodoDisplay, TodoItem
from mycode.render.screen import Canvas
from mycode.repl.opening import Opening
from mycode.repl.services import ReplSettings
from mycode.repl.talk import Repl
from tests.support.scripted_session import Script, ScriptedServices, ScriptedSession, forever, wait_for


class FakeScreen:
    """Shows into a string; runs until it is told to leave."""

    def __init__(self) -> None:
        self.canvas = Canvas(80, color=False)
        self.shown = ""
        self._left = asyncio.Event()

    def write(self, *things: RenderableType) -> None:
        self.shown += self.canvas.text(*things)

    def refresh(self) -> None:
        pass

    async def run(self, opening: Opening | None = None, first_draw: Callable[[], None] | None = None) -> None:
        if first_draw is not None:
            first_draw()
        await self._left.wait()

    def leave(self) -> None:
        self._left.set()

    async def choose(self, choices: dict[str, str], *, escape: str) -> str:
        return escape

    async def read(self, label: str) -> str:
        return ""

    def draft(self, text: str) -> None:
        self.shown += text

    def remember(self, text: str) -> None:
        self.shown += f"(kept: {text})"


def repl_over(*scripts: Script) -> tuple[Repl, FakeScreen, ScriptedSession]:
    session = ScriptedSession(*scripts)
    repl = Repl(session, ReplSettings(), ScriptedServices())
    screen = FakeScreen()
    repl.attach(screen)
    return repl, screen, session


async def idle(repl: Repl) -> None:
    async with asyncio.timeout(5):
        while repl.busy:
            await asyncio.sleep(0)


async def until(seen: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not seen():
            await asyncio.sleep(0)


async def test_prompts_run_one_after_the_other() -> None:
    repl, screen, session = repl_over()

    for text in ("one", "two", "three"):
        repl.submit(text)
    assert (repl.busy, repl.queued) == (True, 2)
    await idle(repl)

    assert session.prompts == ["one", "two", "three"]
    assert screen.shown.index("You said: one") < screen.shown.index("> two")


async def test_an_interruption_keeps_what_was_said_and_the_queue() -> None:
    repl, screen, session = repl_over(wait_for(forever, TextDelta("half an answer")))

    repl.submit("first")
    await until(lambda: bool(repl.live()))
    repl.submit("second")
    assert repl.interrupt()
    await idle(repl)

    assert screen.shown == (
        "\n> first\n\nhalf an answer\n! Interrupted. What was done so far is kept.\n\n> second\n\nYou said: second\n"
    )
    assert not repl.interrupt()
    assert session.prompts == ["first", "second"]


async def test_a_second_interruption_does_not_disturb_the_cleaning_up_of_the_first() -> None:
    cleaned: list[str] = []

    async def stubborn(session: ScriptedSession, text: str) -> AsyncGenerator[Event]:
        try:
            yield TextDelta("x")
            await forever()
        finally:
            await asyncio.sleep(0.01)
            cleaned.append("clean")

    repl, _, _ = repl_over(stubborn)
    repl.submit("go")
    await until(lambda: bool(repl.live()))
    repl.interrupt()
    await asyncio.sleep(0)
    repl.interrupt()
    await idle(repl)

    assert cleaned == ["clean"]


async def test_work_cancelled_before_it_began_leaves_the_loop_free() -> None:
    repl, _, session = repl_over()

    repl.submit("never")
    repl.interrupt()
    await idle(repl)
    repl.submit("then")
    await idle(repl)

    assert session.prompts == ["then"]


async def test_an_error_for_the_person_is_a_sentence_and_the_loop_goes_on() -> None:
    async def refused(session: ScriptedSession, text: str) -> AsyncGenerator[Event]:
        yield TextDelta("par")
        raise SessionError("The disk is full.")

    repl, screen, _ = repl_over(refused)
    repl.submit("one")
    repl.submit("two")
    await idle(repl)

    assert "✗ The disk is full.\n" in screen.shown
    assert "You said: two" in screen.shown


async def test_a_fault_of_the_program_ends_it_with_the_fault() -> None:
    async def broken(session: ScriptedSession, text: str) -> AsyncGenerator[Event]:
        yield TextDelta("x")
        raise ZeroDivisionError

    repl, _, _ = repl_over(broken)

    with pytest.raises(ZeroDivisionError):
        await repl.run(None, None, "go")


async def test_reading_commands_run_beside_the_agent_and_others_wait() -> None:
    gate = asyncio.Event()
    repl, screen, session = repl_over(wait_for(gate.wait, TextDelta("work")))

    repl.submit("go")
    await until(lambda: bool(repl.live()))
    repl.submit("/cost")
    repl.submit("/clear")
    await until(lambda: "This session:" in screen.shown)
    assert (repl.queued, session.id) == (1, "abc123")
    gate.set()
    await idle(repl)

    assert session.id == "def456"


async def test_leaving_while_the_agent_works_stops_it() -> None:
    repl, _, session = repl_over(wait_for(forever, TextDelta("work")))
    running = asyncio.create_task(repl.run(None, None, "go"))
    await until(lambda: bool(repl.busy and repl.live()))

    repl.submit("/exit")

    assert await running == 0
    assert (repl.busy, session.prompts) == (False, ["go"])


async def test_a_queued_prompt_is_taken_back_from_the_end() -> None:
    repl, _, _ = repl_over(wait_for(forever))
    for text in ("go", "one", "two"):
        repl.submit(text)

    assert (repl.take_back(), repl.take_back(), repl.take_back()) == ("two", "one", "")
    repl.interrupt()
    await idle(repl)


async def test_the_permission_mode_goes_round() -> None:
    repl, _, _ = repl_over()
    modes = []
    for _ in range(3):
        repl.next_mode()
        modes.append(repl.services.mode)

    assert modes == ["acceptEdits", "plan", "default"]
    assert repl.hint == "default: asks before it changes files or runs commands"


async def test_the_last_output_and_the_todo_list_are_shown_on_demand() -> None:
    call = ToolCall("c", "todo", "{}")
    finished = ToolFinished(call, ToolResult("c", "ok"), 0.0, TodoDisplay((TodoItem("write tests", "active"),)))

    async def planned(session: ScriptedSession, text: str) -> AsyncGenerator[Event]:
        yield ToolStarted(call, "todo")
        yield finished

    repl, screen, _ = repl_over(planned)
    repl.show_todo()
    assert screen.shown == "\nNo todo list yet.\n"
    repl.submit("plan")
    await idle(repl)
    screen.shown = ""
    repl.show_todo()
    repl.expand_last()

    assert screen.shown == "\n[>] write tests\n\n● todo\n  [>] write tests\n"


async def test_what_may_be_needed_is_loaded_only_once_the_prompt_is_drawn() -> None:
    import threading

    repl, screen, _ = repl_over()
    warmed = threading.Event()

    running = asyncio.create_task(repl.run(None, warmed.set, ""))
    await until(warmed.is_set)
    screen.leave()

    assert await running == 0


async def test_a_wait_that_the_provider_asks_for_is_counted_down_and_can_be_interrupted() -> None:
    async def play(session: ScriptedSession, text: str) -> AsyncGenerator[Event]:
        yield Retrying(1, 12, 90.0, "The provider asks for a pause (429).", 429)
        await forever()

    repl, screen, _ = repl_over(play)
    repl.submit("go")
    await until(lambda: "asks for a pause" in screen.shown)
    line = "".join(text for _, text in repl.status(120))
    assert "Trying again in 1 min" in line
    assert "Esc interrupts" in line
    repl.interrupt()
    await idle(repl)
    repl.submit("next")
    assert "Trying again" not in "".join(text for _, text in repl.status(120))
    await idle(repl)
