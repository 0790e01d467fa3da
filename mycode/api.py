"""For programs: the context engine without a session, a key or a network.

from mycode.api import compress
shorter = compress(messages, budget_tokens=8_000)
"""

from __future__ import annotations

from typing import Any, Literal, cast, get_args

import msgspec

from mycode.context.compress import compress as compress_by_rules
from mycode.context.inspect import describe
from mycode.context.transcripts import read_items, tokens
from mycode.core.errors import InputError, MycodeError
from mycode.llm.tokens import Tokens

__all__ = ["MycodeError", "compress", "count_tokens", "inspect"]

Transcript = list[dict[str, Any]]
Mode = Literal["rules", "llm", "hybrid"]
# Of the public vocabularies the one that seldom counts less than another: what fits by it fits by newer ones.
COUNTED_AS = "gpt-4"


def compress(
    messages: Transcript,
    budget_tokens: int,
    mode: Mode = "rules",
    *,
    model: str | None = None,
    api_base: str | None = None,
) -> Transcript:
    """Fewer messages under `budget_tokens`, in their own style (OpenAI or Anthropic); the input is not changed.

    Kept are system messages, the first request, the newest steps, and of the rest what is likely to be needed again,
    readable and under headers; `llm` and `hybrid` add an account by `model`. Tokens are counted exactly (cl100k), 4 a
    message and 8 a call beside their texts. Raises InputError with one sentence for what is no transcript or a budget
    that nothing fits in, and a ModelError when a model was wanted and could not answer.
    """
    counter = _counter()
    if mode not in get_args(Mode):
        message = f"There is no mode {mode!r}: known are {', '.join(get_args(Mode))}."
        raise InputError(message)
    if not isinstance(cast("object", budget_tokens), int):
        message = f"A budget is a whole number of tokens; this is {budget_tokens!r}."
        raise InputError(message)
    if mode == "rules":
        return compress_by_rules(messages, budget_tokens, count=counter.count)
    if model is None:
        message = f"The mode {mode} asks a model: name one, e.g. model='openai/gpt-5-mini'."
        raise InputError(message)
    import asyncio
    import os

    from mycode.context.narrated import compress_with_model
    from mycode.llm.connect import ModelChoice, open_model

    opened = open_model(ModelChoice(name=model, api_base=api_base), os.environ)
    return asyncio.run(compress_with_model(messages, budget_tokens, count=counter.count, models=(opened,), mode=mode))


def inspect(messages: Transcript, *, top: int = 10) -> dict[str, Any]:
    """What a transcript is made of: tokens by role and tool, the `top` largest messages, duplicates, savings."""
    found = [message for item in read_items(messages) for message in item.messages]
    plain: dict[str, Any] = msgspec.to_builtins(describe(found, _counter().count))
    plain["largest"] = plain["largest"][:top]
    return plain


def count_tokens(messages: Transcript) -> int:
    """Exact tokens (cl100k) of a transcript: texts, 4 a message, and 8 a call beside its name and arguments."""
    counter = _counter()
    return sum(tokens(message, counter.count) for message in messages)


def _counter() -> Tokens:
    counter = Tokens(COUNTED_AS)
    counter.load()
    return counter
