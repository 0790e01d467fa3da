"""What reaches the terminal and when: settled text once, into its own scrollback; the rows below it drawn anew."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from prompt_toolkit.application import Application
from prompt_toolkit.output import Output
from rich.console import RenderableType

from mycode.render.screen import Canvas

FRAMES_PER_SECOND = 25
LIVE_ROWS = 10
_ROWS_BELOW = 8
_TICK = 0.1
# Terminals that know it show everything between the two at once; others ignore it.
_SYNC_ON, _SYNC_OFF = "\x1b[?2026h", "\x1b[?2026l"


class Frames:
    """Gathers what is to be shown and draws it at most 25 times a second. Owns the live rows above the input."""

    def __init__(self, output: Output, canvas: Callable[[], Canvas], live: Callable[[], RenderableType | None]) -> None:
        self.text = ""
        self.rows = 0
        self.paused = False
        self._output = output
        self._canvas = canvas
        self._live = live
        self._settled: list[str] = []
        self._changed = asyncio.Event()
        self._syncing = False

    def write(self, *things: RenderableType) -> None:
        """Settles things into the scrollback with the next frame."""
        self._settled.append(self._canvas().text(*things))
        self._changed.set()

    def refresh(self) -> None:
        """Something on the screen has changed."""
        self._changed.set()

    async def draw(self, app: Application[None], busy: Callable[[], bool]) -> None:
        """Draws until it is cancelled; while `busy`, also without a change, so that the clock moves."""
        while True:
            try:
                await asyncio.wait_for(self._changed.wait(), _TICK if busy() else None)
            except TimeoutError:
                pass
            self._changed.clear()
            if not self.paused:
                self._frame(app)
            await asyncio.sleep(1 / FRAMES_PER_SECOND)

    def rendered(self) -> None:
        """The application has drawn its rows: the terminal may show all of it."""
        if self._syncing:
            self._syncing = False
            self._output.write_raw(_SYNC_OFF)
            self._output.flush()

    def finish(self) -> None:
        """Writes what was still waiting, once the application has gone."""
        self.rendered()
        rest, self._settled = "".join(self._settled), []
        if rest:
            self._output.write_raw(rest.replace("\n", "\r\n"))
            self._output.flush()

    def _frame(self, app: Application[None]) -> None:
        live = self._live()
        text = self._canvas().text(live).rstrip("\n") if live is not None else ""
        most = max(1, min(LIVE_ROWS, self._output.get_size().rows - _ROWS_BELOW))
        lines = text.split("\n")[-most:] if text else []
        shrinks = len(lines) < self.rows
        self.text, self.rows = "\n".join(lines), len(lines)
        if self._settled or shrinks:
            settled, self._settled = "".join(self._settled), []
            self._settle(app, settled)
        app.invalidate()

    def _settle(self, app: Application[None], text: str) -> None:
        """Wipes the drawn rows and writes settled text where they were; the rows come again below it."""
        if not self._syncing:
            self._output.write_raw(_SYNC_ON)
            self._syncing = True
        app.renderer.erase()
        # Not flushed here: the text and the rows below it reach the terminal in one piece.
        self._output.write_raw(text.replace("\n", "\r\n"))
