"""The tool that puts a question to the person."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from mycode.core.tools import Action, Approver, Question, Report, TextDisplay, ToolOutput


class AskUserArgs(Struct, frozen=True, forbid_unknown_fields=True):
    question: Annotated[str, Meta(min_length=1)]
    options: tuple[str, ...] = ()


class AskUser:
    """`ask_user`: the person's answer, word for word. `CannotAsk` passes where nobody is there."""

    name = "ask_user"
    description = "Ask the person when a decision is theirs; options are optional, they may answer in their own words."
    Args = AskUserArgs

    def __init__(self, approver: Approver) -> None:
        self._approver = approver

    def plan(self, args: AskUserArgs) -> Action:
        return Action(self.name, "none", f"{self.name} {args.question.splitlines()[0]}")

    async def run(self, args: AskUserArgs, _report: Report) -> ToolOutput:
        answer = await self._approver.answer(Question(args.question, args.options))
        text = answer.strip() or "(the person gave no answer)"
        return ToolOutput(text, TextDisplay(args.question, text))
