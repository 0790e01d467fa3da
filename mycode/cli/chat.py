"""An interactive session: the prompt is drawn first, then everything else is loaded behind it."""

import asyncio
import signal
from types import FrameType
from typing import NoReturn

from mycode.cli.options import RunOptions
from mycode.core.errors import InputError
from mycode.repl.opening import open_prompt


def chat(options: RunOptions) -> int:
    """Talks until the person leaves; returns the exit code."""
    if options.resume == "":
        options = _picked(options)
    # From the first change of the terminal on, every ending gives it back; the conversation itself takes over later.
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, _leave)
    opening = None if options.plain else open_prompt()
    try:
        from mycode.cli.chat_services import talk

        return asyncio.run(talk(options, opening))
    finally:
        if opening is not None:
            opening.close()


def _leave(number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _picked(options: RunOptions) -> RunOptions:
    """Lets the person pick the session to go on with, by number."""
    import os

    import typer
    from msgspec import structs

    from mycode.cli.looking import line_of
    from mycode.cli.run import Run

    run = Run(options, os.environ)
    try:
        found = run.open_store().sessions(limit=20)
    finally:
        run.close()
    if not found:
        raise InputError("There is no session to go on with. Start one with `mycode`.")
    for number, info in enumerate(found, 1):
        typer.echo(f"{number:3}. {line_of(info)}")
    number = typer.prompt("Number", default=1, type=int)
    if not 1 <= number <= len(found):
        raise InputError(f"There is no number {number} in this list.")
    return structs.replace(options, resume=found[number - 1].id)
