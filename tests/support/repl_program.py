"""A tiny program for terminal stories: the real REPL over a session that plays a script."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

from mycode.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    Event,
    MessageAdded,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from mycode.core.messages import AssistantMessage, ToolCall, ToolResult
from mycode.core.tools import Action, ApprovalRequest, CommandDisplay, Verdict
from mycode.repl.approval import TerminalApprover
from mycode.repl.loop import run
from mycode.repl.opening import open_prompt
from mycode.repl.services import ReplSettings
from tests.support.scripted_session import ScriptedServices, ScriptedSession, forever

CALL = ToolCall("c1", "execute_bash", "{}")
ANSWER = "# Plan\n\nFirst *this*.\n\n- one\n- two\n\n```python\nprint('hello')\n```\n\nThat is all.\n"


def script(approver: TerminalApprover):  # type: ignore[no-untyped-def]  # a closure over the approver
    async def play(session: ScriptedSession, text: str) -> AsyncGenerator[Event]:
        if "stream" in text:
            for start in range(0, len(ANSWER), 5):
                yield TextDelta(ANSWER[start : start + 5])
                await asyncio.sleep(0.005)
            yield MessageAdded(session.add(AssistantMessage(ANSWER)))
        elif "tool" in text:
            command = "rm -rf build \x1b[2K\x1b[1A && echo harmless"
            action = Action("execute_bash", "execute", "execute_bash rm -rf build", command=command)
            request = ApprovalRequest("c1", action, Verdict("ask", "it changes files", offer="Bash(rm -rf build)"))
            yield ApprovalAsked(request)
            approval = await approver.decide(request)
            yield ApprovalGiven("c1", approval)
            yield ToolStarted(CALL, "execute_bash rm -rf build")
            yield ToolProgress("c1", "removing\n")
            if "slow" in text:
                await forever()
            shown = CommandDisplay(command, "removed\n" * 20, 0, 0.1)
            yield ToolFinished(CALL, ToolResult("c1", approval.answer, approval.answer == "no"), 0.1, shown)
            said = f"answer was {approval.answer} {approval.rule or ''} {approval.comment}".strip()
            yield MessageAdded(session.add(AssistantMessage(said)))
        elif "wait" in text:
            yield TextDelta("working on it\n\n")
            while not Path("go").exists():
                await asyncio.sleep(0.01)
            yield MessageAdded(session.add(AssistantMessage("working on it\n\ndone waiting")))
        else:
            yield MessageAdded(session.add(AssistantMessage(f"You said: {text}")))

    return play


class Again(ScriptedSession):
    """Plays the same script at every prompt."""

    def __init__(self, approver: TerminalApprover) -> None:
        super().__init__()
        self._script = script(approver)

    async def prompt(self, text, images=()):  # type: ignore[no-untyped-def]  # as the base class has it
        self._scripts = [self._script]
        async for event in super().prompt(text, images):
            yield event


def main() -> int:
    plain = "--plain" in sys.argv
    opening = None if plain else open_prompt()
    approver = TerminalApprover()
    settings = ReplSettings(
        plain=plain,
        color="--color" in sys.argv,
        vi="--vi" in sys.argv,
        workspace=Path(),
        history_file=Path("history") if "--history" in sys.argv else None,
        notice="a scripted session",
    )
    code = asyncio.run(
        run(Again(approver), settings=settings, services=ScriptedServices(), approver=approver, opening=opening)
    )
    print("left")
    return code


if __name__ == "__main__":
    sys.exit(main())
