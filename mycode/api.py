"""For programs: the context engine without a session, a key or a network.

from mycode.api import compress
shorter = compress(messages, budget_tokens=8_000)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from mycode.context.compress import compress as compress_with
from mycode.context.inspect import describe
from mycode.context.transcripts import read_items, tokens
from mycode.core.errors import MycodeError

__all__ = ["MycodeError", "compress", "count_tokens", "inspect"]

Transcript = list[dict[str, Any]]


def compress(messages: Transcript, budget_tokens: int, mode: Literal["rules"] = "rules") -> Transcript:
    """Fewer messages under `budget_tokens`, in their own style (OpenAI lists, Anthropic blocks); the input stays as it is.

    Kept are system messages, the first request, the newest steps, and of the rest what is likely to be needed again,
    readable and under headers. Counts are exact (o200k). Raises InputError with one sentence for what is no transcript,
    or for a budget that nothing fits in.
    """
    return compress_with(messages, budget_tokens, count=_counter(), mode=mode)


def inspect(messages: Transcript, *, top: int = 10) -> dict[str, Any]:
    """What a transcript is made of: tokens by role and tool, the `top` largest messages, duplicates, savings."""
    found = [message for item in read_items(messages) for message in item.messages]
    described = describe(found, _counter())
    plain: dict[str, Any] = msgspec.to_builtins(described)
    plain["largest"] = plain["largest"][:top]
    return plain


def count_tokens(messages: list[Mapping[str, Any]] | Transcript) -> int:
    """Exact tokens (o200k) of a transcript: texts, 4 a message, and 8 a call beside its name and arguments."""
    count = _counter()
    return sum(tokens(message, count) for message in messages)


def _counter() -> Callable[[str], int]:
    from mycode.llm.tokens import Tokens

    counter = Tokens()
    counter.load()
    return counter.count
