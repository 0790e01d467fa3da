"""`/history`: what was ever said (R112): the summaries with their ranges, then messages with time stamps."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from mycode.core.entries import Entry
from mycode.core.messages import AssistantMessage, Message, ToolResult, UserMessage
from mycode.core.summaries import SummaryRecord
from mycode.core.visible import one_line, plain
from mycode.render.numbers import clock, percent, plural, tokens
from mycode.render.panels.boxes import framed

_ARGUMENTS_SHOWN = 2000
_WIDEST = 160
"""Plain text has no width: there, too, a message is shown by its beginning only, unless all of it is asked for."""


def history_panel(
    messages: Sequence[Entry],
    summaries: Sequence[Entry] = (),
    *,
    total: int,
    width: int,
    undone: Collection[int] = (),
    full: bool = False,
    page: tuple[int, int] | None = None,
    plain_text: bool = False,
) -> RenderableType:
    """Summaries first, then the given messages: one line each, or with `full` every original word for word.

    `total` counts all messages of the log; `undone` has the seqs of what was taken back; `page` is (this, of how many).
    """
    parts: list[RenderableType] = []
    for number, entry in enumerate(summaries, 1):
        if isinstance(entry.body, SummaryRecord):
            parts.append(_summary(number, entry.body, width, undone=entry.seq in undone))
    if messages:
        which = f"{messages[0].seq}-{messages[-1].seq}"
        heading = f"[{'All' if full else 'Recent'}] Messages {which}:"
        parts.append(Text(("\n" if parts else "") + heading, style="title"))
        parts += [_whole(entry, plain_text=plain_text) if full else _line(entry, width) for entry in messages]
    if page is not None and page[1] > 1:
        this, pages = page
        more = f"/history --full --page {this - 1} shows what came before." if this > 1 else ""
        parts.append(Text(f"\nPage {this} of {pages}. {more}".rstrip(), style="note"))
    title = Text(f"Session history ({plural(total, 'message')} total):", style="title")
    return Group(Text(), title, Text(), *parts)


def summaries_panel(
    summaries: Sequence[Entry], *, undone: Collection[int] = (), plain_text: bool = False
) -> RenderableType:
    """Each summary whole: its range, how it came about, its text; those taken back (`undone`, by seq) say so."""
    parts: list[RenderableType] = []
    for number, entry in enumerate(summaries, 1):
        record = entry.body
        if not isinstance(record, SummaryRecord):
            continue
        first, last = record.covers
        score = f", verified {percent(record.verification.score)}" if record.verification is not None else ""
        lines: list[RenderableType] = [
            Text(
                f"{clock(record.at, date=True)}, {record.strategy}, {record.trigger.replace('_', ' ')},"
                f" depth {record.depth}, {tokens(record.tokens_before)} → {tokens(record.tokens_after)} tokens{score}",
                style="muted",
            ),
            Text(plain(record.narrative)),
        ]
        parts.append(
            framed(
                f"s{number}: messages m{first}-m{last}{_taken_back(undone=entry.seq in undone)}",
                *lines,
                plain_text=plain_text,
            )
        )
    return Group(Text(), *parts) if parts else Text("No summaries yet.")


def message_text(entry: Entry) -> str:
    """A message as foreign text: what was said, and the calls that were made."""
    body = entry.message
    if body is None:
        return ""
    if isinstance(body, AssistantMessage):
        calls = [f"→ {call.name} {call.arguments[:_ARGUMENTS_SHOWN]}" for call in body.tool_calls]
        return "\n".join([*([body.text] if body.text.strip() else []), *calls])
    return body.text


def _taken_back(*, undone: bool) -> str:
    return " (taken back)" if undone else ""


def _summary(number: int, record: SummaryRecord, width: int, *, undone: bool) -> RenderableType:
    first, last = record.covers
    text = record.narrative.strip() or "; ".join(record.key_points)
    head = Text(f"[Summary {number}] Messages {first}-{last}{_taken_back(undone=undone)}:", style="title")
    return Group(
        head, Padding(Text(one_line(text, max(20, 2 * (min(width, _WIDEST) - 4)))), (0, 0, 0, 2), expand=False)
    )


def _line(entry: Entry, width: int) -> Text:
    role = _role(entry.message)
    text = Text(f"  m{entry.seq} {clock(entry.at)} ", style="muted")
    text.append(f"{role}: ", "title")
    text.append(one_line(message_text(entry), max(10, min(width, _WIDEST) - len(text))))
    text.no_wrap = True
    text.overflow = "ellipsis"
    return text


def _whole(entry: Entry, *, plain_text: bool) -> RenderableType:
    head = Text(f"\nm{entry.seq} {clock(entry.at, date=True)} ", style="muted")
    head.append(_role(entry.message), "title")
    if entry.tokens and not plain_text:
        head.append(f"  {tokens(entry.tokens)} tokens", "muted")
    return Group(head, Text(plain(message_text(entry))))


def _role(message: Message | None) -> str:
    match message:
        case UserMessage():
            return "You"
        case AssistantMessage():
            return "Agent"
        case ToolResult(is_error=failed):
            return "Tool (failed)" if failed else "Tool"
    return "Note"
