"""`/model`, `/config`, `/init`: which model answers, what is set, and a first look at the project."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from mycode.core.errors import UsageError
from mycode.core.visible import plain
from mycode.repl.commands.arguments import Arguments, Option, Positional
from mycode.repl.commands.command import Command, Shell

_DEFAULT = "default"


async def switch(shell: Shell, arguments: Arguments) -> None:
    if name := arguments.text("name"):
        shell.say(await shell.services.switch_model(name))
        return
    current = shell.services.model_name
    shell.write(Text(f"\nModel: {plain(current)}", style="title"))
    for choice in shell.services.models():
        sign = "*" if choice.name == current else " "
        shell.write(Text(f"{sign} {plain(choice.name)}" + (f"  {plain(choice.note)}" if choice.note else "")))
    shell.say("/model NAME goes on with another one; names are those of litellm, provider/model.")


async def config(shell: Shell, arguments: Arguments) -> None:
    known = shell.services.settings()
    wanted = arguments.text("name")
    name, _, value = wanted.partition(" ")
    if value:
        message = f"A chat only shows settings. In a shell: mycode config set {name} {value}"
        raise UsageError(message)
    rows = [row for row in known if (wanted and row[0].startswith(wanted)) or (not wanted and row[2] != _DEFAULT)]
    if arguments.flag("--all"):
        rows = list(known)
    if wanted and not rows:
        message = f"There is no setting {wanted!r}. /config --all lists them."
        raise UsageError(message)
    _table(shell, rows)
    if not wanted and len(rows) < len(known):
        shell.say(f"{len(known) - len(rows)} settings have their defaults: /config --all, or /config context.auto.")


def _table(shell: Shell, rows: Sequence[tuple[str, str, str]]) -> None:
    if shell.canvas.plain:
        for name, value, origin in rows:
            shell.write(Text(f"{plain(name)} = {plain(value)} (from {plain(origin)})"))
        return
    table = Table.grid(padding=(0, 2))
    for _ in range(3):
        table.add_column(overflow="fold")
    for name, value, origin in rows:
        table.add_row(Text(plain(name)), Text(plain(value), style="accent"), Text(plain(origin), style="muted"))
    shell.write(Text(), table)


async def init(shell: Shell, _: Arguments) -> None:
    shell.submit(shell.services.init_prompt())


COMMANDS = (
    Command(
        "model",
        "Show or change the model",
        switch,
        at_once="bare",
        positionals=(Positional("name", "litellm's name of it, provider/model"),),
        examples=("/model", "/model openai/gpt-5-mini"),
        values=lambda shell: [choice.name for choice in shell.services.models()],
    ),
    Command(
        "config",
        "Settings in force and where each comes from",
        config,
        positionals=(Positional("name", "only settings whose names begin with this", rest=True),),
        options=(Option("--all", "also those that have their defaults"),),
        examples=("/config", "/config --all", "/config context.auto"),
        at_once="always",
    ),
    Command("init", "Have the agent look at the project and write AGENTS.md", init),
)
