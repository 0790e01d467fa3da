"""What was said and done, line by line: messages, tool calls with their result, the todo list, notices, endings."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from mycode.core.events import ContextMasked, Retrying, SummaryFinished, SummaryStarted, ToolFinished, TurnEnded
from mycode.core.summaries import MaskEpoch, SummaryRecord, cause
from mycode.core.tools import CommandDisplay, DiffDisplay, Display, TextDisplay, TodoDisplay, TodoItem
from mycode.core.visible import one_line, plain
from mycode.render import diff
from mycode.render.numbers import duration, percent, percent_less, tokens

OUTPUT_LINES = 6
DIFF_LINES = 24
TITLE_WIDTH = 300
_ENDINGS = {
    "turn_limit": "Stopped: the limit of model calls for one prompt is reached. Say `go on` to continue.",
    "budget": "Stopped: the budget is used up.",
    "denied": "Stopped: what the model wanted to do was not allowed.",
    "refused": "The model refused to answer.",
    "truncated": "The answer was cut at the model's output limit. Say `go on` to continue.",
    "cannot_ask": "Stopped: a question had to be put and nobody could answer it.",
    "context_full": "The context is full. `/summarize` makes room, `/context` shows what fills it.",
    "failed": "The turn failed.",
    "interrupted": "Interrupted. What was done so far is kept.",
    "loop": "Stopped: the same calls came again and again.",
}


def user(text: str, *, plain_text: bool = False) -> RenderableType:
    """What the person said, behind the sign of the prompt."""
    if plain_text:
        return Text(f"You: {plain(text)}")
    shown = Text("> ", style="prompt")
    shown.append(plain(text).replace("\n", "\n  "), "user")
    return shown


def tool(finished: ToolFinished, title: str, *, plain_text: bool = False, whole: bool = False) -> RenderableType:
    """A tool call in one line, its result below it: a diff, the end of a command's output, or one line."""
    label = one_line(title or finished.call.name, TITLE_WIDTH)
    refused, failed = finished.denied, finished.result.is_error
    if plain_text:
        state = " (not allowed)" if refused else " (failed)" if failed else ""
        head = Text(f"Tool{state}: {label}")
    else:
        head = Text("✗ " if failed or refused else "● ", style="error" if failed or refused else "ok")
        head.append(label, "tool")
    if finished.seconds >= 1:
        head.append(f"  {duration(finished.seconds)}", "muted")
    if failed and not isinstance(finished.display, CommandDisplay):
        below: RenderableType | None = _lines(finished.result.text, None if whole else 8, "muted")
    else:
        below = _result(finished.display, finished.result.text, plain_text=plain_text, whole=whole)
    if below is None:
        return head
    return Group(head, below if plain_text else Padding(below, (0, 0, 0, 2)))


def todo(items: tuple[TodoItem, ...]) -> Text:
    """The todo list with a sign for each state."""
    signs = {"done": ("[x]", "muted"), "active": ("[>]", "title"), "pending": ("[ ]", "")}
    text = Text()
    for item in items:
        sign, style = signs[item.status]
        text.append(f"{sign} {one_line(item.text, TITLE_WIDTH)}\n", style)
    text.rstrip()
    return text


def display(shown: Display, *, plain_text: bool = False, whole: bool = True) -> RenderableType:
    """Any display of a tool, whole unless told otherwise."""
    result = _result(shown, "", plain_text=plain_text, whole=whole)
    return result if result is not None else Text()


def notice(text: str, *, style: str = "note", plain_text: bool = False) -> Text:
    """A line from the program itself."""
    return Text(("Note: " if plain_text else "· ") + plain(text), style=style)


def warning(text: str, *, plain_text: bool = False) -> Text:
    return Text(("Warning: " if plain_text else "! ") + plain(text), style="warn")


def error(text: str, *, plain_text: bool = False) -> Text:
    return Text(("Error: " if plain_text else "✗ ") + plain(text), style="error")


def retrying(event: Retrying, *, plain_text: bool = False) -> Text:
    again = f"{plain(event.error)} Trying again in {duration(event.delay)} ({event.attempt} of {event.attempts})."
    if event.discard:
        again += " What was shown of the answer does not count."
    return warning(again, plain_text=plain_text)


def summary_started(event: SummaryStarted, *, plain_text: bool = False) -> Text:
    reason, why = event.trigger.reason, cause(event.trigger.reason)
    told = reason.replace("_", " ") + (f": {why}; context {percent(event.trigger.ratio)} full" if why else "")
    return notice(
        f"Summarizing {event.messages} messages{'' if reason == 'manual' else f' ({told})'} …", plain_text=plain_text
    )


def masked(event: ContextMasked, *, plain_text: bool = False) -> Text:
    """What masking freed, and why it was done."""
    saved = max(0, event.tokens_before - event.tokens_after)
    why = cause(event.entry.body.trigger) if isinstance(event.entry.body, MaskEpoch) else ""
    return notice(
        f"Old tool results are shown short now{why and f' ({why})'}: {tokens(saved)} tokens freed.",
        plain_text=plain_text,
    )


def summary_finished(event: SummaryFinished, *, plain_text: bool = False) -> Text:
    """The one line after an automatic summary: what it stands for, what it saved, how to see and undo it."""
    record = event.entry.body
    assert isinstance(record, SummaryRecord)
    first, last = record.covers
    saved = percent_less(record.tokens_before, record.tokens_after)
    return notice(
        f"Messages m{first}-m{last} are summarized now: {tokens(record.tokens_before)} →"
        f" {tokens(record.tokens_after)} tokens ({saved} less). Nothing is lost: /summaries shows it,"
        " /history --full all of it, /summarize --undo takes it back.",
        plain_text=plain_text,
    )


def turn_ended(event: TurnEnded, *, plain_text: bool = False) -> RenderableType | None:
    """Why a turn stopped, when it did not simply finish."""
    if event.reason == "done":
        return None
    sentence = event.error or _ENDINGS.get(event.reason, f"Stopped: {event.reason}.")
    if event.reason == "failed" or event.error:
        return error(sentence, plain_text=plain_text)
    return warning(sentence, plain_text=plain_text)


def _result(shown: Display | None, text: str, *, plain_text: bool, whole: bool) -> RenderableType | None:
    match shown:
        case DiffDisplay():
            return diff.diff(shown, limit=None if whole else DIFF_LINES, plain_text=plain_text)
        case CommandDisplay():
            return _command(shown, whole=whole)
        case TodoDisplay():
            return todo(shown.items)
        case TextDisplay():
            line = Text(one_line(shown.line, TITLE_WIDTH), style="muted")
            if shown.body and whole:
                return Group(line, _lines(shown.body, None, ""))
            return line
    first = text.strip().split("\n", 1)[0] if text.strip() else ""
    if whole and text.strip():
        return _lines(text, None, "muted")
    return Text(one_line(first, 160), style="muted") if first else None


def _command(shown: CommandDisplay, *, whole: bool) -> RenderableType:
    parts: list[RenderableType] = []
    output = shown.output.strip("\n")
    if output:
        parts.append(_last_lines(output, None if whole else OUTPUT_LINES))
    if shown.exit_code is None:
        parts.append(Text(plain(shown.note) or "still running", style="warn"))
    elif shown.exit_code != 0:
        note = f", {plain(shown.note)}" if shown.note else ""
        parts.append(Text(f"exit code {shown.exit_code}{note}", style="error"))
    elif shown.note:
        parts.append(Text(plain(shown.note), style="muted"))
    elif not output:
        parts.append(Text("no output", style="muted"))
    return Group(*parts)


def _lines(text: str, limit: int | None, style: str) -> Text:
    """The first lines of a foreign text."""
    lines = text.rstrip("\n").split("\n")
    shown = Text(plain("\n".join(lines if limit is None else lines[:limit])), style=style)
    if limit is not None and len(lines) > limit:
        shown.append(f"\n… {len(lines) - limit:,} more lines", "muted")
    return shown


def _last_lines(text: str, limit: int | None) -> Text:
    """The last lines of a foreign text: where commands say how it went."""
    lines = text.split("\n")
    shown = Text(style="muted")
    if limit is not None and len(lines) > limit:
        shown.append(f"… {len(lines) - limit:,} lines above (Ctrl-O shows all)\n")
        lines = lines[-limit:]
    shown.append(plain("\n".join(lines)))
    return shown
