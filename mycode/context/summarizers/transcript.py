"""The folded messages as a model reads them: cut, without secrets, and fenced as data."""

from __future__ import annotations

from collections.abc import Sequence

from mycode.context.summarizers import Fold
from mycode.core.messages import AssistantMessage, Message, ToolResult, UserMessage

_CHARS_PER_TOKEN = 3
_SHORTER = (1.0, 0.5, 0.25, 0.12, 0.06)


def transcript(fold: Fold, cap: int, message_chars: int, *, trim_oldest: bool) -> str:
    """The fold in at most `cap` tokens: every message a little shorter until all fit, the oldest left out last.

    With `trim_oldest` messages keep their length and the oldest go at once (R83). Secrets are masked, and whatever
    looks like the fence inside is broken, so that no message can step out of it.
    """
    shares = (1.0,) if trim_oldest else _SHORTER
    lines: list[str] = []
    for share in shares:
        limit = max(80, int(message_chars * share))
        lines = [_line(seq, message, limit) for seq, message in fold.messages]
        if sum(len(line) for line in lines) <= _CHARS_PER_TOKEN * cap:
            break  # a guess will do: what is too much in the end is left out below
    lines = _newest(lines, cap, fold)
    return f"<transcript>\n{fenced(fold.redact(chr(10).join(lines)))}\n</transcript>"


def fenced(text: str) -> str:
    """The text with every tag that could open or close a fence made harmless."""
    for tag in ("transcript", "previous_summary", "focus", "facts"):
        text = text.replace(f"</{tag}", f"<\\/{tag}").replace(f"<{tag}", f"<\\{tag}")
    return text


def _newest(lines: Sequence[str], cap: int, fold: Fold) -> list[str]:
    kept: list[str] = []
    room = cap
    for line in reversed(lines):
        cost = fold.count(line) + 1
        if cost > room:
            kept.append("(older messages are left out)")
            break
        room -= cost
        kept.append(line)
    return kept[::-1]


def _line(seq: int, message: Message, limit: int) -> str:
    match message:
        case UserMessage():
            return f"[m{seq} user] {_cut(message.text, limit)}" + (" [picture]" if message.images else "")
        case AssistantMessage():
            calls = "".join(f"\n  calls {call.name}({_cut(call.arguments, limit)})" for call in message.tool_calls)
            return f"[m{seq} assistant] {_cut(message.text, limit)}{calls}"
        case ToolResult():
            kind = "tool error" if message.is_error else "tool result"
            return f"[m{seq} {kind}] {_cut(message.text, limit)}" + (" [picture]" if message.images else "")


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    return f"{text[:head]} […{len(text) - limit} characters…] {text[len(text) - (limit - head) :]}"
