"""How settings are shown to a person: as the TOML they could be written in (pure)."""

from collections.abc import Iterator
from typing import Any

import msgspec

from mycode.config.load import Loaded
from mycode.config.settings import Settings


def settings_lines(loaded: Loaded, *, origin: bool, everything: bool) -> Iterator[str]:
    """The values that were set somewhere (or all of them), each with its origin if asked for."""
    for key, value, came_from in loaded.values():
        if everything or came_from != "default":
            yield f"{key} = {toml(value)}" + (f"  # {came_from}" if origin else "")


def default_lines() -> Iterator[str]:
    """Every key with its default."""
    return settings_lines(Loaded(Settings(), {}), origin=False, everything=True)


def toml(value: Any) -> str:
    """A value as TOML writes it; None, which TOML lacks, as `unset`."""
    match value:
        case None:
            return "unset"
        case bool():
            return str(value).lower()
        case str():
            return msgspec.json.encode(value).decode()
        case tuple() | list():
            return "[" + ", ".join(toml(item) for item in value) + "]"
        case _:
            return str(value)
