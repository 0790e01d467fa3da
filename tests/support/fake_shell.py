"""Slash commands without a screen: a scripted session, answers given beforehand, and what was written as text."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from rich.console import RenderableType

from mycode.core.events import Event, ToolFinished
from mycode.render import transcript
from mycode.render.screen import Canvas
from mycode.repl.commands.registry import standard
from mycode.repl.services import ReplSettings
from tests.support.scripted_session import ScriptedServices, ScriptedSession


class FakeShell:
    """Runs commands over a scripted session and keeps what they write."""

    def __init__(self, *answers: str) -> None:
        self.registry = standard()
        self.session = ScriptedSession()
        self.services = ScriptedServices()
        self.settings = ReplSettings()
        self.canvas = Canvas(200, plain=True)
        self.last_tool: tuple[ToolFinished, str] | None = None
        self.shown = ""
        self.submitted: list[str] = []
        self.left = False
        self.drafted = ""
        self.fresh = 0
        self._answers = list(answers)

    def write(self, *things: RenderableType) -> None:
        self.shown += self.canvas.text(*things)

    def say(self, text: str) -> None:
        self.write(transcript.notice(text, plain_text=True))

    async def follow(self, events: AsyncGenerator[Event]) -> list[Event]:
        async with aclosing(events):
            return [event async for event in events]

    async def read(self, label: str) -> str:
        return self._answers.pop(0)

    async def choose(self, choices: dict[str, str], *, escape: str) -> str:
        answer = self._answers.pop(0)
        return answer if answer in choices else escape

    def submit(self, text: str) -> None:
        self.submitted.append(text)

    def draft(self, text: str) -> None:
        self.drafted = text

    def reopened(self) -> None:
        self.fresh += 1

    def leave(self) -> None:
        self.left = True

    async def run(self, line: str) -> str:
        self.shown = ""
        await standard().run(line, self)
        return self.shown
