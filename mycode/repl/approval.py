"""Asks the person before a tool call runs, and puts the model's questions to them.

What is asked for is shown whole and revealed: nothing a model or a file writes can hide a part of it, draw a false
question, or answer one. Only keys pressed after the question was drawn count.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from rich.console import RenderableType

from mycode.core.errors import CannotAsk
from mycode.core.tools import Approval, ApprovalRequest, Question
from mycode.core.visible import one_line, revealed
from mycode.render.panels.approval import approval_panel, question_panel
from mycode.render.screen import Canvas


class Choice(Protocol):
    """Somewhere a person can be asked: the drawn screen or the plain one."""

    @property
    def canvas(self) -> Canvas: ...

    def write(self, *things: RenderableType) -> None: ...

    async def choose(self, choices: dict[str, str], *, escape: str) -> str:
        """The key that was pressed, one of `choices`; Esc counts as `escape`."""
        ...

    async def read(self, label: str) -> str:
        """A line that the person types to answer; empty when they escape."""
        ...


class TerminalApprover:
    """The `Approver` of the REPL. It is made before there is a screen; `attach` gives it one."""

    def __init__(self) -> None:
        self._screen: Choice | None = None
        self._one_at_a_time = asyncio.Lock()

    def attach(self, screen: Choice) -> None:
        self._screen = screen

    async def decide(self, request: ApprovalRequest) -> Approval:
        """`once`, `always` for the rule that is offered, or `no` with the person's comment."""
        screen = self._need_screen()
        rule = request.verdict.offer
        async with self._one_at_a_time:
            screen.write(approval_panel(request, plain_text=screen.canvas.plain))
            choices = {"y": "once", "n": "no, say why", "esc": "no"}
            if rule is not None:
                choices = {"y": "once", "a": f"always: {one_line(revealed(rule), 60)}", "n": "no, say why", "esc": "no"}
            match await screen.choose(choices, escape="esc"):
                case "y":
                    return Approval("once")
                case "a":
                    return Approval("always", rule=rule)
                case "n":
                    return Approval("no", comment=(await screen.read("What should the model do instead?")).strip())
            return Approval("no")

    async def answer(self, question: Question) -> str:
        """What the person types; a number picks the option of that number."""
        screen = self._need_screen()
        async with self._one_at_a_time:
            screen.write(question_panel(question, plain_text=screen.canvas.plain))
            label = "A number, or your own words" if question.options else "Your answer"
            reply = (await screen.read(label)).strip()
        if reply.isdecimal() and 1 <= int(reply) <= len(question.options):
            return question.options[int(reply) - 1]
        return reply

    def _need_screen(self) -> Choice:
        if self._screen is None:
            message = "A question had to be put before the screen was there."
            raise CannotAsk(message)
        return self._screen
