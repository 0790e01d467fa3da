"""What each key does on the input line; editing keys beyond these are those of Emacs or vi."""

from __future__ import annotations

from typing import Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, has_focus, vi_insert_mode, vi_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from mycode.repl.desk import Desk
from mycode.repl.questions import Questions

_TWICE_SECONDS = 2.0


class InputLine(Protocol):
    """What keys do to the input line and the question above it (`prompt.Prompt`)."""

    desk: Desk
    buffer: Buffer

    questions: Questions

    def enter(self) -> None: ...

    def paste(self, text: str) -> None: ...

    def open_editor(self) -> None: ...

    def clear_screen(self) -> None: ...

    def suspend(self) -> None: ...


def bindings(prompt: InputLine) -> KeyBindings:
    """The bindings over the state of this prompt."""
    keys = KeyBindings()
    desk, buffer, questions = prompt.desk, prompt.buffer, prompt.questions
    typing = has_focus(buffer)
    choosing = Condition(lambda: questions.choosing)
    asked = Condition(lambda: questions.open is not None)
    empty = Condition(lambda: not buffer.text)
    busy = Condition(lambda: desk.busy)
    queued = Condition(lambda: desk.queued > 0)
    last_interrupt = [0.0]
    tab_waits = [""]

    @keys.add("enter", filter=typing & ~choosing)
    def _send(_: KeyPressEvent) -> None:
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None
            return
        prompt.enter()

    @keys.add("c-j", filter=typing & ~choosing)
    @keys.add("escape", "enter", filter=typing & ~choosing)
    def _new_line(_: KeyPressEvent) -> None:
        buffer.newline(copy_margin=False)

    @keys.add("escape", filter=asked)
    def _escape_question(_: KeyPressEvent) -> None:
        questions.escape()

    @keys.add("escape", filter=typing & ~asked & busy & ~(vi_mode & vi_insert_mode))
    def _interrupt(_: KeyPressEvent) -> None:
        desk.interrupt()

    @keys.add("escape", "escape", filter=typing & ~asked)
    def _clear_draft(_: KeyPressEvent) -> None:
        if buffer.text:
            buffer.reset()
        elif desk.busy:
            desk.interrupt()
        else:
            desk.rewind()

    @keys.add("c-c")
    @keys.add(Keys.SIGINT)
    def _stop(event: KeyPressEvent) -> None:
        now = event.app.loop.time() if event.app.loop else 0.0
        desk.hint = ""
        if desk.interrupt():
            return
        if buffer.text:
            buffer.reset()
        elif now - last_interrupt[0] < _TWICE_SECONDS:
            desk.leave()
        else:
            desk.hint = "Ctrl-C again leaves"
            last_interrupt[0] = now

    @keys.add("c-d", filter=empty & ~asked)
    def _leave(_: KeyPressEvent) -> None:
        desk.leave()

    @keys.add("up", filter=typing & empty & queued & ~asked)
    def _take_back(_: KeyPressEvent) -> None:
        buffer.insert_text(desk.take_back())

    @keys.add("s-tab")
    def _next_mode(_: KeyPressEvent) -> None:
        if buffer.complete_state is not None:
            buffer.complete_previous()
        else:
            desk.next_mode()

    @keys.add("tab", filter=typing & ~asked)
    def _complete(_: KeyPressEvent) -> None:
        state = buffer.complete_state
        if state is None:
            # Completions are on their way from their thread; this key counts when they are there.
            tab_waits[0] = buffer.text
            buffer.start_completion(select_first=False, insert_common_part=True)
        elif len(state.completions) == 1:
            buffer.apply_completion(state.completions[0])
        else:
            buffer.complete_next()

    def _completed(_: Buffer) -> None:
        state = buffer.complete_state
        if state is not None and len(state.completions) == 1 and tab_waits[0] == buffer.text:
            buffer.apply_completion(state.completions[0])

    buffer.on_completions_changed += _completed

    @keys.add("c-o", filter=~asked)
    def _expand(_: KeyPressEvent) -> None:
        desk.expand_last()

    @keys.add("c-t", filter=~asked)
    def _todo(_: KeyPressEvent) -> None:
        desk.show_todo()

    @keys.add("c-g", filter=typing & ~choosing)
    @keys.add("c-x", "c-e", filter=typing & ~choosing)
    def _editor(_: KeyPressEvent) -> None:
        prompt.open_editor()

    @keys.add("c-l")
    def _clear_screen(_: KeyPressEvent) -> None:
        prompt.clear_screen()

    @keys.add("c-z")
    def _suspend(_: KeyPressEvent) -> None:
        prompt.suspend()

    @keys.add(Keys.BracketedPaste, filter=~choosing)
    def _paste(event: KeyPressEvent) -> None:
        prompt.paste(event.data)

    @keys.add(Keys.BracketedPaste, filter=choosing)
    def _no_paste(_: KeyPressEvent) -> None:
        """A paste is no answer."""

    @keys.add("?", filter=typing & empty & ~asked)
    def _help(_: KeyPressEvent) -> None:
        desk.help()

    @keys.add(Keys.Any, filter=choosing)
    def _answer(event: KeyPressEvent) -> None:
        questions.key(event.data)

    @keys.add("enter", filter=choosing)
    def _no_default(_: KeyPressEvent) -> None:
        """Enter chooses nothing: a question is answered by its own keys."""

    return keys
