"""Chats of the real program in terminals of their own; their commands, and what they show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.support.program import Program
from tests.support.scripted_server import ScriptedServer
from tests.support.terminal import Terminal

Start = Callable[..., Terminal]


def chats(program: Program, terminals: list[Terminal], **usual: int) -> Start:
    """A way to start a chat with a server: `start(server, *options, env=..., columns=..., rows=...)`."""

    def starting(server: ScriptedServer, *options: str, env: dict[str, str] | None = None, **size: int) -> Terminal:
        own = replace(program, model_url=server.url)
        world = {**own.environment(), **(env or {})}
        terminal = Terminal.python("-P", "-m", "mycode", *options, cwd=own.cwd, env=world, **{**usual, **size})
        terminals.append(terminal)
        return terminal

    return starting


def ready(terminal: Terminal) -> Terminal:
    """The terminal once the status line is drawn."""
    terminal.wait_for("openai/scripted")
    return terminal


def command(terminal: Terminal, line: str, shows: str) -> str:
    """What stands below the command once it shows that, be it across line ends."""
    echo = f"> {line}\n"
    before = terminal.everything.count(echo)
    terminal.send(line + "\r")

    def shown(seen: Terminal) -> bool:
        parts = seen.everything.split(echo)[1:]
        return len(parts) > before and shows in " ".join(parts[-1].split())

    terminal.wait(shown, f"{shows!r} of {line}")
    terminal.wait_gone("Esc interrupts")
    return terminal.everything.rpartition(echo)[2]
