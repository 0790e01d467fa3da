"""Which folders the person trusts: bound to the resolved root and to what its settings files said at that time."""

import hashlib
import json
from pathlib import Path

from mycode.config.locking import locked, replace_text
from mycode.core.errors import ConfigError

_ACTING_FILES = (".mycode/settings.toml", ".mycode/settings.local.toml", ".mycode/hooks.toml", ".mcp.json")


_LARGEST = 4_000_000


def fingerprint(root: Path) -> str:
    """sha256 (hex) over the project's files that could act; empty when it has none. `ConfigError` for a huge one."""
    digest = hashlib.sha256()
    found = False
    for name in _ACTING_FILES:
        data = _content(root / name)
        if data is None:
            continue
        found = True
        digest.update(name.encode() + b"\0" + data + b"\0")
    return digest.hexdigest() if found else ""


def is_trusted(data_folder: Path, root: Path) -> bool:
    """True when this very root was trusted with these very files; a changed file asks for trust again."""
    trusted = _read(data_folder).get(str(root.resolve()))
    try:
        return trusted is not None and trusted == fingerprint(root)
    except ConfigError:
        return False


def trust(data_folder: Path, root: Path) -> None:
    """Remembers the root and what its acting files say now; the record is private (0600) and replaced whole."""
    with locked(_file(data_folder)):
        _write(data_folder, _read(data_folder) | {str(root.resolve()): fingerprint(root)})


def distrust(data_folder: Path, root: Path) -> None:
    with locked(_file(data_folder)):
        record = _read(data_folder)
        record.pop(str(root.resolve()), None)
        _write(data_folder, record)


def _content(file: Path) -> bytes | None:
    """What a regular file holds; a named pipe in its place must not keep us waiting, nor a file without end."""
    try:
        if not file.is_file():
            return None
        with file.open("rb") as opened:
            data = opened.read(_LARGEST + 1)
    except OSError:
        return None
    if len(data) > _LARGEST:
        message = f"{file} is too large to be trusted: {_LARGEST:,} bytes at most."
        raise ConfigError(message)
    return data


def _file(data_folder: Path) -> Path:
    return data_folder / "trust.json"


def _read(data_folder: Path) -> dict[str, str]:
    try:
        record = json.loads(_file(data_folder).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        message = f"{_file(data_folder)} cannot be read: {error}. Remove it to start with no trusted folder."
        raise ConfigError(message) from error
    return {str(key): str(value) for key, value in record.items()} if isinstance(record, dict) else {}


def _write(data_folder: Path, record: dict[str, str]) -> None:
    try:
        replace_text(_file(data_folder), json.dumps(record, indent=1, sort_keys=True))
    except OSError as error:
        message = f"{_file(data_folder)} cannot be written: {error.strerror or error}. It is as it was."
        raise ConfigError(message) from error
