"""`/rewind`: back to before a turn, with the files, the conversation, or both."""

from __future__ import annotations

from rich.text import Text

from mycode.core.checkpoints import Rewind, Rewinder
from mycode.core.errors import SessionError, UsageError
from mycode.core.messages import UserMessage
from mycode.core.visible import one_line
from mycode.render.numbers import clock
from mycode.render.panels.rewind import rewind_panel
from mycode.repl.commands.arguments import Arguments, Option, Positional
from mycode.repl.commands.command import Command, Shell

_SHOWN = 15
_LOOKED_AT = 1_000
_FILES, _CONVERSATION = "files", "conversation"


async def rewind(shell: Shell, arguments: Arguments) -> None:
    force = arguments.flag("--force")
    if arguments.flag("--redo"):
        await _redo(shell, force=force)
        return
    seq = await _chosen(shell, arguments.text("turn"))
    if seq is None:
        return
    ref = shell.session.checkpoint_before(seq)
    rewinder = shell.services.rewinder
    plan = await rewinder.preview(ref) if ref is not None and rewinder is not None else None
    if plan is not None:
        shell.write(Text(), rewind_panel(plan, plain_text=shell.canvas.plain))
    if arguments.flag("--preview"):
        if plan is None:
            shell.say("No file would change." if rewinder is not None else _NO_FILES)
        return
    what = _wanted(arguments) or await _asked(shell, plan)
    if _CONVERSATION in what:
        shell.session.check_rewind(seq)
    if _FILES in what:
        if ref is None or rewinder is None:
            raise SessionError("No file was changed by a turn since then." if rewinder is not None else _NO_FILES)
        if not await _files(shell, rewinder, ref, force=force):
            return
    if _CONVERSATION in what:
        before, said = shell.session.id, _said(shell, seq)
        shell.session.rewind(seq)
        shell.reopened()
        shell.say(f"Back to before m{seq}, in a copy. What came after is kept: /resume {before}.")
        if said:
            shell.draft(said)
    if not what:
        shell.say("Nothing was changed.")


async def _chosen(shell: Shell, text: str) -> int | None:
    """The message to go back to before: by its handle, by its number in the list, or as it is picked now."""
    if text[:1] in ("m", "M") and text[1:].isdecimal():
        return int(text[1:])
    recent = list(shell.session.history(newest=_LOOKED_AT))
    turns = [entry for entry in recent if isinstance(entry.body, UserMessage)][: -_SHOWN - 1 : -1]
    if not turns:
        shell.say("Nothing was said yet.")
        return None
    if not text:
        shell.write(Text("\nGo back to before", style="title"))
        for number, entry in enumerate(turns, 1):
            assert isinstance(entry.body, UserMessage)
            files = ", files" if shell.session.checkpoint_before(entry.seq) else ""
            said = one_line(entry.body.text, 60)
            shell.write(Text(f"{number:>3}. {clock(entry.at)}  {said}  (m{entry.seq}{files})"))
        text = (await shell.read("Number of the turn")).strip()
        if not text:
            return None
        return await _chosen(shell, text)
    if text.isdecimal() and 1 <= int(text) <= len(turns):
        return turns[int(text) - 1].seq
    message = f"There is no turn {text!r}. /rewind lists the newest; any message can be named, as m12."
    raise UsageError(message)


def _said(shell: Shell, seq: int) -> str:
    """What the person said in that message; empty if it is not theirs."""
    bodies = (entry.body for entry in shell.session.history(first=seq, last=seq))
    return next((body.text for body in bodies if isinstance(body, UserMessage)), "")


def _wanted(arguments: Arguments) -> tuple[str, ...]:
    return tuple(name for name in (_FILES, _CONVERSATION) if arguments.flag(f"--{name}"))


async def _asked(shell: Shell, plan: Rewind | None) -> tuple[str, ...]:
    """What is to go back; only the conversation can where no file would change."""
    if plan is None or not plan.changes:
        return (_CONVERSATION,)
    choices = {"b": "files and conversation", "f": "files only", "c": "conversation only", "esc": "nothing"}
    match await shell.choose(choices, escape="esc"):
        case "b":
            return (_FILES, _CONVERSATION)
        case "f":
            return (_FILES,)
        case "c":
            return (_CONVERSATION,)
    return ()


async def _files(shell: Shell, rewinder: Rewinder, ref: str, *, force: bool) -> bool:
    """Whether the files were taken back; those that somebody else has changed only after a yes."""
    done = await rewinder.restore(ref, force=force)
    if not done.done:
        if not await _agreed(shell, done):
            return False
        done = await rewinder.restore(ref, force=True)
    _told(shell, done)
    return True


async def _redo(shell: Shell, *, force: bool) -> None:
    rewinder = shell.services.rewinder
    if rewinder is None:
        raise SessionError(_NO_FILES)
    done = await rewinder.redo(force=force)
    if not done.done:
        shell.write(Text(), rewind_panel(done, plain_text=shell.canvas.plain))
        if not await _agreed(shell, done):
            return
        done = await rewinder.redo(force=True)
    _told(shell, done)


async def _agreed(shell: Shell, plan: Rewind) -> bool:
    names = ", ".join(one_line(path, 60) for path in plan.foreign[:5])
    shell.say(f"Changed by somebody else since the agent last did: {names}.")
    if await shell.choose({"o": "overwrite them", "esc": "change nothing"}, escape="esc") == "o":
        return True
    shell.say("Nothing was changed.")
    return False


def _told(shell: Shell, done: Rewind) -> None:
    shell.write(Text(), rewind_panel(done, plain_text=shell.canvas.plain))
    shell.say("The state just left is kept: /rewind --redo brings it back.")


_NO_FILES = "The files of this conversation are not recorded."

COMMANDS = (
    Command(
        "rewind",
        "Go back to before a turn: files, conversation or both",
        rewind,
        positionals=(Positional("turn", "its number in the list (1 is the newest), or a message such as m12"),),
        options=(
            Option("--files", "only the files (with --conversation: both)"),
            Option("--conversation", "only the conversation, in a copy"),
            Option("--preview", "show what would change, change nothing"),
            Option("--redo", "take the last going back of the files back"),
            Option("--force", "also over files that somebody else has changed since"),
        ),
        aliases=("checkpoint",),
        examples=("/rewind", "/rewind 1", "/rewind m12 --files", "/rewind --redo"),
        more="Ignored files, the index and the history of your own repository are never touched. "
        "The conversation goes on in a copy: the one you leave can be resumed. "
        "What you had said there is on the input line again, to be changed and sent.",
    ),
)
