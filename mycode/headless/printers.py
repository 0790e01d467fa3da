"""How a turn is told to a program: plain text, one JSON object, or one JSON line per event.

The answer alone goes to standard output, everything else to standard error. The JSON lines follow the envelope that
wrappers of other agents already parse (`docs/events.md`), with an ISO `timestamp` on each.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Literal, Protocol, TextIO

import msgspec

from mycode.core.errors import MycodeError
from mycode.core.events import (
    ContextMasked,
    Event,
    MessageAdded,
    Retrying,
    SummaryFinished,
    SummaryStarted,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    Warned,
)
from mycode.core.messages import AssistantMessage
from mycode.core.summaries import MaskEpoch, SummaryRecord, cause
from mycode.core.usage import NO_USAGE
from mycode.core.visible import in_json, plain
from mycode.headless.envelope import Line, Opening, Outcome, denials, lines, result

Format = Literal["text", "json", "stream-json"]
INTERRUPTED = "Interrupted; what was said so far is kept (mycode -c goes on)."


class Printer(Protocol):
    """Tells events as they come, and the end once."""

    def show(self, event: Event) -> None: ...

    def close(self, outcome: Outcome, ended: TurnEnded | None) -> None: ...


async def print_turn(events: AsyncIterator[Event], printer: Printer) -> Outcome:
    """Feeds one turn to a printer. An error that escapes the turn ends it like any other failure.

    A cancellation is told as an ending, too (its argument is the number of the signal), and goes on.
    """
    text, ended, outcome = "", None, None
    try:
        async with aclosing(events) as stream:  # type: ignore[type-var]  # turns are generators
            async for event in stream:
                match event:
                    case MessageAdded(entry=entry) if isinstance(entry.body, AssistantMessage):
                        text = entry.body.text or text
                    case TurnEnded():
                        ended = event
                        outcome = Outcome(text, event.exit_code, event.error)
                    case _:
                        pass
                printer.show(event)
    except MycodeError as error:
        outcome = Outcome(text, error.exit_code, str(error))
    except asyncio.CancelledError as stopped:
        number = int(stopped.args[0]) if stopped.args else int(signal.SIGINT)
        printer.close(Outcome("", 128 + number, INTERRUPTED), TurnEnded("interrupted", NO_USAGE, 0))
        raise
    outcome = outcome or Outcome(text, 1, "The turn ended without saying how.")
    printer.close(outcome, ended)
    return outcome


def make_printer(
    form: Format, *, out: TextIO, err: TextIO, opening: Opening, partial: bool = False, clock: Callable[[], datetime]
) -> Printer:
    """The printer of a format; `partial` adds the deltas to stream-json."""
    match form:
        case "text":
            return TextPrinter(out, err)
        case "json":
            return JsonPrinter(out, err, opening)
        case "stream-json":
            return StreamPrinter(out, opening, partial=partial, clock=clock)


def utc_now() -> datetime:
    return datetime.now(UTC)


class TextPrinter:
    """The last answer on standard output; what is being done as one line each on standard error."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = out
        self._err = err

    def show(self, event: Event) -> None:
        line = _progress(event)
        if line:
            print(plain(line), file=self._err, flush=True)

    def close(self, outcome: Outcome, ended: TurnEnded | None) -> None:  # noqa: ARG002  the protocol's shape
        if outcome.text:
            print(plain(outcome.text), file=self._out, flush=True)
        if outcome.error:
            print(f"mycode: {plain(outcome.error)}", file=self._err, flush=True)


class JsonPrinter:
    """One object at the end, of the same shape as the last line of stream-json."""

    def __init__(self, out: TextIO, err: TextIO, opening: Opening) -> None:
        self._out = out
        self._progress = TextPrinter(out, err)
        self._opening = opening
        self._denials: list[Line] = []

    def show(self, event: Event) -> None:
        self._denials.extend(denials(event))
        self._progress.show(event)

    def close(self, outcome: Outcome, ended: TurnEnded | None) -> None:
        _write(self._out, result(outcome, ended, self._opening, self._denials))


class StreamPrinter:
    """One line per event that a program may want."""

    def __init__(
        self, out: TextIO, opening: Opening, *, partial: bool = False, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self._out = out
        self._opening = opening
        self._partial = partial
        self._clock = clock
        self._denials: list[Line] = []
        self._say(
            {
                "type": "system",
                "subtype": "init",
                "cwd": opening.cwd,
                "model": opening.model,
                "tools": list(opening.tools),
                "permissionMode": opening.permission_mode,
            }
        )

    def show(self, event: Event) -> None:
        self._denials.extend(denials(event))
        for line in lines(event, partial=self._partial):
            self._say(line)

    def close(self, outcome: Outcome, ended: TurnEnded | None) -> None:
        self._say(result(outcome, ended, self._opening, self._denials))

    def _say(self, line: Line) -> None:
        stamp = self._clock().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        _write(self._out, {**line, "session_id": self._opening.session_id, "timestamp": stamp})


def _progress(event: Event) -> str:
    match event:
        case ToolStarted(title=title):
            return f"· {title}"
        case ToolFinished(call=call, result=result) if result.is_error:
            return f"  {call.name}: {(result.text.splitlines() or [''])[0]}"
        case SummaryStarted(messages=messages, trigger=trigger):
            why = cause(trigger.reason)
            return f"· summarizing {messages} messages ({why and f'{why}; '}context {trigger.ratio:.0%} full)"
        case SummaryFinished(entry=entry) if isinstance(entry.body, SummaryRecord):
            return f"  summarized: {entry.body.tokens_before} -> {entry.body.tokens_after} tokens"
        case ContextMasked(entry=entry, tokens_before=before, tokens_after=after):
            why = cause(entry.body.trigger) if isinstance(entry.body, MaskEpoch) else ""
            return f"· older tool results shortened{why and f' ({why})'}: {before} -> {after} tokens"
        case Retrying(attempt=attempt, attempts=attempts, delay=delay, error=error):
            return f"· {error} Trying again in {delay:.0f} s ({attempt} of {attempts})"
        case Warned(text=text):
            return f"! {text}"
        case _:
            return ""


def _write(out: TextIO, line: Line) -> None:
    out.write(in_json(msgspec.json.encode(line).decode()) + "\n")
    out.flush()
