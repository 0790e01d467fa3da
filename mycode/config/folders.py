"""Where things live: `MYCODE_HOME` moves everything, else the XDG folders."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct


class Folders(Struct, frozen=True):
    """`config` holds settings.toml and AGENTS.md; `data` holds sessions, history, trust and the audit log."""

    config: Path
    data: Path
    managed: Path = Path("/etc/mycode/settings.toml")

    @property
    def settings_file(self) -> Path:
        return self.config / "settings.toml"

    @property
    def sessions(self) -> Path:
        return self.data / "sessions"


def find_folders(env: Mapping[str, str]) -> Folders:
    """Computes paths only; nothing is created."""
    if moved := env.get("MYCODE_HOME"):
        base = Path(moved).expanduser().absolute()
        return Folders(config=base, data=base)
    home = Path(env.get("HOME") or Path.home())
    return Folders(
        config=_xdg(env, "XDG_CONFIG_HOME", home / ".config") / "mycode",
        data=_xdg(env, "XDG_DATA_HOME", home / ".local" / "share") / "mycode",
    )


def _xdg(env: Mapping[str, str], name: str, fallback: Path) -> Path:
    value = env.get(name, "")
    return Path(value) if value.startswith("/") else fallback
