"""`mycode context inspect`: what a transcript is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from mycode.core.visible import one_line
from mycode.render.numbers import percent, plural, tokens
from mycode.render.panels.boxes import framed


def inspection_panel(inspection: Mapping[str, Any], *, plain_text: bool = False) -> RenderableType:
    """Sizes by role and by tool, the largest messages, what stands in it twice, and what masking would save.

    Takes the plain object that `mycode context inspect --json` prints; all sizes in tokens.
    """
    total = inspection["tokens"]
    parts: list[RenderableType] = [Text(f"{plural(inspection['messages'], 'message')}, {tokens(total)} tokens")]
    parts += _shares("By role", inspection["roles"], total)
    parts += _shares("By tool (results)", inspection["tools"], total)
    if inspection["largest"]:
        parts.append(Text("\nLargest messages", style="title"))
        rows = [(f"#{item['index']}", item["name"], tokens(item["tokens"])) for item in inspection["largest"]]
        parts.append(_table(rows))
    if inspection["duplicates"]:
        doubled = tokens(inspection["duplicate_tokens"])
        parts.append(Text(f"\n{inspection['duplicates']} results stand in it twice: {doubled} tokens."))
    if inspection["maskable"]:
        saved = tokens(inspection["maskable_saves"])
        parts.append(Text(f"\nOne-line digests for {inspection['maskable']} old results would save {saved} tokens."))
    return framed("Transcript", *parts, plain_text=plain_text)


def _shares(title: str, shares: Sequence[Mapping[str, Any]], total: int) -> list[RenderableType]:
    if not shares:
        return []
    rows = [
        (share["name"], str(share["messages"]), tokens(share["tokens"]), percent(share["tokens"] / max(1, total)))
        for share in shares
    ]
    return [Text(f"\n{title}", style="title"), _table(rows)]


def _table(rows: Sequence[tuple[str, ...]]) -> Table:
    table = Table.grid(padding=(0, 2))
    for row in rows:
        table.add_row(*(Text(one_line(cell, 60)) for cell in row))
    return table
