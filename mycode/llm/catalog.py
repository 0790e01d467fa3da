"""What is known of a model before it is asked: window, output limit, price, abilities.

The facts are those of litellm's own table, read from its folder without importing it: the file has 3 MB, so the one
object is looked for in the mapped bytes (a millisecond or two) and nothing else is parsed. A model that is not there
gets a cautious window, marked as a guess, and no price: an unknown price is never 0.
"""

from __future__ import annotations

import mmap
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from mycode.core.models import ModelInfo, Price

GUESSED_WINDOW = 128_000
_TABLE = "model_prices_and_context_window_backup.json"


class Entry(Struct, frozen=True):
    """One object of the table, of which only these fields are read."""

    litellm_provider: str = ""
    mode: str = "chat"
    max_input_tokens: int | float | str | None = None
    max_output_tokens: int | float | str | None = None
    max_tokens: int | float | str | None = None
    input_cost_per_token: float | None = None
    output_cost_per_token: float | None = None
    cache_read_input_token_cost: float | None = None
    cache_creation_input_token_cost: float | None = None
    supports_vision: bool | None = None
    supports_reasoning: bool | None = None


def describe(name: str, *, window: int | None = None, output_limit: int | None = None) -> ModelInfo:
    """What is known of `provider/model`; what the user set wins over the table."""
    provider, _, model = name.partition("/")
    if not model:
        provider, model = provider_of(name) or "openai", name
    entry = find(name)
    known = _tokens(entry.max_input_tokens) or _tokens(entry.max_tokens) if entry else None
    size = window or known or GUESSED_WINDOW
    limit = output_limit or (_tokens(entry.max_output_tokens) if entry else None) or min(16_384, size // 4)
    return ModelInfo(
        name,
        provider,
        window=size,
        output_limit=min(limit, size),
        price=_price(entry),
        window_known=bool(window or known),
        vision=bool(entry and entry.supports_vision),
        reasoning=bool(entry and entry.supports_reasoning),
    )


def find(name: str) -> Entry | None:
    """The table's entry for `provider/model` or a bare model name; None when it has none."""
    provider, _, model = name.partition("/")
    names = [name]
    if model:
        aliases = {"ollama_chat": "ollama", "hosted_vllm": "", "vllm": ""}
        if alias := aliases.get(provider):
            names.append(f"{alias}/{model}")
        names.append(model)
    for candidate in names:
        entry = _read(candidate)
        # A bare name is some provider's own model: its price is not that of another provider with a like-named one.
        if entry is not None and (candidate != model or not model or entry.litellm_provider == provider):
            return entry
    return None


def provider_of(model: str) -> str | None:
    """Whose model a bare name is (`gpt-5` is openai's), or None."""
    entry = _read(model)
    return entry.litellm_provider or None if entry else None


@cache
def _read(key: str) -> Entry | None:
    path = _table()
    if path is None:
        return None
    needle = b"\n    " + msgspec.json.encode(key) + b": {"
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as table:
            start = table.find(needle)
            if start < 0:
                return None
            start += len(needle) - 1
            end = table.find(b"\n    }", start)
            return msgspec.json.decode(table[start : end + 6], type=Entry, strict=False)
    except (OSError, ValueError, msgspec.MsgspecError):
        return None  # a table of another shape than today's is as good as none


def _table() -> Path | None:
    from importlib.util import find_spec

    spec = find_spec("litellm")
    if spec is None or not spec.origin:
        return None
    path = Path(spec.origin).parent / _TABLE
    return path if path.exists() else None


def _tokens(value: int | float | str | None) -> int | None:
    try:
        return int(value) if value else None
    except ValueError:
        return None


def _price(entry: Entry | None) -> Price | None:
    if entry is None or entry.input_cost_per_token is None or entry.output_cost_per_token is None:
        return None
    return Price(
        entry.input_cost_per_token,
        entry.output_cost_per_token,
        entry.cache_read_input_token_cost,
        entry.cache_creation_input_token_cost,
    )
