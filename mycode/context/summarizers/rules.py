"""A fold told by rules alone: no model, no cost, the same text every time."""

from __future__ import annotations

from mycode.context.summarizers import Draft, Fold
from mycode.core.messages import AssistantMessage, Message, UserMessage


class Rules:
    """The summary that always works (R3, R27)."""

    async def summarize(self, fold: Fold) -> Draft:
        return tell(fold)


def tell(fold: Fold) -> Draft:
    """The draft for a fold; pure."""
    lines: list[str] = []
    if fold.previous is not None and fold.previous.digest:
        lines.extend(fold.previous.digest.splitlines())
    lines.extend(_line(seq, message) for seq, message in fold.messages)
    room = fold.budget_tokens
    kept: list[str] = []
    for line in reversed(lines):
        cost = fold.count(line) + 1
        if cost > room:
            break
        room -= cost
        kept.append(line)
    return Draft("rules", digest=fold.redact("\n".join(reversed(kept))))


def _line(seq: int, message: Message) -> str:
    text = " ".join(message.text.split())[:200]
    if isinstance(message, UserMessage):
        return f"m{seq} user: {text}"
    if isinstance(message, AssistantMessage):
        calls = "; ".join(f"{call.name} {call.arguments[:120]}" for call in message.tool_calls)
        return f"m{seq} assistant: {text}" + (f" [{calls}]" if calls else "")
    return f"m{seq} {'error' if message.is_error else 'result'}: {text}"
