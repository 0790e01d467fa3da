"""One prompt from the shell: standard input and `-p` joined, the answer on standard output."""

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path

from mycode.cli.options import RunOptions
from mycode.cli.run import Run
from mycode.cli.wiring import Workplace
from mycode.core.errors import InputError
from mycode.core.visible import plain
from mycode.headless.approver import NobodyToAsk
from mycode.headless.envelope import Opening, Outcome
from mycode.headless.printers import make_printer, print_turn, utc_now

STDIN_CAP = 10 * 1024 * 1024
PATIENCE = 2.0
"""Seconds of reading standard input after which the person is told that it is being read."""
_WAITS = "mycode: Waiting for the end of standard input. If there is nothing to pipe in, add `< /dev/null`.\n"


def one_shot(options: RunOptions) -> int:
    """Runs one turn and returns its exit code. Ctrl-C stops the turn, keeps what was said, and gives 130."""
    prompt = read_prompt(options.prompt)
    if options.output_file is not None:
        _check_writable(options.output_file)
    run = Run(options, os.environ)
    for warning in run.warnings:
        sys.stderr.write(f"mycode: {plain(warning)}\n")
    try:
        return asyncio.run(_one_turn(run, prompt))
    finally:
        run.close()


def read_prompt(said: str | None) -> str:
    """Piped input first, then what was said. Raises InputError when there is neither, or more than 10 MB.

    A pipe that nobody closes is read for ever; standard error tells that after a while.
    """
    piped = ""
    if sys.stdin is not None and not sys.stdin.isatty():  # None where the shell closed it: `<&-`
        waiting = threading.Timer(PATIENCE, sys.stderr.write, [_WAITS])
        waiting.daemon = True
        waiting.start()
        try:
            data = sys.stdin.buffer.read(STDIN_CAP + 1)
        finally:
            waiting.cancel()
        if len(data) > STDIN_CAP:
            raise InputError("Standard input is larger than 10 MB. Name the file in the prompt instead.")
        piped = data.decode("utf-8", errors="replace").strip("\n")
    prompt = "\n\n".join(part for part in (piped, (said or "").strip()) if part.strip())
    if not prompt:
        raise InputError('There is no prompt. Give one: mycode -p "...", or pipe it in.')
    return prompt


async def _one_turn(run: Run, prompt: str) -> int:
    options = run.options
    place = Workplace(run, NobodyToAsk())
    task = asyncio.current_task()
    assert task is not None
    leaving = False

    def stop(number: int) -> None:
        # Once is enough: a second one would cut short the cleaning up after the first.
        if not leaving and not task.cancelling():
            task.cancel(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    try:
        session = place.session
        opening = Opening(
            session_id=session.id,
            cwd=str(run.cwd),
            model=place.model.info.name,
            tools=place.tool_names,
            permission_mode=place.gate.mode,
        )
        printer = make_printer(
            options.output_format,
            out=sys.stdout,
            err=sys.stderr,
            opening=opening,
            partial=options.partial,
            clock=utc_now,
        )
        outcome = await print_turn(session.prompt(prompt), printer)
        if options.output_file is not None:
            _write(options.output_file, outcome)
        return outcome.exit_code
    except asyncio.CancelledError as stopped:
        number = stopped.args[0] if stopped.args else signal.SIGINT
        return 128 + int(number)
    finally:
        leaving = True
        await place.aclose()


def _check_writable(file: Path) -> None:
    """Before the model is paid for an answer that has nowhere to go; the file itself is not touched yet."""
    place = file if file.exists() else file.parent
    if file.is_dir() or not os.access(place, os.W_OK):
        why = (
            "it is a folder" if file.is_dir() else "there is no such folder" if not place.exists() else "not permitted"
        )
        raise InputError(f"{file} cannot be written: {why}. Nothing was asked; name another file for -o.")


def _write(file: Path, outcome: Outcome) -> None:
    try:
        file.write_text(outcome.text + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror or error}.") from error
