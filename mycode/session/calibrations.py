"""What requests taught about models, kept from one session to the next: how they count (R36), how much they take."""

import os
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from mycode.context.budget import Learned

MOST = 64


class Calibrations:
    """A small JSON file: `provider/model` to what was learned. One that cannot be read counts as empty.

    An entry may also be a mere number, the multiplier, as older versions wrote it.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def get(self, provider: str, model: str) -> Learned | None:
        """What was kept, None if there is nothing."""
        return self._read().get(f"{provider}/{model}")

    def keep(self, learned: dict[tuple[str, str], Learned]) -> None:
        """Adds what was learned to what others kept meanwhile; a disk that refuses is no reason to complain."""
        values = self._read()
        news = {
            f"{provider}/{model}": replace(value, multiplier=round(value.multiplier, 4))
            for (provider, model), value in learned.items()
        }
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

    def _read(self) -> dict[str, Learned]:
        try:
            found = msgspec.json.decode(self._file.read_bytes(), type=dict[str, float | Learned])
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return {}
        entries = {name: one if isinstance(one, Learned) else Learned(one) for name, one in found.items()}
        return {name: one for name, one in entries.items() if _sane(one)}


def _sane(learned: Learned) -> bool:
    return 0.5 <= learned.multiplier <= 2.0 and 0 <= learned.window <= learned.of
