"""`/model`, `/config`, `/init`: which model answers, what is set, and a first look at the project."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from mycode.core.visible import plain
from mycode.repl.commands.arguments import Arguments, Positional
from mycode.repl.commands.command import Command, Shell


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


async def config(shell: Shell, _: Arguments) -> None:
    rows = shell.services.settings()
    if shell.canvas.plain:
        for name, value, origin in rows:
            shell.write(Text(f"{plain(name)} = {plain(value)} (from {plain(origin)})"))
        return
    table = Table.grid(padding=(0, 2))
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
    Command("config", "Settings in force and where each comes from", config, at_once="always"),
    Command("init", "Have the agent look at the project and write AGENTS.md", init),
)
