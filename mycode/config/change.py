"""Changes one value in the person's settings file and leaves everything else in it as it was."""

import tomllib
from pathlib import Path

import msgspec

from mycode.config.load import literal
from mycode.config.locking import locked, replace_text
from mycode.config.settings import Settings
from mycode.core.errors import ConfigError


def set_value(file: Path, key: str, text: str) -> Path:
    """Writes `key = text` (a TOML literal, else a string) and returns the file. Raises ConfigError before writing."""
    try:
        with locked(file):
            return _set_value(file, key, text)
    except OSError as error:
        message = f"{file} cannot be written: {error.strerror or error}. It is as it was."
        raise ConfigError(message) from error


def _set_value(file: Path, key: str, text: str) -> Path:
    import tomlkit

    try:
        document = tomlkit.parse(file.read_text(encoding="utf-8")) if file.exists() else tomlkit.document()
    except (OSError, ValueError) as error:
        message = f"{file} cannot be read: {error}. Mend or remove it."
        raise ConfigError(message) from error
    value = literal(text)
    *tables, last = key.split(".")
    place = document
    for name in tables:
        place = place.setdefault(name, tomlkit.table())
    place[last] = value
    written = tomlkit.dumps(document)
    try:
        msgspec.convert(tomllib.loads(written), Settings, strict=True)
    except msgspec.ValidationError as error:
        message = f"{key} = {text} does not fit: {error}. See `mycode config keys`."
        raise ConfigError(message) from error
    replace_text(file, written)
    return file
