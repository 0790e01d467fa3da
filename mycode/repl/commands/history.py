"""`/history`, `/summaries`, `/expand`: everything that was ever said, whatever the model sees of it."""

from __future__ import annotations

from rich.text import Text

from mycode.core.visible import one_line, plain
from mycode.render import transcript
from mycode.render.panels.audit import audit_panel
from mycode.render.panels.history import history_panel, summaries_panel
from mycode.repl.commands.arguments import Arguments, Option, Positional
from mycode.repl.commands.command import Command, Shell

PAGE = 100
_RECENT = 10


async def history(shell: Shell, arguments: Arguments) -> None:
    session, canvas = shell.session, shell.canvas
    grep = arguments.text("--grep")
    if arguments.flag("--summaries"):
        await summaries(shell, arguments)
        return
    if arguments.flag("--audit"):
        rows = list(session.history(audit=True, grep=grep))
        shell.write(audit_panel(rows, width=canvas.width, plain_text=canvas.plain))
        return
    total = sum(1 for _ in session.history())
    full = arguments.flag("--full")
    page: tuple[int, int] | None = None
    if full:
        found = list(session.history(grep=grep))
        if (newest := arguments.number("-n")) is not None:
            found = found[-newest:] if newest else []
        pages = max(1, -(-len(found) // PAGE))
        this = min(max(arguments.number("--page") or pages, 1), pages)
        found = found[(this - 1) * PAGE : this * PAGE]
        page = (this, pages)
    else:
        newest = arguments.number("-n")
        found = list(session.history(newest=_RECENT if newest is None else newest, grep=grep)) if newest != 0 else []
    shell.write(
        history_panel(
            found,
            session.summaries(),
            total=total,
            width=canvas.width,
            undone=session.undone(),
            full=full,
            page=page,
            plain_text=canvas.plain,
        )
    )
    if grep and not found:
        shell.say(f"No message holds {one_line(grep, 60)!r}.")


async def summaries(shell: Shell, _: Arguments) -> None:
    session = shell.session
    shell.write(summaries_panel(session.summaries(), undone=session.undone(), plain_text=shell.canvas.plain))


async def expand(shell: Shell, arguments: Arguments) -> None:
    handle = arguments.text("handle")
    if not handle:
        if shell.last_tool is None:
            shell.say("No tool has run yet. /expand m12, m12-m30, s3 or t7 shows an original.")
            return
        finished, title = shell.last_tool
        shell.write(Text(), transcript.tool(finished, title, plain_text=shell.canvas.plain, whole=True))
        return
    shell.write(Text(), Text(plain(shell.session.expand(handle))))


COMMANDS = (
    Command(
        "history",
        "What was said, with --full every word of it",
        history,
        at_once="always",
        options=(
            Option("--full", "every original, word for word, in pages"),
            Option("--grep", "only messages that hold the text", "TEXT"),
            Option("--summaries", "the summaries instead"),
            Option("--audit", "every row of the log"),
            Option("-n", "only the newest N messages", "N", number=True),
            Option("--page", "which page of --full", "N", number=True),
        ),
        aliases=("log",),
        examples=("/history", "/history --full", "/history --grep migration"),
    ),
    Command("summaries", "The summaries so far, whole", summaries, at_once="always"),
    Command(
        "expand",
        "Show an original by its handle, or the last tool output whole",
        expand,
        at_once="always",
        positionals=(Positional("handle", "m12, m12-m30, s3 or t7"),),
        examples=("/expand", "/expand m12", "/expand t7"),
    ),
)
