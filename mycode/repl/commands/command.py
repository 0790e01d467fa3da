"""What a slash command is, what it may do, and how it is found by name."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from difflib import get_close_matches
from typing import Literal, Protocol

from msgspec import Struct
from rich.console import RenderableType

from mycode.core.errors import UsageError
from mycode.core.events import Event, ToolFinished
from mycode.render.screen import Canvas
from mycode.repl.commands.arguments import Arguments, Option, Positional, parse, usage
from mycode.repl.services import Conversation, ReplSettings, Services


class Shell(Protocol):
    """What a command may do: look at the conversation, write to the screen, change what comes next."""

    @property
    def registry(self) -> Registry: ...

    @property
    def session(self) -> Conversation: ...

    @property
    def services(self) -> Services: ...

    @property
    def settings(self) -> ReplSettings: ...

    @property
    def canvas(self) -> Canvas: ...

    @property
    def last_tool(self) -> tuple[ToolFinished, str] | None: ...

    def write(self, *things: RenderableType) -> None: ...

    def say(self, text: str) -> None:
        """One line from the program itself."""
        ...

    async def follow(self, events: AsyncGenerator[Event]) -> list[Event]:
        """Shows events as they come; gives back all of them."""
        ...

    async def read(self, label: str) -> str: ...

    async def choose(self, choices: dict[str, str], *, escape: str) -> str:
        """The key that was pressed, one of `choices`; Esc counts as `escape`."""
        ...

    def submit(self, text: str) -> None:
        """A prompt, as if it had been typed."""
        ...

    def draft(self, text: str) -> None:
        """Puts a text on the input line, to be changed and sent; what stands there already stays instead."""
        ...

    def reopened(self) -> None:
        """The session shows another conversation now: the screen forgets what it was in the middle of."""
        ...

    def leave(self) -> None: ...


class Command(Struct, frozen=True):
    """A slash command: `help` is one line for lists, `more` for `/help NAME`; `values` completes its argument.

    `at_once` says whether it may run while the agent works (`bare`: only without arguments); others wait in the queue.
    """

    name: str
    help: str
    run: Callable[[Shell, Arguments], Awaitable[None]]
    positionals: tuple[Positional, ...] = ()
    options: tuple[Option, ...] = ()
    aliases: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    more: str = ""
    values: Callable[[Shell], Sequence[str]] | None = None
    at_once: Literal["never", "bare", "always"] = "never"

    @property
    def usage(self) -> str:
        return usage(self.name, self.positionals, self.options)


class Registry:
    """Commands by name and alias."""

    def __init__(self, commands: Sequence[Command]) -> None:
        self.commands = tuple(commands)
        self._by_name = {name: command for command in commands for name in (command.name, *command.aliases)}

    def names(self) -> list[str]:
        return list(self._by_name)

    def get(self, name: str) -> Command | None:
        return self._by_name.get(name.removeprefix("/"))

    def find(self, name: str) -> Command:
        """The command of this name or alias; raises `UsageError` that names the nearest ones."""
        if (command := self.get(name)) is not None:
            return command
        near = get_close_matches(name.removeprefix("/"), self.names(), n=3, cutoff=0.5)
        hint = "Did you mean " + " or ".join(f"/{other}" for other in near) + "?" if near else "/help lists them."
        message = f"There is no command /{name.removeprefix('/')}. {hint}"
        raise UsageError(message)

    def at_once(self, line: str) -> bool:
        """Whether this line need not wait for what runs now."""
        name, _, rest = line.removeprefix("/").partition(" ")
        command = self.get(name.strip())
        return command is None or command.at_once == "always" or (command.at_once == "bare" and not rest.strip())

    async def run(self, line: str, shell: Shell) -> None:
        """Runs `/name arguments`; whatever is wrong is a `MycodeError` with a sentence."""
        name, _, rest = line.removeprefix("/").partition(" ")
        command = self.find(name.strip())
        try:
            arguments = parse(rest, command.positionals, command.options)
        except UsageError as error:
            message = f"{error} Usage: {command.usage}"
            raise UsageError(message) from None
        await command.run(shell, arguments)


def is_command(line: str) -> bool:
    """Whether a line is meant as a command: `/name`, not a path such as `/etc/hosts`."""
    if not line.startswith("/"):
        return False
    name = line[1:].split(maxsplit=1)[0] if len(line) > 1 else ""
    return bool(name) and "/" not in name and name.replace("-", "").isalnum()
