"""What a summary stands for and what it saved (R111), with its score and what it left out."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from mycode.core.summaries import SummaryRecord
from mycode.core.visible import one_line
from mycode.render.numbers import clock, money, percent, percent_less, tokens
from mycode.render.panels.boxes import bullets, framed

_ITEM_WIDTH = 400


def summary_panel(
    record: SummaryRecord,
    *,
    handle: str = "",
    messages_before: int | None = None,
    messages_after: int | None = None,
    preview: bool = False,
    plain_text: bool = False,
) -> RenderableType:
    """The panel of `/summarize`; with `preview` it says that nothing has changed yet."""
    first, last = record.covers
    lines: list[RenderableType] = []
    if messages_before is not None and messages_after is not None:
        less = percent_less(messages_before, messages_after)
        lines.append(Text(f"Messages: {messages_before} → {messages_after} ({less} reduction)"))
    lines.append(Text(f"Stands for: m{first}-m{last}" + (f", as {handle}" if handle else "")))
    saved = record.tokens_before - record.tokens_after
    lines.append(
        Text(f"Tokens saved: ~{max(0, saved):,} ({tokens(record.tokens_before)} → {tokens(record.tokens_after)})")
    )
    lines.append(Text(_how(record), style="muted"))
    if record.focus:
        lines.append(Text(f"Focus: {one_line(record.focus, _ITEM_WIDTH)}"))
    lines += bullets("Key Topics", _clean(record.key_points), plain_text=plain_text)
    lines += [
        Text(f"\nFiles Modified: {len(record.files_modified)}{_names(record.files_modified)}"),
        Text(f"Commands Run: {len(record.commands)}"),
        Text(f"Key Decisions: {len(record.context.decisions)}"),
    ]
    lines += bullets("Decisions", _clean(record.context.decisions), plain_text=plain_text, limit=5)
    open_errors = tuple(error.text for error in record.errors if not error.resolved)
    lines += bullets("Open Errors", _clean(open_errors), plain_text=plain_text, limit=5)
    lines += _verification(record, plain_text=plain_text)
    title = "Preview: nothing is changed yet" if preview else "Session Summary"
    return framed(title, *lines, plain_text=plain_text)


def _how(record: SummaryRecord) -> str:
    parts = [f"By {record.strategy}" + (f" ({one_line(record.model, 60)})" if record.model else "")]
    parts.append(f"depth {record.depth}")
    if record.usage is not None:
        parts.append(money(record.usage.cost_usd))
    parts.append(clock(record.at))
    return ", ".join(parts)


def _verification(record: SummaryRecord, *, plain_text: bool) -> list[RenderableType]:
    found = record.verification
    if found is None:
        return []
    lines: list[RenderableType] = [
        Text(f"\nVerified: {percent(found.score)} (kept {percent(found.recall)}, grounded {percent(found.grounding)})")
    ]
    if found.added:
        lines.append(Text(f"Put back by the check: {len(found.added)}", style="muted"))
    if found.removed:
        lines.append(Text(f"Taken out as ungrounded: {len(found.removed)}", style="muted"))
    return lines + bullets("Left out", _clean(found.left_out), plain_text=plain_text, limit=5)


def _names(paths: tuple[str, ...]) -> str:
    if not paths:
        return ""
    shown = ", ".join(one_line(path, 60) for path in paths[:4])
    return f" ({shown}{', …' if len(paths) > 4 else ''})"


def _clean(items: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one_line(item, _ITEM_WIDTH) for item in items)
