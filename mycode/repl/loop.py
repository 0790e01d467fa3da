"""A conversation at the terminal, from the first draw to the last line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from mycode.repl.approval import TerminalApprover
from mycode.repl.opening import Opening
from mycode.repl.services import Conversation, ReplSettings, Services
from mycode.repl.talk import Repl, Screen


async def run(
    session: Conversation,
    *,
    settings: ReplSettings,
    services: Services,
    approver: TerminalApprover,
    opening: Opening | None = None,
    warm: Callable[[], None] | None = None,
    first_prompt: str = "",
) -> int:
    """Talks until the person leaves, then 0.

    `warm` runs on a thread once the prompt is drawn; `first_prompt` is sent at once.
    """
    repl = Repl(session, settings, services)
    screen = _screen(repl, settings)
    repl.attach(screen)
    approver.attach(screen)
    return await repl.run(opening, warm, first_prompt)


def _screen(repl: Repl, settings: ReplSettings) -> Screen:
    if settings.plain or not _can_draw():
        from mycode.repl.plain import PlainScreen

        return PlainScreen(repl)
    from prompt_toolkit.completion import ThreadedCompleter

    from mycode.repl.completion import ReplCompleter, workspace_files
    from mycode.repl.prompt import Prompt

    completer = ReplCompleter(repl.registry, repl, workspace_files(settings.workspace))
    return Prompt(repl, settings, ThreadedCompleter(completer))


def _can_draw() -> bool:
    """Whether there is a terminal at both ends that can move its cursor."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in {"dumb", "unknown", ""}
