"""A fold told as one line per message: the plainest form, each update put below the one before."""

from __future__ import annotations

from mycode.context import digests
from mycode.context.summarizers import Draft, Fold
from mycode.core.messages import AssistantMessage, ToolCall, ToolResult

OMITTED = "[Summary omitted - insufficient budget]"
TRUNCATED = "\n[Summary truncated]"
LEAST = 50
"""With room for fewer tokens than this no summary is worth its title (R23)."""


def tell(fold: Fold) -> Draft:
    """The draft for a fold in lines, merged with the record it continues; pure (R13, R20, R23)."""
    if fold.budget_tokens < LEAST:
        return Draft("rules", OMITTED)
    text = fold.redact(block(fold))
    if fold.previous is not None and fold.previous.narrative:
        text = merged(fold.previous.narrative, text, fold.previous.version + 1, fold.budget_tokens)
    return Draft("rules", cut(text, fold))


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
    return both if -(-len(both) // 4) <= 2 * limit else f"[Condensed history]\n{new}"


def cut(text: str, fold: Fold) -> str:
    """The text within the fold's budget, its end marked if some is missing."""
    if fold.count(text) <= fold.budget_tokens:
        return text
    room = fold.budget_tokens - fold.count(TRUNCATED)
    chars = max(0, room * len(text) // max(1, fold.count(text)))
    while chars and fold.count(text[:chars]) > room:
        chars = chars * 9 // 10
    return text[:chars] + TRUNCATED
