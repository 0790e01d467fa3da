"""`/help`: what can be said to the program, and how each command is used."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from mycode.repl.commands.arguments import Arguments, Positional
from mycode.repl.commands.command import Command, Shell
from mycode.repl.key_sheet import SHEET


async def show_help(shell: Shell, arguments: Arguments) -> None:
    registry = shell.registry
    if name := arguments.text("command"):
        shell.write(describe(registry.find(name)))
        return
    plain = shell.canvas.plain
    parts: list[Text | Table] = [Text("\nCommands", style="title")]
    if plain:
        parts += [Text(f"/{command.name}: {command.help}") for command in registry.commands]
    else:
        grid = Table.grid(padding=(0, 2))
        for command in registry.commands:
            grid.add_row(Text(f"/{command.name}", style="accent"), Text(command.help))
        parts.append(grid)
    parts += [Text("\nKeys", style="title"), Text(SHEET)]
    parts.append(Text("\n/help COMMAND shows its usage with examples.", style="note"))
    shell.write(Group(*parts))


def describe(command: Command) -> Group:
    """Usage, arguments and examples of one command."""
    parts = [Text(f"\n{command.usage}", style="title"), Text(command.help)]
    if command.more:
        parts.append(Text(command.more))
    parts += [Text(f"  {positional.name.upper():14} {positional.help}") for positional in command.positionals]
    for option in command.options:
        name = f"{option.name} {option.value}".strip() + (f", {option.short}" if option.short else "")
        parts.append(Text(f"  {name:14} {option.help}"))
    if command.aliases:
        parts.append(Text("Also: " + ", ".join(f"/{alias}" for alias in command.aliases), style="muted"))
    if command.examples:
        parts.append(Text("Examples:\n" + "\n".join(f"  {example}" for example in command.examples)))
    return Group(*parts)


COMMANDS = (
    Command(
        "help",
        "Commands and keys, or one command in detail",
        show_help,
        at_once="always",
        positionals=(Positional("command", "a command's name"),),
        examples=("/help", "/help summarize"),
        values=lambda shell: [command.name for command in shell.registry.commands],
    ),
)
