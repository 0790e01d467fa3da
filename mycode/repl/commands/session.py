"""`/clear`, `/resume`, `/rename`, `/export`, `/cost`, `/exit`: conversations as wholes."""

from __future__ import annotations

from rich.text import Text

from mycode.core.errors import UsageError
from mycode.core.visible import one_line
from mycode.render.numbers import clock, money, plural, tokens
from mycode.repl.commands.arguments import Arguments, Option, Positional
from mycode.repl.commands.command import Command, Shell

_SHOWN = 15
_FORMS = ("md", "html", "jsonl")


async def leave(shell: Shell, _: Arguments) -> None:
    shell.leave()


async def clear(shell: Shell, _: Arguments) -> None:
    before = shell.session.id
    shell.session.clear()
    shell.reopened()
    shell.say(f"A new conversation. The last one is kept: /resume {before} goes back to it.")


async def resume(shell: Shell, arguments: Arguments) -> None:
    name = arguments.text("session")
    if not name:
        choices = list(shell.services.sessions())[:_SHOWN]
        if not choices:
            shell.say("There is no other session yet.")
            return
        shell.write(Text("\nSessions", style="title"))
        for number, choice in enumerate(choices, 1):
            title = one_line(choice.title, 60) or "(no title)"
            about = f"{plural(choice.messages, 'message')}  {choice.id}"
            shell.write(Text(f"{number:>3}. {clock(choice.at, date=True)}  {title}  {about}"))
        name = (await shell.read("Number or name of the session")).strip()
        if not name:
            return
        if name.isdecimal() and 1 <= int(name) <= len(choices):
            name = choices[int(name) - 1].id
    shell.session.resume(name)
    shell.reopened()
    shell.say(f"Resumed: {one_line(shell.session.title, 80) or shell.session.id}. /history shows what was said.")


async def rename(shell: Shell, arguments: Arguments) -> None:
    title = arguments.text("title").strip()
    shell.session.rename(title)
    shell.say(f"This session is called “{one_line(title, 80)}” now.")


async def export(shell: Shell, arguments: Arguments) -> None:
    first, path = arguments.text("form"), arguments.text("path")
    if first not in _FORMS:  # `/export talk.html`: the ending says the rest
        if path:
            message = f"{first!r} is no format; it is one of {', '.join(_FORMS)}. Example: /export html talk.html"
            raise UsageError(message)
        first, path = "", first
    ending = path.rpartition(".")[2]
    form = arguments.text("--format") or first or (ending if ending in _FORMS else "md")
    shell.say(f"Written to {shell.services.export(path, form)}.")


async def cost(shell: Shell, _: Arguments) -> None:
    usage = shell.session.cost()
    shell.write(
        Text(
            f"\nThis session: {money(usage.cost_usd)}\n"
            f"Input: {tokens(usage.input_tokens)} tokens, {tokens(usage.cached_tokens)} of them cached\n"
            f"Output: {tokens(usage.output_tokens)} tokens, {tokens(usage.reasoning_tokens)} of them reasoning"
        )
    )
    unpriced = [model or "this model" for model, used in shell.session.costs().items() if used.cost_usd is None]
    if unpriced:
        shell.say(
            f"The price of {', '.join(unpriced)} is not known. Set model.input_price and model.output_price, "
            "in US dollars per million tokens, e.g. mycode config set model.input_price 0.25."
        )


def _titles(shell: Shell) -> list[str]:
    try:
        return [choice.id for choice in shell.services.sessions()][:50]
    except UsageError:
        return []


COMMANDS = (
    Command("clear", "Start a new conversation; the old one is kept", clear, aliases=("new", "reset")),
    Command(
        "resume",
        "Go on with an earlier session",
        resume,
        positionals=(Positional("session", "its id or name", rest=True),),
        aliases=("sessions",),
        examples=("/resume", "/resume parser rewrite"),
        values=_titles,
    ),
    Command(
        "rename",
        "Give this session a name",
        rename,
        at_once="always",
        positionals=(Positional("title", "the new name", required=True, rest=True),),
        aliases=("title",),
        examples=("/rename parser rewrite",),
    ),
    Command(
        "export",
        "Write this session to a file",
        export,
        positionals=(
            Positional("form", "md, html or jsonl; unset: what the path ends in"),
            Positional("path", "where to; unset: a name made of the title"),
        ),
        options=(Option("--format", "md, html or jsonl", "FORM", choices=_FORMS),),
        aliases=("save",),
        examples=("/export html", "/export talk.md"),
    ),
    Command("cost", "What this session has cost", cost, at_once="always", aliases=("usage",)),
    Command("exit", "Leave; the session is kept", leave, at_once="always", aliases=("quit", "q")),
)
