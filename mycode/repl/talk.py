"""What goes on in a conversation at the terminal: one thing after the other, a queue behind it, and what is shown."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Protocol

from rich.console import RenderableType
from rich.text import Text

from mycode.core.errors import MycodeError
from mycode.core.events import Event, Retrying, ToolFinished, ToolProgress, ToolStarted, TurnEnded
from mycode.core.messages import ToolCall, ToolResult
from mycode.core.visible import plain
from mycode.render import transcript
from mycode.render.live import Live
from mycode.render.numbers import duration
from mycode.render.screen import Canvas
from mycode.repl.commands.command import Registry, is_command
from mycode.repl.commands.permissions import CYCLE, MEANINGS
from mycode.repl.commands.registry import standard
from mycode.repl.grace import Grace
from mycode.repl.key_sheet import SHEET
from mycode.repl.opening import Opening
from mycode.repl.passthrough import run_command
from mycode.repl.services import Conversation, ReplSettings, Services
from mycode.repl.toolbar import Fragments, Work, facts, status

_LAST_SECONDS = 5.0


class Screen(Protocol):
    """Where the person sits: drawn (`prompt.Prompt`) or plain lines (`plain.PlainScreen`)."""

    @property
    def canvas(self) -> Canvas: ...

    def write(self, *things: RenderableType) -> None: ...

    def refresh(self) -> None: ...

    async def run(self, opening: Opening | None = None, first_draw: Callable[[], None] | None = None) -> None: ...

    def leave(self) -> None: ...

    async def choose(self, choices: dict[str, str], *, escape: str) -> str: ...

    async def read(self, label: str) -> str: ...

    def draft(self, text: str) -> None: ...

    def remember(self, text: str) -> None: ...


class Repl:
    """Owns what is running, what is queued behind it, and what the screen shows of it."""

    def __init__(
        self, session: Conversation, settings: ReplSettings, services: Services, grace: Grace | None = None
    ) -> None:
        self.session = session
        self.settings = settings
        self.services = services
        self.registry: Registry = standard()
        self.hint = ""
        self._grace = grace or Grace()
        self._queue: deque[str] = deque()
        self._task: asyncio.Task[None] | None = None
        self._since = 0.0
        self._again_at = 0.0
        self._aside: list[str] = []
        self._beside_tasks: set[asyncio.Task[None]] = set()
        self._leaving = False
        self._fault: BaseException | None = None

    def attach(self, screen: Screen) -> None:
        self._screen = screen
        self._live = Live(screen.canvas, self.settings.notify)
        self._grace.attach(self._gracing)
        self._facts = facts(self.session, self.services)

    async def run(self, opening: Opening | None, warm: Callable[[], None] | None, first_prompt: str) -> int:
        if self.settings.notice:
            self.say(self.settings.notice)
        if first_prompt:
            self._screen.remember(first_prompt)
            self.submit(first_prompt)

        def drawn() -> None:
            threading.Thread(target=_load, args=(warm,), name="warm-up", daemon=True).start()

        try:
            await self._screen.run(opening, drawn)
        finally:
            self._leaving = True
            await self._stop()
        if self._fault is not None:
            raise self._fault
        return 0

    # What the screen asks

    @property
    def busy(self) -> bool:
        return self._task is not None

    @property
    def queued(self) -> int:
        return len(self._queue)

    def submit(self, text: str) -> None:
        """Takes a line: at once if nothing runs, else behind what does. Some commands need not wait."""
        self.hint = ""
        if self._task is None:
            self._start(text)
        elif is_command(text) and self.registry.at_once(text):
            task = asyncio.get_running_loop().create_task(self._beside(text))
            self._beside_tasks.add(task)
            task.add_done_callback(self._beside_tasks.discard)
        else:
            self._queue.append(text)
            self._screen.refresh()

    def interrupt(self) -> bool:
        """Stops what runs, keeping what was done and the queue; False if nothing runs.

        While a summary is about to begin, only that is put off.
        """
        if self._task is None:
            return False
        if not self._leaving and self._grace.put_off():
            return True
        if not self._task.cancelling():
            # Once is enough: a second one could cut short the cleaning up after the first.
            self._task.cancel()
        return True

    def take_back(self) -> str:
        text = self._queue.pop() if self._queue else ""
        self._screen.refresh()
        return text

    def next_mode(self) -> None:
        mode = self.services.mode
        following = CYCLE[(CYCLE.index(mode) + 1) % len(CYCLE)] if mode in CYCLE else CYCLE[0]
        try:
            self.services.set_mode(following)
        except MycodeError as error:
            self._fail(error)
            return
        self.hint = f"{following}: {MEANINGS[following]}"
        self._refresh_facts()

    def expand_last(self) -> None:
        if self.last_tool is not None:
            finished, title = self.last_tool
            self.write(Text(), transcript.tool(finished, title, plain_text=self.canvas.plain, whole=True))

    def show_todo(self) -> None:
        self.write(Text(), transcript.todo(self._live.todo) if self._live.todo else Text("No todo list yet."))

    def help(self) -> None:
        self.write(Text("\n" + SHEET))

    def rewind(self) -> None:
        self.submit("/rewind")

    def leave(self) -> None:
        self._leaving = True
        self._queue.clear()
        self.interrupt()
        self._screen.leave()

    def live(self) -> RenderableType | None:
        return self._live.live()

    def status(self, width: int, *, asking: bool = False) -> Fragments:
        seconds = time.monotonic() - self._since if self.busy else 0.0
        label = "Waiting for you" if asking else self._live.label or "Working"
        if (pause := math.ceil(self._again_at - time.monotonic())) > 0 and not asking:
            label = f"Trying again in {duration(pause)}"
        label = label if self.busy else ""
        stop = "Ctrl-C interrupts" if asking else "Esc interrupts"
        if left := self._grace.left:
            stop = f"Esc puts it off ({left} s)"
        return status(Work(label, seconds, len(self._queue), self.hint, stop), self._facts, width)

    # What commands may do

    @property
    def canvas(self) -> Canvas:
        return self._screen.canvas

    @property
    def last_tool(self) -> tuple[ToolFinished, str] | None:
        return self._live.last_tool

    def write(self, *things: RenderableType) -> None:
        self._screen.write(*things)

    def say(self, text: str) -> None:
        self.write(transcript.notice(text, plain_text=self.canvas.plain))

    async def read(self, label: str) -> str:
        return await self._screen.read(label)

    async def choose(self, choices: dict[str, str], *, escape: str) -> str:
        return await self._screen.choose(choices, escape=escape)

    def draft(self, text: str) -> None:
        self._screen.draft(text)

    async def follow(self, events: AsyncGenerator[Event]) -> list[Event]:
        """Shows events as they come, and gives them back."""
        seen: list[Event] = []
        async with aclosing(events):
            async for event in events:
                self._show(event)
                seen.append(event)
        self._settle()
        return seen

    def reopened(self) -> None:
        self._live = Live(self.canvas, self.settings.notify)
        self._aside.clear()
        self._refresh_facts()

    # One thing after the other

    def _start(self, text: str) -> None:
        self._since, self._again_at = time.monotonic(), 0.0
        self._task = asyncio.get_running_loop().create_task(self._guarded(text))
        self._task.add_done_callback(self._done)
        self._screen.refresh()

    async def _guarded(self, text: str) -> None:
        """Whatever goes wrong for the person is a sentence on the screen."""
        try:
            if is_command(text):
                await self._command(text)
            elif text.startswith("!"):
                await self._shell(text)
            else:
                await self._prompt(text)
        except asyncio.CancelledError:
            self._settle()
            if not self._leaving:
                sentence = "Interrupted. What was done so far is kept."
                self.write(transcript.warning(sentence, plain_text=self.canvas.plain))
        except MycodeError as error:
            self._settle()
            self._fail(error)

    def _done(self, task: asyncio.Task[None]) -> None:
        """Also reached when the work was cancelled before it began. A fault of the program ends it, with the fault."""
        self._task = None
        if not task.cancelled() and task.exception() is not None:
            self._fault = task.exception()
            self.leave()
            return
        self._refresh_facts()
        if self._queue and not self._leaving:
            self._start(self._queue.popleft())
        else:
            self._screen.refresh()

    async def _prompt(self, text: str) -> None:
        told, self._aside = self._aside, []
        message = "\n\n".join([*told, text])
        self._live.typed = text
        async with aclosing(self.session.prompt(message)) as events:
            async for event in events:
                self._show(event)

    async def _beside(self, line: str) -> None:
        """A command that runs while something else does."""
        try:
            await self._command(line)
        except MycodeError as error:
            self._fail(error)

    async def _command(self, line: str) -> None:
        self.write(Text(), transcript.user(line, plain_text=self.canvas.plain))
        await self.registry.run(line, self)

    async def _shell(self, line: str) -> None:
        command = line[1:].strip()
        self.write(Text(), transcript.user(line, plain_text=self.canvas.plain))
        if not command:
            self.say("!command runs a command in your own shell, here.")
            return
        call = ToolCall("", line, "")
        self._live.fold(ToolStarted(call, line))
        ran = await run_command(command, self.settings.workspace, lambda text: self._show(ToolProgress("", text)))
        self._live.fold(ToolFinished(call, ToolResult("", ran.output), ran.seconds, ran.display))
        self.write(transcript.display(ran.display, plain_text=self.canvas.plain))
        self._aside.append(ran.told)
        self.say("The model hears of it with your next prompt.")

    async def _stop(self) -> None:
        for task in self._beside_tasks:
            task.cancel()
        if self._task is not None:
            self.interrupt()
            await asyncio.wait([self._task], timeout=_LAST_SECONDS)

    def _show(self, event: Event) -> None:
        self._live.canvas = self.canvas
        self._again_at = time.monotonic() + event.delay if isinstance(event, Retrying) else 0.0
        if settled := self._live.fold(event):
            self.write(*settled)
        else:
            self._screen.refresh()
        if isinstance(event, ToolStarted | ToolFinished | TurnEnded):
            self._refresh_facts()

    def _gracing(self) -> None:
        """A summary is about to begin, or no longer."""
        if self.canvas.plain and (left := self._grace.left):
            self.say(f"It begins in {left} s; Ctrl-C puts it off.")
        self._screen.refresh()

    def _settle(self) -> None:
        if settled := self._live.stop():
            self.write(*settled)

    def _fail(self, error: MycodeError) -> None:
        self.write(transcript.error(plain(str(error)), plain_text=self.canvas.plain))

    def _refresh_facts(self) -> None:
        self._facts = facts(self.session, self.services)
        self._screen.refresh()


def _load(warm: Callable[[], None] | None) -> None:
    """What the first answer will need, loaded while the person reads and types."""
    import mycode.render.markdown  # noqa: F401  # for its effect: the markdown parser is there when an answer is

    if warm is not None:
        warm()
