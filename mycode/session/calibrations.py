"""What was learned about counting tokens, per provider and model, kept from one session to the next (R36)."""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

MOST = 64


class Calibrations:
    """A small JSON file: `provider/model` to real tokens per counted token. One that cannot be read counts as empty."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def get(self, provider: str, model: str) -> float | None:
        """The multiplier that was kept, None if there is none."""
        return self._read().get(f"{provider}/{model}")

    def keep(self, learned: dict[tuple[str, str], float]) -> None:
        """Adds what was learned to what others kept meanwhile; a disk that refuses is no reason to complain."""
        values = self._read()
        news = {f"{provider}/{model}": round(value, 4) for (provider, model), value in learned.items()}
        if all(values.get(name) == value for name, value in news.items()):
            return
        for name, value in news.items():
            values.pop(name, None)
            values[name] = value
        raw = msgspec.json.format(msgspec.json.encode(dict(list(values.items())[-MOST:])), indent=1)
        beside = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
                out.write(raw)
            beside.replace(self._file)
        except OSError:
            with suppress(OSError):
                beside.unlink()

    def _read(self) -> dict[str, float]:
        try:
            found = msgspec.json.decode(self._file.read_bytes(), type=dict[str, float])
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return {}
        return {name: value for name, value in found.items() if 0.5 <= value <= 2.0}
