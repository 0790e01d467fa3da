"""The commands below `mycode`, each imported only when it is used, so that a prompt never waits for them."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

COMMANDS = {
    "demo": ("mycode.cli.demo:demo", "See it work on a throw-away project, without key or network."),
    "sessions": ("mycode.cli.sessions:app", "List, show, search, export, import, rename, purge and delete sessions."),
    "history": ("mycode.cli.sessions:history", "Show a session: summaries with their ranges, then messages."),
    "context": ("mycode.cli.context:app", "Compress or inspect a transcript file, without a model."),
    "tools": ("mycode.cli.tools:app", "Show and run the tools the model has."),
    "permissions": ("mycode.cli.permissions:app", "Explain verdicts, show the log of approvals."),
    "config": ("mycode.cli.config:app", "Look at and change settings."),
    "trust": ("mycode.cli.config:trust", "Let a project's own settings count."),
    "doctor": ("mycode.cli.doctor:doctor", "Check this installation and say what is missing."),
}


class Door(TyperGroup):
    """Knows the names and the one-line helps; the rest comes when a command is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  the parser's own signature
        return list(COMMANDS)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Where no command stands, a prompt may, with options on either side: its words are left in `ctx.args`."""
        alone: Any = super(TyperGroup, self)  # as a command that has none below it
        words: list[str] = alone.parse_args(ctx, list(args))
        if words and (words[0] in COMMANDS or ctx.resilient_parsing):
            return super().parse_args(ctx, args)
        if words:
            ctx.allow_interspersed_args = True
            words = alone.parse_args(ctx, args)
        return words

    def invoke(self, ctx: Any) -> Any:
        """Whoever reads the output may stop when they have seen enough (`| head`): that is no error."""
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still waiting to be written goes nowhere
            return 0
        return result

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        found = getattr(importlib.import_module(module), name)
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(rich_markup_mode=None, add_completion=False)
            alone.command(cmd_name)(found)
            found = alone
        command = typer.main.get_command(found)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])
