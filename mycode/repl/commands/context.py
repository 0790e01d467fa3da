"""`/context`, `/summarize`, `/pin`, `/unpin`: what the model sees, changed by hand."""

from __future__ import annotations

import msgspec
from rich.text import Text

from mycode.core.errors import UsageError
from mycode.core.events import ContextChanged, SummaryFinished, SummaryStarted, Warned
from mycode.core.summaries import Strategy, SummaryRecord
from mycode.core.visible import one_line, plain
from mycode.render import transcript
from mycode.render.panels.context import Forecast, context_panel
from mycode.render.panels.summary import summary_panel
from mycode.repl.commands.arguments import Arguments, Option, Positional
from mycode.repl.commands.command import Command, Shell
from mycode.repl.services import Services

_SCANNED = 400
_ACTS = ("drop", "restore", "shrink", "pin")


async def context(shell: Shell, arguments: Arguments) -> None:
    if act := arguments.text("act"):
        _change(shell, act, arguments.text("items"))
        return
    usage = shell.session.usage()
    if arguments.flag("--json") or arguments.flag("--raw"):
        shown = usage if arguments.flag("--json") else shell.services.next_request()
        shell.write(Text(plain(msgspec.json.format(msgspec.json.encode(shown)).decode())))
        return
    recent = list(shell.session.history(newest=_SCANNED))
    items = sorted(recent, key=lambda entry: -entry.tokens)
    canvas = shell.canvas
    panel = context_panel(
        usage,
        width=canvas.width,
        items=items,
        forecast=_forecast(shell.services),
        plain_text=canvas.plain,
    )
    shell.write(Text(), panel)


async def summarize(shell: Shell, arguments: Arguments) -> None:
    session = shell.session
    if arguments.flag("--undo"):
        _told(shell, session.undo())
        return
    first, last = arguments.number("--from"), arguments.number("--upto")
    if first is not None and last is not None and first > last:
        message = f"--from {first} comes after --upto {last}: there is nothing between them."
        raise UsageError(message)
    preview = arguments.flag("--preview")
    before = session.usage()
    events = await shell.follow(
        session.summarize(
            arguments.text("focus"),
            strategy=_strategy(arguments),
            preview=preview,
            first=first,
            last=last,
            keep=arguments.number("--keep"),
            rebase=arguments.flag("--rebase"),
        )
    )
    finished = [event for event in events if isinstance(event, SummaryFinished)]
    for event in finished:
        record = event.entry.body
        assert isinstance(record, SummaryRecord)
        shell.write(
            summary_panel(
                record,
                handle="" if preview else f"s{len(session.summaries())}",
                messages_before=None if preview else before.messages,
                messages_after=None if preview else session.usage().messages,
                preview=preview,
                plain_text=shell.canvas.plain,
            )
        )
    if not finished and not any(isinstance(event, Warned | SummaryStarted) for event in events):
        shell.say("There is nothing to summarize yet.")


async def pin(shell: Shell, arguments: Arguments) -> None:
    if not arguments.text("what"):
        for number, text in enumerate(shell.session.pins(), 1):
            shell.write(Text(f"{number}. {one_line(text, 200)}"))
        if not shell.session.pins():
            shell.say("Nothing is pinned. /pin TEXT or /pin m12 keeps it word for word in every view.")
        return
    _told(shell, shell.session.pin(arguments.text("what")))


async def unpin(shell: Shell, arguments: Arguments) -> None:
    _told(shell, shell.session.unpin(arguments.text("what")))


def _forecast(services: Services) -> Forecast:
    guess = services.forecast()
    return Forecast(
        guess.turns_left,
        guess.next_request_usd,
        summarize_now=guess.summarize_now_usd,
        summarize_later=guess.summarize_later_usd,
    )


def _change(shell: Shell, act: str, items: str) -> None:
    if not items:
        message = f"Name the messages: /context {act} m12, or m12-m30."
        raise UsageError(message)
    seqs = _seqs(items)
    match act:
        case "pin":
            for seq in seqs:
                _told(shell, shell.session.pin(f"m{seq}"))
        case "restore":
            _told(shell, shell.session.restore(seqs))
        case _:
            _told(shell, shell.session.drop(seqs, shrink=act == "shrink"))


def _seqs(text: str) -> list[int]:
    """`m12`, `12`, `m12-m30`, several of them."""
    seqs: list[int] = []
    for word in text.replace(",", " ").split():
        first, _, last = word.partition("-")
        ends = [part.removeprefix("m") for part in (first, last or first)]
        if not all(end.isdecimal() for end in ends):
            message = f"{word!r} names no message; say m12 or m12-m30."
            raise UsageError(message)
        seqs += range(int(ends[0]), int(ends[1]) + 1)
    return seqs


def _told(shell: Shell, changed: ContextChanged) -> None:
    shell.write(transcript.notice(changed.text, plain_text=shell.canvas.plain))


def _strategy(arguments: Arguments) -> Strategy | None:
    chosen: list[Strategy] = [name for name in ("rules", "llm", "hybrid") if arguments.flag(f"--{name}")]
    if len(chosen) > 1:
        message = f"Choose one of --{' and --'.join(chosen)}."
        raise UsageError(message)
    return chosen[0] if chosen else None


COMMANDS = (
    Command(
        "context",
        "What the model sees and how full its window is",
        context,
        at_once="bare",
        positionals=(
            Positional("act", "drop, restore, shrink or pin", choices=_ACTS),
            Positional("items", "messages such as m12 or m12-m30", rest=True),
        ),
        options=(Option("--json", "as JSON"), Option("--raw", "the exact next request, as JSON")),
        examples=("/context", "/context drop m12", "/context restore m12"),
        values=lambda _: _ACTS,
    ),
    Command(
        "summarize",
        "Fold the past into a summary; nothing is lost",
        summarize,
        positionals=(Positional("focus", "what matters most", rest=True),),
        options=(
            Option("--preview", "show what it would be, change nothing"),
            Option("--rules", "without any model"),
            Option("--llm", "written by a model"),
            Option("--hybrid", "facts by rules, words by a model"),
            Option("--from", "first message to fold", "N", number=True),
            Option("--upto", "last message to fold", "N", number=True),
            Option("--keep", "how many of the newest messages stay", "N", number=True),
            Option("--undo", "take the newest summary or change back"),
            Option("--rebase", "build it anew from the whole log"),
        ),
        aliases=("compact", "compress"),
        examples=("/summarize", "/summarize the parser --preview", "/summarize --undo"),
    ),
    Command(
        "pin",
        "Keep a text or a message word for word in every view, or list the pins",
        pin,
        positionals=(Positional("what", "a text, or a message such as m12", rest=True),),
        examples=("/pin", "/pin never touch the migrations", "/pin m12"),
    ),
    Command(
        "unpin",
        "Let go of a pin",
        unpin,
        positionals=(Positional("what", "its number, or its text", required=True, rest=True),),
        examples=("/unpin 1",),
    ),
)
