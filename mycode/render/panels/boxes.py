"""The frame around a panel, and the labelled lines that stand for it where nothing is drawn."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text


def framed(title: str, *parts: RenderableType, plain_text: bool) -> RenderableType:
    """The parts under a title: in a box, or in plain text as they are."""
    if plain_text:
        return Group(Text(title), *parts)
    heading = Text(title, style="title")
    return Panel(Group(*parts), title=heading, title_align="left", box=box.ROUNDED, border_style="muted")


def bullets(heading: str, items: Sequence[str], *, plain_text: bool, limit: int = 8) -> list[RenderableType]:
    """A heading and its items, the first few; nothing when there are none."""
    if not items:
        return []
    shown: list[RenderableType] = [Text(f"\n{heading}:", style="title")]
    sign = "- " if plain_text else "• "
    shown += [_hanging(sign, item) for item in items[:limit]]
    if len(items) > limit:
        shown.append(Text(f"  … {len(items) - limit} more", style="muted"))
    return shown


def _hanging(sign: str, item: str) -> RenderableType:
    from rich.table import Table

    row = Table.grid()
    row.add_column(width=len(sign))
    row.add_column(overflow="fold")
    row.add_row(Text(sign), Text(item))
    return row
