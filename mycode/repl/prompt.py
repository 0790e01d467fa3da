"""The screen of a person at a terminal: one application that lives as long as the conversation.

Settled text goes into the terminal's own scrollback and is never touched again; only the few rows at the bottom are
drawn anew.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.formatted_text import AnyFormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input, create_input
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.vt100 import Vt100_Output
from rich.console import RenderableType

from mycode.core.errors import InputError
from mycode.render import transcript
from mycode.render.screen import Canvas
from mycode.repl.desk import Desk
from mycode.repl.editor import edit
from mycode.repl.frames import Frames
from mycode.repl.keys import bindings
from mycode.repl.layout import layout, style
from mycode.repl.opening import Opening
from mycode.repl.pastes import Pastes
from mycode.repl.questions import Question, Questions
from mycode.repl.services import ReplSettings


class Prompt:
    """Owns the draft and the application around it. All of it is called from the event loop."""

    def __init__(
        self,
        desk: Desk,
        settings: ReplSettings,
        completer: Completer,
        *,
        source: Input | None = None,
        target: Output | None = None,
    ) -> None:
        self.desk = desk
        self._settings = settings
        self._input = source or create_input(always_prefer_tty=True)
        self._output = target or _output()
        self._canvas = Canvas(self._output.get_size().columns, color=settings.color, look=settings.look)
        self._history = _history(settings.history_file)
        self._pastes = Pastes()
        self.questions = Questions()
        self.frames = Frames(self._output, lambda: self.canvas, desk.live)
        self.buffer = Buffer(
            name="input",
            completer=completer,
            complete_while_typing=True,
            history=self._history,
            multiline=True,
            on_text_changed=lambda _: self.questions.typed(),
        )
        self.app: Application[None] = Application(
            layout=layout(self.buffer, self.frames, self.questions, self._status),
            key_bindings=bindings(self),
            style=style(settings.look),
            editing_mode=EditingMode.VI if settings.vi else EditingMode.EMACS,
            input=self._input,
            output=self._output,
            full_screen=False,
            erase_when_done=True,
            color_depth=ColorDepth.DEPTH_4_BIT if settings.color else ColorDepth.DEPTH_1_BIT,
            after_render=lambda _: self.frames.rendered(),
        )
        # Esc alone and Alt-keys share their first byte; a short wait tells them apart.
        self.app.timeoutlen = 0.15
        self.app.ttimeoutlen = 0.05

    # What the loop calls

    @property
    def canvas(self) -> Canvas:
        """What fits the terminal now; the same one as long as its width stays."""
        if (width := self._output.get_size().columns) != self._canvas.width:
            self._canvas = Canvas(width, color=self._settings.color, look=self._settings.look)
        return self._canvas

    def write(self, *things: RenderableType) -> None:
        """Settles things into the scrollback, above the input, with the next frame."""
        self.frames.write(*things)

    def refresh(self) -> None:
        """What still changes has changed; it is drawn with the next frame."""
        self.frames.refresh()

    async def run(self, opening: Opening | None = None, first_draw: Callable[[], None] | None = None) -> None:
        """Until the person leaves. What was typed on the bare prompt before is in the draft (or sent)."""
        if opening is not None and (typed := opening.take(self.canvas.width)):
            store_typeahead(self._input, _keys(typed))
        if first_draw is not None:
            self._once_drawn(first_draw)
        drawing = asyncio.create_task(self.frames.draw(self.app, lambda: self.desk.busy))
        drawing.add_done_callback(self._stopped_drawing)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTSTP, self.suspend)
        try:
            await self.app.run_async(set_exception_handler=False)
        except EOFError:
            """The terminal is gone: that is leaving, too."""
        finally:
            loop.remove_signal_handler(signal.SIGTSTP)
            drawing.cancel()
            self.frames.finish()

    def leave(self) -> None:
        if self.app.is_running and not self.app.is_done:
            self.app.exit()

    async def choose(self, choices: dict[str, str], *, escape: str) -> str:
        """Asks for one key of `choices`; Esc counts as `escape`."""
        return await self._answered(self.questions.ask_key(choices, escape))

    async def read(self, label: str) -> str:
        """Asks for a line; the draft is put aside meanwhile."""
        draft = self.buffer.document
        self.buffer.reset()
        try:
            return await self._answered(self.questions.ask_line(label))
        finally:
            self.buffer.reset(draft)

    def draft(self, text: str) -> None:
        """Puts a text on the input line; what stands there already stays instead."""
        if not self.buffer.text:
            shown = self._pastes.shown(text)
            self.buffer.document = Document(shown, len(shown))

    def remember(self, text: str) -> None:
        """Puts a text among the lines that the Up key brings back."""
        self._history.append_string(text)

    # What keys do

    def enter(self) -> None:
        """A new line after a backslash, else what is in the input is sent."""
        buffer = self.buffer
        question = self.questions.open
        if buffer.document.current_line_before_cursor.endswith("\\") and question is None:
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
            return
        text = self._pastes.expanded(buffer.text)
        if question is not None:
            question.settle(text)
        elif text.strip():
            self.remember(text)
            buffer.reset()
            self._pastes.clear()
            self.desk.submit(text)

    def paste(self, text: str) -> None:
        """Pasted text goes into the draft; a large one as a sign that stands for it."""
        self.buffer.insert_text(self._pastes.shown(text))

    def open_editor(self) -> None:
        """Hands the draft and the terminal to the person's editor; what happens meanwhile is shown afterwards."""
        if not self.frames.paused:
            self.frames.paused = True
            self.app.create_background_task(self._edit())

    def clear_screen(self) -> None:
        self.app.renderer.clear()

    def suspend(self) -> None:
        """Stops the program as Ctrl-Z does everywhere, with the terminal as it was; `fg` draws it anew."""
        if not self.frames.paused:
            self.frames.paused = True
            self.app.create_background_task(self._suspended())

    async def _suspended(self) -> None:
        loop = asyncio.get_running_loop()

        def stop() -> None:
            loop.remove_signal_handler(signal.SIGTSTP)
            os.kill(0, signal.SIGTSTP)
            loop.add_signal_handler(signal.SIGTSTP, self.suspend)

        try:
            await run_in_terminal(stop)
        finally:
            self.frames.paused = False
            self.refresh()

    async def _edit(self) -> None:
        draft = self._pastes.expanded(self.buffer.text)
        try:
            text = await run_in_terminal(lambda: edit(draft, self._settings.editor), in_executor=True)
            if text != draft:  # what was typed before the editor took the terminal stays, and what was sent is gone
                self.buffer.document = Document(text, len(text))
        except InputError as error:
            self.write(transcript.error(str(error)))
        finally:
            self.frames.paused = False
            self.refresh()

    async def _answered(self, question: Question) -> str:
        self.refresh()
        try:
            return await question.answer
        finally:
            self.questions.open = None
            self.refresh()

    def _status(self) -> AnyFormattedText:
        return [*self.desk.status(self._output.get_size().columns, asking=self.questions.open is not None)]

    def _once_drawn(self, then: Callable[[], None]) -> None:
        def drawn(_: object) -> None:
            self.app.after_render -= drawn
            then()

        self.app.after_render += drawn

    def _stopped_drawing(self, drawing: asyncio.Task[None]) -> None:
        """A screen that nobody draws any more must not pretend to be alive."""
        if not drawing.cancelled() and (fault := drawing.exception()) is not None and self.app.is_running:
            self.app.exit(exception=fault)


def _keys(text: str) -> list[KeyPress]:
    keys: list[KeyPress] = []
    parser = Vt100Parser(keys.append)
    parser.feed(text)
    parser.flush()
    return keys


def _output() -> Output:
    def size() -> Size:
        try:
            columns, rows = os.get_terminal_size(sys.stdout.fileno())
        except (OSError, ValueError):
            columns, rows = 0, 0
        return Size(rows=rows or 24, columns=columns or 80)

    # The cursor is never asked for its place: not every terminal answers, and nothing here needs to know.
    return Vt100_Output(sys.stdout, size, term=os.environ.get("TERM"), enable_cpr=False)


def _history(path: Path | None) -> History:
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:
        return InMemoryHistory()
    return _Lines(path)


class _Lines(FileHistory):
    """The lines of all sessions; on a full disk those of this one are known as long as it lasts."""

    def store_string(self, string: str) -> None:
        try:
            super().store_string(string)
        except OSError:
            pass
