"""A change to a file, as a person reads it: numbered lines, signs before colours, long ones cut with a count."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from mycode.core.tools import DiffDisplay
from mycode.core.visible import one_line, revealed

_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")

_LONGEST_LINE = 1_000


def diff(change: DiffDisplay, *, limit: int | None = 40, plain_text: bool = False) -> RenderableType:
    """The heading line and the diff below it, at most `limit` lines of it (None: all)."""
    return Group(heading(change), body(change, limit=limit, plain_text=plain_text))


def heading(change: DiffDisplay) -> Text:
    """`mycode/app.py  +3 -1`, with `new file` or `deleted` where it is."""
    text = Text(one_line(change.path, 200), style="title")
    if change.created:
        text.append("  new file", "added")
    if change.deleted:
        text.append("  deleted", "removed")
    text.append(f"  +{change.added}", "added")
    text.append(f" -{change.removed}", "removed")
    return text


def body(change: DiffDisplay, *, limit: int | None = 40, plain_text: bool = False) -> Text:
    """The numbered lines: old number for removed ones, new number for the others; `…` between hunks.

    With a limit, very long lines are cut too.
    """
    lines = change.diff.splitlines()
    shown = lines if limit is None or len(lines) <= limit else lines[:limit]
    text = Text(no_wrap=plain_text)
    digits = max((len(str(number)) for number, *_ in _numbered(lines)), default=1)
    for number, sign, content, style in _numbered(shown):
        if sign == "@":
            text.append(" " * digits + " …\n", "muted")
            continue
        text.append(f"{number or '':>{digits}} {sign} ", style or "muted")
        beyond = len(content) - _LONGEST_LINE
        if limit is not None and beyond > 0:
            text.append(revealed(content[:_LONGEST_LINE]), style)
            text.append(f" … {beyond:,} more characters\n", "muted")
        else:
            text.append(revealed(content) + "\n", style)
    if len(shown) < len(lines):
        text.append(f"… {len(lines) - len(shown):,} more lines\n", "muted")
    text.rstrip()
    return text


def _numbered(lines: list[str]) -> Iterator[tuple[int, str, str, str]]:
    """(number, sign, text, style) of each line; the sign `@` stands for the gap between two hunks."""
    old = new = 1
    first = True
    for line in lines:
        if hunk := _HUNK.match(line):
            old, new = int(hunk[1]), int(hunk[2])
            if not first:
                yield 0, "@", "", "muted"
        elif line.startswith("+"):
            yield new, "+", line[1:], "added"
            new += 1
        elif line.startswith("-"):
            yield old, "-", line[1:], "removed"
            old += 1
        elif line.startswith("\\"):
            yield 0, " ", line[2:], "muted"
        else:
            yield new, " ", line[1:], ""
            old, new = old + 1, new + 1
        first = False
