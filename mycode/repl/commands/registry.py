"""All slash commands there are."""

from mycode.repl.commands import context, history, manual, model, permissions, rewind, session
from mycode.repl.commands.command import Registry


def standard() -> Registry:
    """Every command of the program, in the order in which help lists them."""
    return Registry(
        [
            *manual.COMMANDS,
            *context.COMMANDS,
            *history.COMMANDS,
            *rewind.COMMANDS,
            *session.COMMANDS,
            *model.COMMANDS,
            *permissions.COMMANDS,
        ]
    )
