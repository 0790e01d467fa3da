"""How settings files, the environment and the command line become one `Settings`, each value with its origin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from mycode.config.folders import Folders
from mycode.config.settings import Settings
from mycode.core.errors import ConfigError

SHORTHANDS = {
    "MYCODE_MODEL": "model.name",
    "MYCODE_API_BASE": "model.api_base",
    "MYCODE_TRANSPORT": "model.transport",
    "MYCODE_CONTEXT_WINDOW": "model.context_window",
    "MYCODE_PERMISSION_MODE": "permissions.mode",
}
_MERGED = {("permissions", "allow"), ("permissions", "ask"), ("permissions", "deny"), ("tools", "disallowed")}
_NOT_FOR_PROJECTS = {
    ("model", "api_base"),
    ("model", "transport"),
    # What a token costs and how far a run may go are limits that the person set.
    ("model", "input_price"),
    ("model", "output_price"),
    ("session", "max_steps"),
    # `tools.disallowed` narrows what is offered; this would widen it.
    ("tools", "allowed"),
    # It lets originals go.
    ("context", "originals"),
    ("permissions", "allow"),
    ("permissions", "mode"),
    ("permissions", "sandbox"),
    ("permissions", "network"),
    ("repl", "editor"),
    ("session", "persist"),
    ("session", "store_secrets"),
    ("session", "debug_log"),
    ("session", "max_budget_usd"),
}
# Some providers take the address to talk to from the name of the model.
_MODELS = {("model", "name"), ("context", "llm", "summarizer_model_preference")}
_Tree = dict[str, Any]


class Layer(Struct, frozen=True):
    """One source of settings: `origin` is what `mycode config show --origin` prints."""

    origin: str
    values: _Tree


class Loaded(Struct, frozen=True):
    """The settings in force, where each set value came from (dotted key -> origin), and what was not taken over."""

    settings: Settings
    origins: dict[str, str]
    warnings: tuple[str, ...] = ()

    def values(self) -> Iterator[tuple[str, Any, str]]:
        """(dotted key, value, origin) of every setting; the origin of what nobody set is `default`."""
        for key, value in _fields(self.settings, ""):
            yield key, value, self.origins.get(key, "default")


def load(
    folders: Folders, *, env: Mapping[str, str], flags: _Tree, project: Path | None = None, trusted: bool = False
) -> Loaded:
    """Highest first: managed file, flags, `MYCODE_*`, project local file, project file, user file, defaults.

    Scalars replace, lists of permission rules merge. The files under `project/.mycode` count only when `trusted`, and
    may tighten but never loosen. Raises ConfigError with the origin and the key.
    """
    warnings: list[str] = []
    layers = [Layer(str(folders.settings_file), _read(folders.settings_file))]
    for name in ("settings.toml", "settings.local.toml") if project else ():
        assert project is not None
        file = project / ".mycode" / name
        if not file.is_file():
            continue
        if not trusted:
            warnings.append(f"{file} was not read: this folder is not trusted (mycode trust).")
            continue
        values, dropped = _for_project(_read(file))
        layers.append(Layer(str(file), values))
        warnings.extend(f"{file}: {key} is not a project's to set; ignored." for key in dropped)
    layers.append(Layer("environment", _from_environment(env)))
    layers.append(Layer("command line", flags))
    layers.append(Layer(str(folders.managed), _read(folders.managed)))
    merged: _Tree = {}
    origins: dict[str, str] = {}
    for layer in layers:
        if layer.values:
            _convert(layer.values, layer.origin)
        for path, value in _leaves(layer.values):
            _put(merged, path, value)
            origins[".".join(path)] = layer.origin
    return Loaded(_convert(merged, "the settings taken together"), origins, tuple(warnings))


def _read(file: Path) -> _Tree:
    if not file.exists():
        return {}
    import tomllib

    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        message = f"{file} cannot be read: {error}. Mend or remove it."
        raise ConfigError(message) from error


def _convert(values: _Tree, origin: str) -> Settings:
    try:
        return msgspec.convert(values, Settings, strict=True)
    except msgspec.ValidationError as error:
        text = str(error).replace("`$.", "`").replace("Object contains unknown field", "There is no setting")
        message = f"{origin}: {text}. See `mycode config keys` for all settings."
        raise ConfigError(message) from error


def _from_environment(env: Mapping[str, str]) -> _Tree:
    """`MYCODE_<TABLE>__<KEY>[__<KEY>]` and the short names; values are TOML literals, else plain text."""
    tree: _Tree = {}
    for name, text in sorted(env.items()):
        if name in SHORTHANDS:
            key = SHORTHANDS[name]
            _put(tree, tuple(key.split(".")), int(text) if text.isdecimal() and key.endswith("window") else text)
            continue
        if name.startswith("MYCODE_") and "__" in name:
            path = name.removeprefix("MYCODE_").lower().split("__")
            _put(tree, tuple(path), literal(text))
    return tree


def literal(text: str) -> object:
    """A value as it was typed: a TOML literal, else plain text."""
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _for_project(values: _Tree) -> tuple[_Tree, list[str]]:
    kept: _Tree = {}
    dropped: list[str] = []
    for path, value in _leaves(values):
        if path[:2] in _NOT_FOR_PROJECTS or (path in _MODELS and "://" in str(value)):
            dropped.append(".".join(path))
        else:
            _put(kept, path, value)
    return kept, dropped


def _leaves(tree: _Tree, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value


def _fields(table: Struct, path: str) -> Iterator[tuple[str, Any]]:
    for field in msgspec.structs.fields(table):
        value = getattr(table, field.name)
        if isinstance(value, Struct):
            yield from _fields(value, f"{path}{field.name}.")
        else:
            yield f"{path}{field.name}", value


def _put(tree: _Tree, path: tuple[str, ...], value: object) -> None:
    for key in path[:-1]:
        below: object = tree.setdefault(key, {})
        if not isinstance(below, dict):
            message = f"{'.'.join(path)} cannot be set below a plain value."
            raise ConfigError(message)
        tree = below
    if path in _MERGED and isinstance(value, list) and isinstance(tree.get(path[-1]), list):
        value = [*tree[path[-1]], *value]
    tree[path[-1]] = value
