"""Where things stand on the bottom rows of the terminal, and how they look there."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, has_completions, has_focus
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
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
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from mycode.render.theme import Look
from mycode.repl.frames import Frames
from mycode.repl.opening import PROMPT
from mycode.repl.questions import Questions

INPUT_ROWS = 8
MENU_ROWS = 7


def layout(buffer: Buffer, frames: Frames, questions: Questions, status: Callable[[], AnyFormattedText]) -> Layout:
    """From the top: what still changes, the open question, the input, search, completions, the status line.

    The completions have rows of their own: floating, they would cover the status line of a short screen.
    """
    search = SearchToolbar(forward_search_prompt="search: ", backward_search_prompt="search back: ")
    live = Window(
        FormattedTextControl(lambda: ANSI(frames.text)),
        height=lambda: Dimension.exact(frames.rows),
        wrap_lines=False,
    )
    question = Window(
        FormattedTextControl(lambda: [("class:question", questions.shown)]), dont_extend_height=True, wrap_lines=True
    )
    entry = Window(
        BufferControl(buffer=buffer, search_buffer_control=search.control, preview_search=True),
        height=Dimension(min=1, max=INPUT_ROWS),
        dont_extend_height=True,
        wrap_lines=True,
        get_line_prefix=_line_prefix,
    )
    rows = HSplit(
        [
            ConditionalContainer(live, Condition(lambda: frames.rows > 0)),
            ConditionalContainer(question, Condition(lambda: questions.open is not None)),
            entry,
            ConditionalContainer(search, has_focus(search.search_buffer)),
            ConditionalContainer(CompletionsMenu(max_height=MENU_ROWS, scroll_offset=1), has_completions),
            Window(FormattedTextControl(status), height=1, style="class:status"),
        ],
        align=VerticalAlign.TOP,
    )
    return Layout(rows, focused_element=entry)


def style(look: Look) -> Style:
    """The same sixteen colours as everything that is rendered."""
    accent = "ansiblue" if look == "light" else "ansicyan"
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


def _line_prefix(line: int, wrapped: int) -> AnyFormattedText:
    return [("class:prompt", PROMPT if line == 0 and wrapped == 0 else " " * len(PROMPT))]
