"""`/context`: what the model will see, how full its window is, and what would happen next."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from mycode.core.entries import Entry
from mycode.core.messages import AssistantMessage, ToolResult
from mycode.core.summaries import Category, ContextUsage, TriggerDistance
from mycode.core.visible import one_line
from mycode.render.numbers import money, percent, plural, tokens
from mycode.render.panels.boxes import framed

_SIGNS = {"system": "S", "tools": "T", "memory": "M", "pins": "P", "summary": "Σ", "user": "u", "assistant": "a"}
_STYLES = ("bar.1", "bar.2", "bar.3", "bar.4", "bar.5")
ITEMS_SHOWN = 20
_WIDEST = 160
"""Plain text has no width: there, too, an item is shown by its beginning only."""


class Forecast(Struct, frozen=True):
    """What comes: turns until the next trigger, prices in US dollars; None where it cannot be known.

    `summarize_now` and `summarize_later` are the price of the next requests with a summary now and without one.
    """

    turns_left: int | None = None
    next_request: float | None = None
    summarize_now: float | None = None
    summarize_later: float | None = None


def context_panel(
    usage: ContextUsage,
    *,
    width: int,
    items: Sequence[Entry] = (),
    forecast: Forecast | None = None,
    plain_text: bool = False,
) -> RenderableType:
    """Bar and table by category, the triggers with their distance, what could be freed, and the largest items."""
    parts: list[RenderableType] = [_headline(usage)]
    if not plain_text:
        parts.append(_bar(usage, max(8, width - 4)))
    parts += _categories(usage, plain_text=plain_text)
    parts += _triggers(usage, plain_text=plain_text)
    parts += _free(usage)
    if forecast is not None:
        parts += _forecast(forecast)
    parts += _items(items, width=width, plain_text=plain_text)
    return framed("Context", *parts, plain_text=plain_text)


def context_short(usage: ContextUsage) -> str:
    """`34 %`, or `≈34 %` while an estimate stands in for the tokenizer."""
    return ("" if usage.exact else "≈") + percent(usage.ratio)


def _headline(usage: ContextUsage) -> Text:
    about = "" if usage.exact else "≈"
    guess = "" if usage.window_known else " (a guess)"
    return Text(
        f"{one_line(usage.model, 60)}: {about}{tokens(usage.tokens)} of {tokens(usage.window)}{guess} tokens,"
        f" {context_short(usage)}; {tokens(usage.reserve)} kept for the answer"
    )


def _bar(usage: ContextUsage, cells: int) -> Text:
    """One cell per share of the window; each category has its letter, so the bar reads without colour."""
    bar = Text()
    window = max(usage.window, usage.tokens + usage.reserve, 1)
    at, used = 0.0, 0
    for number, category in enumerate(usage.categories):
        at += category.tokens / window * cells
        width = min(max(round(at) - used, 1 if category.tokens else 0), cells - used)
        bar.append(_sign(category) * width, _STYLES[number % len(_STYLES)])
        used += width
    reserve = min(round(usage.reserve / window * cells), cells - used)
    bar.append("·" * (cells - used - reserve), "bar.free")
    bar.append("-" * reserve, "bar.reserve")
    return bar


def _categories(usage: ContextUsage, *, plain_text: bool) -> list[RenderableType]:
    window = max(usage.window, 1)
    rows = [
        (_sign(category), category.name, tokens(category.tokens), percent(category.tokens / window), category)
        for category in usage.categories
        if category.tokens or category.items
    ]
    if plain_text:
        return [
            Text(f"{name}: {size} tokens, {share}" + (f", {plural(category.items, 'item')}" if category.items else ""))
            for _, name, size, share, category in rows
        ]
    table = _grid()
    for sign, name, size, share, category in rows:
        table.add_row(Text(sign), Text(name), Text(size), Text(share), Text(f"{category.items or ''}", style="muted"))
    table.add_row(Text("·"), Text("free"), Text(tokens(usage.free)), Text(percent(usage.free / window)), Text())
    return [Text(), table]


def _triggers(usage: ContextUsage, *, plain_text: bool) -> list[RenderableType]:
    if not usage.triggers:
        return []
    lines: list[RenderableType] = [Text("\nSummarizing starts at", style="title")]
    lines += [Text(("" if plain_text else "  ") + _trigger(trigger)) for trigger in usage.triggers]
    return lines


def _trigger(trigger: TriggerDistance) -> str:
    match trigger.unit:
        case "ratio":
            state = f"{percent(trigger.used)} of {percent(trigger.limit)}"
            left = f"{percent(max(0.0, trigger.limit - trigger.used))} to go"
        case "tokens":
            state = f"{tokens(int(trigger.used))} of {tokens(int(trigger.limit))} tokens"
            left = f"{tokens(max(0, int(trigger.limit - trigger.used)))} to go"
        case _:
            state = f"{int(trigger.used)} of {int(trigger.limit)} messages"
            left = f"{max(0, int(trigger.limit - trigger.used))} to go"
    return f"{trigger.name}: {state}, {left}" + ("" if trigger.armed else " (held back for now)")


def _free(usage: ContextUsage) -> list[RenderableType]:
    lines: list[RenderableType] = []
    if usage.cut:
        lines.append(Text(f"\n{tokens(usage.cut)} tokens more do not fit and are left out of the next request."))
    if usage.maskable or usage.foldable:
        lines.append(
            Text(f"\nMasking would free {tokens(usage.maskable)} tokens, summarizing {tokens(usage.foldable)}.")
        )
    counts = [plural(usage.messages, "message")]
    if usage.summaries:
        counts.append(plural(usage.summaries, "summary", "summaries"))
    if usage.masked:
        counts.append(f"{usage.masked} masked")
    lines.append(Text("In view: " + ", ".join(counts), style="muted"))
    return lines


def _forecast(forecast: Forecast) -> list[RenderableType]:
    parts = []
    if forecast.turns_left is not None:
        parts.append(f"about {plural(forecast.turns_left, 'turn')} until then")
    parts.append(f"next request {money(forecast.next_request)}")
    lines: list[RenderableType] = [Text("Forecast: " + ", ".join(parts))]
    if forecast.summarize_now is not None and forecast.summarize_later is not None:
        now, later = money(forecast.summarize_now), money(forecast.summarize_later)
        lines.append(Text(f"The next ten requests: {now} if summarized now, {later} if not"))
    return lines


def _items(items: Sequence[Entry], *, width: int, plain_text: bool) -> list[RenderableType]:
    if not items:
        return []
    room = max(8, min(width, _WIDEST) - 28)
    shown = [(f"m{entry.seq}", tokens(entry.tokens), *_about(entry, room)) for entry in items[:ITEMS_SHOWN]]
    title = f"Largest of {plural(len(items), 'message')}" if len(items) > len(shown) else "Messages"
    heading = Text(f"\n{title}", style="title")
    if plain_text:
        return [heading, *(Text(f"{handle}: {size} tokens, {role}: {text}") for handle, size, role, text in shown)]
    table = _grid()
    for handle, size, role, text in shown:
        cut = Text(text, style="muted", no_wrap=True, overflow="ellipsis")
        table.add_row(Text(handle), Text(role), Text(size), cut)
    return [heading, table, Text("/context drop | shrink | pin | restore mN", style="note")]


def _about(entry: Entry, width: int) -> tuple[str, str]:
    body = entry.message
    role = "tool" if isinstance(body, ToolResult) else "agent" if isinstance(body, AssistantMessage) else "you"
    text = body.text if body is not None else ""
    if isinstance(body, AssistantMessage) and not text.strip():
        text = ", ".join(call.name for call in body.tool_calls)
    return role, one_line(text, width)


def _sign(category: Category) -> str:
    return _SIGNS.get(category.name, "r" if category.name == "tool results" else "o")


def _grid() -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    table.add_column()
    return table
