"""A conversation at the terminal, from the first draw to the last line."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mycode.repl.approval import TerminalApprover
from mycode.repl.grace import Grace
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
    grace: Grace | None = None,
) -> int:
    """Talks until the person leaves, then 0; where SIGTERM or SIGHUP ends it, 128 + its number, as a shell would say.

    `warm` runs on a thread once the prompt is drawn; `first_prompt` is sent at once.
    """
    repl = Repl(session, settings, services, grace)
    screen = _screen(repl, settings)
    repl.attach(screen)
    approver.attach(screen)
    with _leaving_on_signals(repl.leave) as came:
        code = await repl.run(opening, warm, first_prompt)
    return 128 + came[0] if came else code


@contextmanager
def _leaving_on_signals(leave: Callable[[], None]) -> Iterator[list[int]]:
    """Gives the signals that came."""
    came: list[int] = []

    def stop(number: int) -> None:
        came.append(number)
        leave()

    loop = asyncio.get_running_loop()
    endings = (signal.SIGTERM, signal.SIGHUP)
    for ending in endings:
        loop.add_signal_handler(ending, stop, int(ending))
    try:
        yield came
    finally:
        for ending in endings:
            loop.remove_signal_handler(ending)


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
