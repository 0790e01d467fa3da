"""How settings are shown to a person: as the TOML they could be written in (pure)."""

from collections.abc import Iterator
from typing import Any

import msgspec

from mycode.config.load import Loaded
from mycode.config.settings import Settings


def settings_lines(loaded: Loaded, *, origin: bool, everything: bool) -> Iterator[str]:
    """The values that were set somewhere (or all of them), table by table, each with its origin if asked for."""
    for key, value in _leaves(loaded.settings):
        came_from = loaded.origins.get(key)
        if came_from is None and not everything:
            continue
        yield f"{key} = {toml(value)}" + (f"  # {came_from or 'default'}" if origin else "")


def default_lines() -> Iterator[str]:
    """Every key with its default."""
    for key, value in _leaves(Settings()):
        yield f"{key} = {toml(value)}"


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


def _leaves(table: msgspec.Struct, path: str = "") -> Iterator[tuple[str, Any]]:
    for field in msgspec.structs.fields(table):
        value = getattr(table, field.name)
        key = f"{path}{field.name}"
        if isinstance(value, msgspec.Struct):
            yield from _leaves(value, f"{key}.")
        else:
            yield key, value
