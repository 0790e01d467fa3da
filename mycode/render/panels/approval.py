"""What a person is asked to allow, shown whole: every character of a command, every line of a change."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from mycode.core.patterns import pattern
from mycode.core.tools import (
    Action,
    ApprovalRequest,
    CommandDisplay,
    DiffDisplay,
    Display,
    Question,
    TextDisplay,
    TodoDisplay,
)
from mycode.core.visible import revealed
from mycode.render import diff, transcript

_VERBS = {
    "none": "wants to run",
    "read": "wants to read",
    "write": "wants to change",
    "execute": "wants to run a command",
    "network": "wants to reach the network",
}


def approval_panel(request: ApprovalRequest, *, plain_text: bool = False) -> RenderableType:
    """The whole action, why it is asked, and each part of a compound command with what was said of it."""
    action, verdict = request.action, request.verdict
    parts: list[RenderableType] = [Text(), _title(action, plain_text=plain_text)]
    parts += [_indented(thing, plain_text=plain_text) for thing in _what(action, plain_text=plain_text)]
    if verdict.reason:
        parts.append(Text(f"Why you are asked: {revealed(verdict.reason)}", style="muted"))
    if action.command is not None and len(verdict.parts) > 1:
        for part in verdict.parts:
            why = f"  ({revealed(part.reason)})" if part.reason != verdict.reason else ""
            parts.append(Text(f"  {part.decision:5} {revealed(part.text)}{why}", style="muted"))
    return Group(*parts)


def question_panel(question: Question, *, plain_text: bool = False) -> RenderableType:
    """A question of the model with its options, numbered from 1."""
    text = Text("Question from the model: " if plain_text else "? ", style="warn")
    text.append(revealed(question.text))
    for number, option in enumerate(question.options, 1):
        text.append(f"\n  {number}. {revealed(option)}")
    return Group(Text(), text)


def _title(action: Action, *, plain_text: bool) -> Text:
    text = Text("Permission needed: " if plain_text else "? ", style="warn")
    text.append(f"{revealed(action.tool)} {_VERBS[action.effect]}", "title")
    return text


def _what(action: Action, *, plain_text: bool) -> list[RenderableType]:
    shown: list[RenderableType] = []
    if action.command is not None:
        shown.append(Text(_unpadded(action.command, plain_text=plain_text)))
    if action.url is not None:
        shown.append(Text(revealed(action.url)))
    shown += [_display(display, plain_text=plain_text) for display in action.displays if not _repeats(display, action)]
    if not shown:
        shown.append(Text(revealed(action.title)))
    in_diffs = {display.path for display in action.displays if isinstance(display, DiffDisplay)}
    shown += [Text(f"writes {revealed(path)}") for path in action.writes if not _named(path, in_diffs)]
    return shown


_BLANKS = pattern(r"[^\S\n]{12,}")
_EMPTY_LINES = pattern(r"\n(?:[^\S\n]*\n){3,}")


def _unpadded(command: str, *, plain_text: bool) -> str:
    """The command with nothing left out that would run, and no room in it to push a part of it off the screen.

    In plain text each line after the first is marked as part of the command, so that none poses as one of ours.
    """
    text = _EMPTY_LINES.sub(lambda found: f"\n<{found[0].count(chr(10)) - 1} empty lines>\n", command)
    text = revealed(_BLANKS.sub(lambda found: f" <{len(found[0])} blanks> ", text))
    return text.replace("\n", "\n| ") if plain_text else text


def _named(path: str, diffs: set[str]) -> bool:
    return any(path.endswith(shown) for shown in diffs)


def _repeats(display: Display, action: Action) -> bool:
    return isinstance(display, CommandDisplay) and display.command == action.command


def _display(display: Display, *, plain_text: bool) -> RenderableType:
    match display:
        case DiffDisplay():
            return diff.diff(display, limit=None, plain_text=plain_text)
        case CommandDisplay():
            return Text(revealed(display.command))
        case TextDisplay():
            return Text(revealed(display.line) + ("\n" + revealed(display.body) if display.body else ""))
        case TodoDisplay():
            return transcript.todo(display.items)


def _indented(thing: RenderableType, *, plain_text: bool) -> RenderableType:
    return thing if plain_text else Padding(thing, (0, 0, 0, 2), expand=False)
