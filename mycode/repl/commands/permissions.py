"""`/permissions`: what may run without asking, now."""

from __future__ import annotations

from typing import get_args

from rich.text import Text

from mycode.core.tools import Mode
from mycode.core.visible import plain
from mycode.repl.commands.arguments import Arguments, Positional
from mycode.repl.commands.command import Command, Shell

MODES: tuple[Mode, ...] = get_args(Mode)
CYCLE: tuple[Mode, ...] = ("default", "acceptEdits", "plan")
MEANINGS: dict[Mode, str] = {
    "default": "asks before it changes files or runs commands",
    "acceptEdits": "changes files in the workspace without asking",
    "plan": "reads only, changes nothing",
    "auto": "runs what looks safe, asks for the rest",
    "dontAsk": "refuses what it would have to ask for",
    "bypassPermissions": "asks nothing at all",
}


async def permissions(shell: Shell, arguments: Arguments) -> None:
    wanted = arguments.text("mode")
    for mode in MODES:
        if mode == wanted:
            shell.services.set_mode(mode)
            shell.say(f"Permission mode: {mode}, {MEANINGS[mode]}.")
            return
    current = shell.services.mode
    shell.write(Text(f"\nPermission mode: {current}, {MEANINGS[current]}", style="title"))
    rules = shell.services.permissions()
    for rule in rules:
        shell.write(Text(f"  {plain(rule)}"))
    if not rules:
        shell.say("No rules beyond the mode.")
    shell.say("Shift-Tab goes to the next mode; /permissions MODE to any.")


COMMANDS = (
    Command(
        "permissions",
        "Permission mode and rules",
        permissions,
        at_once="always",
        positionals=(Positional("mode", "one of " + ", ".join(MODES), choices=MODES),),
        examples=("/permissions", "/permissions plan"),
        values=lambda _: MODES,
    ),
)
