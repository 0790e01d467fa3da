"""The screen of a person at a terminal: the input line, what still changes above it, one status line below.

One prompt_toolkit application lives as long as the conversation and owns the screen. Settled text goes into the
terminal's own scrollback and is never touched again; only the few rows at the bottom are drawn anew.
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
from prompt_toolkit.filters import Condition, has_completions, has_focus
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input, create_input
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    VerticalAlign,
    Window,
)
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar
from rich.console import RenderableType

from mycode.core.errors import InputError
from mycode.render import transcript
from mycode.render.screen import Canvas
from mycode.repl.desk import Desk
from mycode.repl.editor import edit
from mycode.repl.keys import bindings
from mycode.repl.opening import PROMPT, Opening
from mycode.repl.services import ReplSettings

FRAMES_PER_SECOND = 25
LIVE_ROWS = 10
INPUT_ROWS = 8
_HASTE = 0.7
_PAUSE = 0.5
_PASTE_LINES, _PASTE_CHARS = 8, 1500
_SYNC_ON, _SYNC_OFF = "\x1b[?2026h", "\x1b[?2026l"


class Prompt:
    """Owns the screen and the draft. `write` may be called from the event loop at any time."""

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
        self._pending: list[str] = []
        self._changed = asyncio.Event()
        self._live_text = ""
        self._live_rows = 0
        self._pastes: dict[str, str] = {}
        self._typed_at = 0.0
        self._choice: _Question | None = None
        self._reading: _Question | None = None
        self._stash = Document()
        self._syncing = False
        self._away = False
        self.history: History = _history(settings.history_file)
        self.buffer = Buffer(
            name="input",
            completer=completer,
            complete_while_typing=True,
            history=self.history,
            multiline=True,
            on_text_changed=self._note_typing,
        )
        self.app: Application[None] = self._application()

    # What the loop calls

    @property
    def canvas(self) -> Canvas:
        """What fits the terminal now; the same one as long as its width stays."""
        if (width := self._output.get_size().columns) != self._canvas.width:
            self._canvas = Canvas(width, color=self._settings.color, look=self._settings.look)
        return self._canvas

    def write(self, *things: RenderableType) -> None:
        """Settles things into the scrollback, above the input, with the next frame."""
        self._pending.append(self.canvas.text(*things))
        self._changed.set()

    def refresh(self) -> None:
        """What still changes has changed; it is drawn with the next frame."""
        self._changed.set()

    async def run(self, opening: Opening | None = None, first_draw: Callable[[], None] | None = None) -> None:
        """Until the person leaves. What was typed on the bare prompt before is in the draft (or sent)."""
        typed = opening.take(self.canvas.width) if opening is not None else ""
        if typed:
            store_typeahead(self._input, _keys(typed))
        frames = asyncio.create_task(self._draw_frames())

        def drawn(_: object) -> None:
            self.app.after_render -= drawn
            if first_draw is not None:
                first_draw()

        self.app.after_render += drawn
        loop = asyncio.get_running_loop()
        endings = (signal.SIGTERM, signal.SIGHUP)
        for ending in endings:
            loop.add_signal_handler(ending, self.desk.leave)
        try:
            await self.app.run_async(set_exception_handler=False)
        except EOFError:
            """The terminal is gone: that is leaving, too."""
        finally:
            for ending in endings:
                loop.remove_signal_handler(ending)
            frames.cancel()
            self._flush_rest()

    def leave(self) -> None:
        if self.app.is_running and not self.app.is_done:
            self.app.exit()

    async def choose(self, choices: dict[str, str], *, escape: str) -> str:
        """Asks for one key. Keys that were on their way when the question appeared do not count as an answer."""
        now = asyncio.get_running_loop().time()
        not_before = now + _PAUSE if now - self._typed_at < _HASTE else now
        shown = "  ".join(f"[{key.capitalize()}] {label}" for key, label in choices.items())
        self._choice = question = _Question(shown, tuple(choices), escape, not_before)
        return await self._answered(question)

    async def read(self, label: str) -> str:
        """Asks for a line; the draft is put aside meanwhile."""
        self._reading = question = _Question(f"{label} (Enter sends, Esc: nothing)", (), "")
        self._stash = self.buffer.document
        self.buffer.reset()
        try:
            return await self._answered(question)
        finally:
            self.buffer.reset(self._stash)

    # What keys do

    @property
    def choosing(self) -> bool:
        return self._choice is not None

    @property
    def reading(self) -> bool:
        return self._reading is not None

    def answer_key(self, key: str) -> None:
        """A key while a choice is open; others are ignored."""
        question = self._choice
        if question is None or asyncio.get_running_loop().time() < question.not_before:
            return
        if (key := key.lower()) in question.keys and len(key) == 1:
            question.settle(key)

    def escape_question(self) -> None:
        if self._choice is not None:
            self._choice.settle(self._choice.escape)
        elif self._reading is not None:
            self._reading.settle(self._reading.escape)

    def enter(self) -> None:
        """Enter: a new line after a backslash, else what is in the input is sent."""
        buffer = self.buffer
        if buffer.document.current_line_before_cursor.endswith("\\") and not self.reading:
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
            return
        text = self._expanded(buffer.text)
        if self._reading is not None:
            buffer.reset()
            self._reading.settle(text)
            return
        if not text.strip():
            return
        self.history.append_string(text)
        buffer.reset()
        self._pastes.clear()
        self.desk.submit(text)

    def paste(self, text: str) -> None:
        """Pasted text goes into the draft as it is; a large one as a sign that stands for it."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.count("\n") + 1
        if lines <= _PASTE_LINES and len(text) <= _PASTE_CHARS:
            self.buffer.insert_text(text)
            return
        sign = f"[pasted text {len(self._pastes) + 1}: {lines} lines, {len(text):,} characters]"
        self._pastes[sign] = text
        self.buffer.insert_text(sign)

    def open_editor(self) -> None:
        """Hands the draft and the terminal to the person's editor; what happens meanwhile is shown afterwards."""
        if not self._away:
            self._away = True
            self.app.create_background_task(self._edit())

    async def _edit(self) -> None:
        draft = self._expanded(self.buffer.text)
        try:
            text = await run_in_terminal(lambda: edit(draft, self._settings.editor), in_executor=True)
            self.buffer.document = Document(text, len(text))
        except InputError as error:
            self.write(transcript.error(str(error)))
        finally:
            self._away = False
            self._changed.set()

    def clear_screen(self) -> None:
        self.app.renderer.clear()

    def _expanded(self, text: str) -> str:
        for sign, pasted in self._pastes.items():
            text = text.replace(sign, pasted)
        return text

    async def _answered(self, question: _Question) -> str:
        self._changed.set()
        try:
            return await question.answer
        finally:
            self._choice = self._reading = None
            self._changed.set()

    def _note_typing(self, _: Buffer) -> None:
        self._typed_at = asyncio.get_running_loop().time()

    # Drawing

    async def _draw_frames(self) -> None:
        while True:
            if self.desk.busy:
                # The spinner and the clock move even if nothing else does.
                try:
                    await asyncio.wait_for(self._changed.wait(), 0.1)
                except TimeoutError:
                    pass
            else:
                await self._changed.wait()
            self._changed.clear()
            if not self._away:
                self._frame()
            await asyncio.sleep(1 / FRAMES_PER_SECOND)

    def _frame(self) -> None:
        live = self.desk.live()
        text = self.canvas.text(live).rstrip("\n") if live is not None else ""
        size = self._output.get_size()
        lines = text.split("\n") if text else []
        rows = max(1, min(LIVE_ROWS, size.rows - INPUT_ROWS))
        lines = lines[-rows:]
        shrinks = len(lines) < self._live_rows
        self._live_text, self._live_rows = "\n".join(lines), len(lines)
        if self._pending:
            settled, self._pending = "".join(self._pending), []
            self._settle(settled)
        elif shrinks:
            self._settle("")
        self.app.invalidate()

    def _settle(self, text: str) -> None:
        """Wipes the drawn rows and writes settled text where they were; the rows are drawn again below it."""
        output = self._output
        if not self._syncing:
            output.write_raw(_SYNC_ON)
            self._syncing = True
        self.app.renderer.erase()
        # Not flushed here: the text and the rows below it reach the terminal in one piece.
        output.write_raw(text.replace("\n", "\r\n"))

    def _end_sync(self, _: object) -> None:
        if self._syncing:
            self._syncing = False
            self._output.write_raw(_SYNC_OFF)
            self._output.flush()

    def _flush_rest(self) -> None:
        rest, self._pending = "".join(self._pending), []
        if self._syncing:
            rest += _SYNC_OFF
        if rest:
            self._output.write_raw(rest.replace("\n", "\r\n"))
            self._output.flush()

    def _application(self) -> Application[None]:
        search = SearchToolbar(forward_search_prompt="search: ", backward_search_prompt="search back: ")
        control = BufferControl(buffer=self.buffer, search_buffer_control=search.control, preview_search=True)
        live = Window(
            FormattedTextControl(lambda: ANSI(self._live_text)),
            height=lambda: Dimension.exact(self._live_rows),
            wrap_lines=False,
        )
        question = Window(FormattedTextControl(self._question), dont_extend_height=True, wrap_lines=True)
        entry = Window(
            control,
            height=Dimension(min=1, max=INPUT_ROWS),
            dont_extend_height=True,
            wrap_lines=True,
            get_line_prefix=_line_prefix,
        )
        status = Window(FormattedTextControl(self._status), height=1, style="class:status")
        rows = HSplit(
            [
                ConditionalContainer(live, Condition(lambda: self._live_rows > 0)),
                ConditionalContainer(question, Condition(lambda: self.choosing or self.reading)),
                entry,
                ConditionalContainer(search, has_focus(search.search_buffer)),
                ConditionalContainer(CompletionsMenu(max_height=7, scroll_offset=1), has_completions),
                status,
            ],
            align=VerticalAlign.TOP,
        )
        app: Application[None] = Application(
            layout=Layout(rows, focused_element=entry),
            key_bindings=bindings(self),
            style=_style(self._settings),
            editing_mode=EditingMode.VI if self._settings.vi else EditingMode.EMACS,
            input=self._input,
            output=self._output,
            full_screen=False,
            erase_when_done=True,
            color_depth=ColorDepth.DEPTH_4_BIT if self._settings.color else ColorDepth.DEPTH_1_BIT,
            after_render=self._end_sync,
        )
        # Esc alone and Alt-keys share their first byte; a short wait tells them apart.
        app.timeoutlen = 0.15
        app.ttimeoutlen = 0.05
        return app

    def _status(self) -> AnyFormattedText:
        return [*self.desk.status(self._output.get_size().columns)]

    def _question(self) -> AnyFormattedText:
        question = self._choice or self._reading
        if question is None:
            return []
        if asyncio.get_running_loop().time() < question.not_before:
            return [("class:question", "…")]
        return [("class:question", question.shown)]


class _Question:
    """A question that waits for a key or a line."""

    def __init__(self, shown: str, keys: tuple[str, ...], escape: str, not_before: float = 0.0) -> None:
        self.shown = shown
        self.keys = keys
        self.escape = escape
        self.not_before = not_before
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def settle(self, answer: str) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)


def _line_prefix(line: int, wrapped: int) -> AnyFormattedText:
    return [("class:prompt", PROMPT if line == 0 and wrapped == 0 else " " * len(PROMPT))]


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
    return FileHistory(path)


def _style(settings: ReplSettings) -> Style:
    accent = "ansiblue" if settings.look == "light" else "ansicyan"
    return Style.from_dict(
        {
            "prompt": f"{accent} bold",
            "question": "bold",
            "status": "noreverse",
            "status.work": accent,
            "status.alert": "bold",
            "completion-menu": "bg:default fg:default",
            "completion-menu.completion": "bg:default fg:default",
            "completion-menu.completion.current": "reverse",
            "completion-menu.meta.completion": "bg:default fg:default",
            "completion-menu.meta.completion.current": "reverse",
            "scrollbar.background": "bg:default",
            "scrollbar.button": "reverse",
        }
    )
