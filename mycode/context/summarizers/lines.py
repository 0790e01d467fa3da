"""A fold told as one line per message: the plainest form, each update put below the one before."""

from __future__ import annotations

from collections.abc import Sequence

from mycode.context import digests
from mycode.context.summarizers import Draft, Fold
from mycode.core.messages import AssistantMessage, ToolCall, ToolResult

OMITTED = "[Summary omitted - insufficient budget]"
TRUNCATED = "\n[Summary truncated]"
CONDENSED = "[Condensed history]\n"
LEAST = 50
"""With room for fewer tokens than this no summary is worth its title (R23)."""

_JOINTS = 2
"""Tokens by which parts may count less than their whole."""


def tell(fold: Fold) -> Draft:
    """The draft for a fold in lines, merged with the record it continues; pure (R13, R20, R23)."""
    if fold.budget_tokens < LEAST:
        return Draft("rules", OMITTED)
    new = fold.redact(block(fold))
    if fold.previous is None or not fold.previous.narrative:
        return Draft("rules", cut(new, fold))
    earlier, version = fold.previous.narrative, fold.previous.version + 1
    text = merged(earlier, new, version, fold.budget_tokens)
    if fold.count(text) <= fold.budget_tokens:
        return Draft("rules", text)
    return Draft("rules", condensed(earlier if earlier in text else "", new, version, fold))


def block(fold: Fold) -> str:
    """A header with the number of items, and a line for each."""
    calls: dict[str, ToolCall] = {}
    lines: list[str] = []
    for seq, message in fold.messages:
        if isinstance(message, AssistantMessage):
            calls.update((call.id, call) for call in message.tool_calls)
        if isinstance(message, ToolResult):
            line = digests.line(digests.tool_summary(calls.get(message.call_id), message))
        else:
            who = "assistant" if isinstance(message, AssistantMessage) else "user"
            said = " ".join(message.text.split())
            named = ", ".join(call.name for call in getattr(message, "tool_calls", ()))
            line = f"[✓ {who}: {said[:120] or 'called ' + named}]"
        lines.append(f"{line} (m{seq})")
    return "\n".join([f"--- Summarized Context ({len(lines)} items) ---", *lines])


def merged(earlier: str, new: str, version: int, limit: int) -> str:
    """The earlier text with the new one as a numbered update; the new one alone, marked, if both are too long (R20).

    Only lines go with the earlier text: facts that must be kept are added to every summary afterwards (C8).
    """
    both = f"{earlier}\n\n[Update {version}]\n{new}"
    return both if -(-len(both) // 4) <= 2 * limit else CONDENSED + new


def condensed(earlier: str, new: str, version: int, fold: Fold) -> str:
    """The new text with as many of the newest lines of the earlier one as there is room for (C8)."""
    update = f"\n\n[Update {version}]\n{new}"
    kept = _newest(earlier.split("\n"), fold.budget_tokens - fold.count(CONDENSED + update), fold) if earlier else []
    if kept:
        return CONDENSED + "\n".join(kept) + update
    return CONDENSED + cut(new, fold, fold.count(CONDENSED))


def cut(text: str, fold: Fold, spent: int = 0) -> str:
    """A block within what is left of the fold's budget: its header and newest lines, marked if some are missing."""
    if fold.count(text) + spent <= fold.budget_tokens:
        return text
    header, *rows = text.split("\n")
    room = fold.budget_tokens - spent - fold.count(f"{header}\n{TRUNCATED}")
    kept = _newest(rows, room, fold)
    if not kept and rows:
        kept = [_beginning(rows[-1], room - _JOINTS, fold)]
    return "\n".join([header, *kept]) + TRUNCATED


def _newest(rows: Sequence[str], room: int, fold: Fold) -> list[str]:
    """The last rows that fit into so many tokens."""
    start, room = len(rows), room - _JOINTS
    while start and (room := room - fold.count(rows[start - 1] + "\n")) >= 0:
        start -= 1
    return list(rows[start:])


def _beginning(row: str, room: int, fold: Fold) -> str:
    chars = max(0, room * len(row) // max(1, fold.count(row)))
    while chars and fold.count(row[:chars]) > room:
        chars = chars * 9 // 10
    return row[:chars]
