"""Every key of the input line, by a pipe instead of a keyboard and without a terminal."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prompt_toolkit.completion import DummyCompleter
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import RenderableType

from mycode.repl.prompt import Prompt
from mycode.repl.services import ReplSettings

ESC, UP, SHIFT_TAB = "\x1b", "\x1b[A", "\x1b[Z"


class FakeDesk:
    """Keeps what the screen asks for."""

    def __init__(self) -> None:
        self.busy = False
        self.hint = ""
        self.queue: list[str] = []
        self.asked: list[str] = []
        self.prompt: Prompt | None = None

    @property
    def queued(self) -> int:
        return len(self.queue)

    def submit(self, text: str) -> None:
        self.asked.append(f"submit {text}")

    def interrupt(self) -> bool:
        if self.busy:
            self.asked.append("interrupt")
        return self.busy

    def take_back(self) -> str:
        return self.queue.pop()

    def next_mode(self) -> None:
        self.asked.append("mode")

    def expand_last(self) -> None:
        self.asked.append("expand")

    def show_todo(self) -> None:
        self.asked.append("todo")

    def help(self) -> None:
        self.asked.append("help")

    def rewind(self) -> None:
        self.asked.append("rewind")

    def leave(self) -> None:
        self.asked.append("leave")
        assert self.prompt is not None
        self.prompt.leave()

    def live(self) -> RenderableType | None:
        return None

    def status(self, width: int, *, asking: bool) -> list[tuple[str, str]]:
        return [("", "status")]


class Typist:
    """Types into a running prompt and waits until the keys have had their effect."""

    def __init__(self, desk: FakeDesk, prompt: Prompt, keyboard: PipeInput) -> None:
        self.desk = desk
        self.prompt = prompt
        self._keyboard = keyboard

    def type(self, *keys: str) -> None:
        for key in keys:
            self._keyboard.send_text(key)

    async def until(self, seen: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not seen():
                await asyncio.sleep(0)

    async def sent(self, *keys: str) -> list[str]:
        """All that was asked of the desk once these keys have made it do something."""
        before = len(self.desk.asked)
        self.type(*keys)
        await self.until(lambda: len(self.desk.asked) > before)
        return self.desk.asked

    async def draft(self, text: str) -> None:
        await self.until(lambda: self.prompt.buffer.text == text)


@asynccontextmanager
async def prompting(settings: ReplSettings | None = None, desk: FakeDesk | None = None) -> AsyncIterator[Typist]:
    desk = desk or FakeDesk()
    with create_pipe_input() as keyboard:
        prompt = Prompt(desk, settings or ReplSettings(), DummyCompleter(), source=keyboard, target=DummyOutput())
        desk.prompt = prompt
        started = asyncio.Event()
        task = asyncio.create_task(prompt.run(first_draw=started.set))
        await started.wait()
        try:
            yield Typist(desk, prompt, keyboard)
        finally:
            prompt.leave()
            await task


async def test_enter_sends_what_was_typed() -> None:
    async with prompting() as typist:
        assert await typist.sent("fix the parser\r") == ["submit fix the parser"]
        assert typist.prompt.buffer.text == ""


async def test_enter_on_an_empty_line_sends_nothing() -> None:
    async with prompting() as typist:
        assert await typist.sent("\r", "  \r", "x\r") == ["submit   x"]


@pytest.mark.parametrize("newline", ["\n", "\x1b\r", "\\\r"])
async def test_a_draft_may_have_several_lines(newline: str) -> None:
    async with prompting() as typist:
        assert await typist.sent(f"one{newline}two\r") == ["submit one\ntwo"]


async def test_escape_interrupts_and_keeps_the_draft() -> None:
    async with prompting() as typist:
        typist.desk.busy = True
        assert await typist.sent("half", ESC) == ["interrupt"]
        assert typist.prompt.buffer.text == "half"


async def test_escape_twice_clears_the_draft() -> None:
    async with prompting() as typist:
        typist.type("half a thought")
        await typist.draft("half a thought")
        typist.type(ESC + ESC)
        await typist.draft("")
        assert typist.desk.asked == []


async def test_escape_twice_on_an_empty_line_goes_back() -> None:
    async with prompting() as typist:
        assert await typist.sent(ESC + ESC) == ["rewind"]


async def test_control_c_clears_then_hints_then_leaves() -> None:
    async with prompting() as typist:
        typist.type("draft")
        await typist.draft("draft")
        typist.type("\x03")
        await typist.draft("")
        typist.type("\x03")
        await typist.until(lambda: typist.desk.hint == "Ctrl-C again leaves")
        assert await typist.sent("\x03") == ["leave"]


async def test_control_c_interrupts_what_runs() -> None:
    async with prompting() as typist:
        typist.desk.busy = True
        assert await typist.sent("\x03") == ["interrupt"]


async def test_control_d_leaves_from_an_empty_line_only() -> None:
    async with prompting() as typist:
        typist.type("x\x04")
        await typist.draft("x")
        assert await typist.sent("\x7f\x04") == ["leave"]


async def test_up_takes_the_queued_prompt_back() -> None:
    async with prompting() as typist:
        typist.desk.queue = ["first", "second"]
        typist.type(UP)
        await typist.draft("second")
        assert typist.desk.queue == ["first"]


async def test_up_recalls_earlier_prompts_and_search_finds_them(tmp_path: Path) -> None:
    kept = tmp_path / "history"
    async with prompting(ReplSettings(history_file=kept)) as typist:
        assert await typist.sent("fix the parser\r") == ["submit fix the parser"]
        assert await typist.sent("run tests\r") == ["submit fix the parser", "submit run tests"]
        await typist.until(lambda: len(typist.prompt.buffer._working_lines) == 3)
        typist.type(UP)
        await typist.draft("run tests")
    assert kept.stat().st_mode & 0o777 == 0o600

    async with prompting(ReplSettings(history_file=kept)) as typist:
        await typist.until(lambda: len(typist.prompt.buffer._working_lines) == 3)
        typist.type("\x12", "pars", "\r")
        await typist.draft("fix the parser")


async def test_control_keys_reach_the_desk() -> None:
    async with prompting() as typist:
        typist.type(SHIFT_TAB, "\x0f", "\x14", "?")
        await typist.until(lambda: typist.desk.asked == ["mode", "expand", "todo", "help"])
        assert typist.prompt.buffer.text == ""


async def test_a_question_mark_in_a_draft_is_a_question_mark() -> None:
    async with prompting() as typist:
        assert await typist.sent("why?\r") == ["submit why?"]


async def test_a_short_paste_goes_into_the_draft_and_is_not_sent() -> None:
    async with prompting() as typist:
        typist.type("\x1b[200~one\r\ntwo\r\n\x1b[201~")
        await typist.draft("one\ntwo\n")
        assert typist.desk.asked == []


async def test_a_large_paste_is_shown_small_and_sent_whole() -> None:
    text = "\n".join(f"line {number}" for number in range(120))
    async with prompting() as typist:
        typist.type(f"look: \x1b[200~{text}\x1b[201~")
        await typist.draft("look: [pasted text 1: 120 lines, 969 characters]")
        assert await typist.sent("\r") == [f"submit look: {text}"]


async def test_the_draft_can_be_written_in_an_editor(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "%s, edited\\n" "$(cat "$1")" > "$1"\n')
    editor.chmod(0o755)
    async with prompting(ReplSettings(editor=str(editor))) as typist:
        typist.type("draft", "\x07")
        await typist.draft("draft, edited")


async def test_an_editor_that_is_not_there_leaves_the_draft() -> None:
    async with prompting(ReplSettings(editor="/no/such/editor")) as typist:
        assert await typist.sent("draft", "\x18\x05", "\r") == ["submit draft"]


async def test_an_editor_for_which_there_is_no_room_leaves_the_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/no/such/folder")
    async with prompting(ReplSettings(editor="true")) as typist:
        typist.type("draft", "\x07")
        await typist.until(lambda: "cannot be handed to an editor" in "".join(typist.prompt.frames._settled))
        assert typist.prompt.buffer.text == "draft"


async def test_vi_keys_by_setting() -> None:
    async with prompting(ReplSettings(vi=True)) as typist:
        typist.type("hello world", ESC, "0dw")
        await typist.draft("world")


async def test_a_question_is_answered_by_its_keys_only() -> None:
    async with prompting() as typist:
        asked = asyncio.create_task(typist.prompt.choose({"y": "once", "n": "no", "esc": "no"}, escape="esc"))
        await typist.until(lambda: typist.prompt.questions.choosing)
        typist.type("q", "\r", "\x1b[200~y\x1b[201~", "n")
        assert await asked == "n"
        assert typist.desk.asked == []
        assert typist.prompt.buffer.text == ""


async def test_escape_answers_a_question() -> None:
    async with prompting() as typist:
        asked = asyncio.create_task(typist.prompt.choose({"y": "once", "esc": "no"}, escape="esc"))
        await typist.until(lambda: typist.prompt.questions.choosing)
        typist.type(ESC)
        assert await asked == "esc"


async def test_keys_that_were_on_their_way_are_no_answer() -> None:
    async with prompting() as typist:
        typist.type("rubbish")
        await typist.draft("rubbish")
        asked = asyncio.create_task(typist.prompt.choose({"y": "once", "n": "no"}, escape="n"))
        await typist.until(lambda: typist.prompt.questions.choosing)
        typist.type("y")
        await asyncio.sleep(0)
        typist.type(ESC)
        assert await asked == "n"
        assert typist.prompt.buffer.text == "rubbish"


async def test_an_answer_in_words_leaves_the_draft_alone() -> None:
    async with prompting() as typist:
        typist.type("my draft")
        await typist.draft("my draft")
        asked = asyncio.create_task(typist.prompt.read("Why?"))
        await typist.until(lambda: typist.prompt.questions.reading)
        typist.type("because\r")
        assert await asked == "because"
        await typist.draft("my draft")
        assert typist.desk.asked == []


async def test_a_cancelled_question_gives_the_keys_back() -> None:
    async with prompting() as typist:
        asked = asyncio.create_task(typist.prompt.choose({"y": "once"}, escape="y"))
        await typist.until(lambda: typist.prompt.questions.choosing)
        asked.cancel()
        await typist.until(lambda: not typist.prompt.questions.choosing)
        assert await typist.sent("y\r") == ["submit y"]
