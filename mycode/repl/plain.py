"""The screen for whoever cannot or does not want one drawn: labelled lines out, whole lines in, nothing is redrawn."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Callable
from typing import TextIO

from rich.console import RenderableType

from mycode.core.visible import plain
from mycode.render.screen import Canvas
from mycode.repl.desk import Desk
from mycode.repl.opening import Opening


class PlainScreen:
    """Reads lines on a thread of its own. A line answers the open question if there is one, else it is sent."""

    def __init__(self, desk: Desk, *, source: TextIO | None = None, target: TextIO | None = None) -> None:
        self._desk = desk
        self._source = source or sys.stdin
        self._target = target or sys.stdout
        # Lines are not wrapped: whoever reads them does that better.
        self.canvas = Canvas(width=10_000, plain=True)
        self._answer: asyncio.Future[str] | None = None
        self._done = asyncio.Event()
        self._wanted = threading.Event()
        self._ended = False

    def write(self, *things: RenderableType) -> None:
        self._target.write(self.canvas.text(*things))
        self._target.flush()

    def refresh(self) -> None:
        """Nothing is redrawn. When there is no more to do, the next line may come; after the last one it is the end."""
        if not self._desk.busy and not self._desk.queued:
            self._wanted.set()
            if self._ended:
                self._done.set()

    async def run(self, opening: Opening | None = None, first_draw: Callable[[], None] | None = None) -> None:
        """Until the input ends, and what it asked for is done, or the person leaves."""
        if opening is not None:
            opening.close()
        loop = asyncio.get_running_loop()

        def received(line: str) -> None:
            if not self._done.is_set():
                self._line(line)

        def reading() -> None:
            # A person may type ahead; lines of a pipe or file wait until they are wanted, so that answers stay answers.
            ahead = self._source.isatty()
            while ahead or self._wanted.wait():
                self._wanted.clear()
                if not (line := self._source.readline()):
                    break
                loop.call_soon_threadsafe(received, line)
            loop.call_soon_threadsafe(self._end)

        def until_closed() -> None:
            try:
                reading()
            except RuntimeError:
                """The person has left meanwhile, and the event loop with them."""

        try:
            loop.add_signal_handler(signal.SIGINT, self._interrupted)
        except (NotImplementedError, RuntimeError, ValueError):
            pass
        self.refresh()
        threading.Thread(target=until_closed, name="lines", daemon=True).start()
        if first_draw is not None:
            first_draw()
        try:
            await self._done.wait()
        finally:
            try:
                loop.remove_signal_handler(signal.SIGINT)
            except (NotImplementedError, RuntimeError, ValueError):
                pass

    def leave(self) -> None:
        self._done.set()

    async def choose(self, choices: dict[str, str], *, escape: str) -> str:
        """A line that is one of the keys; anything else asks again. The end of the input counts as `escape`."""
        shown = ", ".join(f"{key} = {label}" for key, label in choices.items() if key != "esc")
        while True:
            self._say(f"Answer ({shown}; empty = {choices.get(escape, escape)}):")
            reply = (await self._next_line(escape)).strip().lower()
            if not reply:
                return escape
            if reply in choices:
                return reply

    async def read(self, label: str) -> str:
        self._say(f"{label}:")
        return await self._next_line("")

    def draft(self, text: str) -> None:
        """Lines cannot be filled in beforehand: the text is shown, to be copied."""
        self._say(f"You had said: {plain(text)}")

    def remember(self, text: str) -> None:
        """Nothing can be brought back."""

    async def _next_line(self, at_end: str) -> str:
        if self._ended:
            return at_end
        self._answer = asyncio.get_running_loop().create_future()
        self._wanted.set()
        try:
            return await self._answer
        finally:
            self._answer = None

    def _line(self, line: str) -> None:
        line = line.rstrip("\n")
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(line)
        elif line.strip():
            self._desk.submit(line)
        else:
            self.refresh()

    def _end(self) -> None:
        self._ended = True
        if self._answer is not None and not self._answer.done():
            self._answer.set_result("")
        self.refresh()

    def _interrupted(self) -> None:
        if not self._desk.interrupt():
            self._desk.leave()

    def _say(self, text: str) -> None:
        self._target.write(text + "\n")
        self._target.flush()
