"""The settings of the five design documents, read as a person's own settings file would be."""

from pathlib import Path

from mycode.config.folders import Folders
from mycode.config.load import load
from mycode.context.policy import Policy

HERE = Path(__file__).parent


def profile(name: str, *switches: str) -> Policy:
    """The policy of `S0` to `S4`; `switches` such as `auto.enabled=true` change single settings of `[context]`."""
    env = {}
    for switch in switches:
        key, _, value = switch.partition("=")
        env["MYCODE_CONTEXT__" + key.upper().replace(".", "__")] = value
    return load(_Profile(HERE, HERE, managed=HERE / "none", name=name), env=env, flags={}).settings.context


class _Profile(Folders, frozen=True):
    name: str = ""

    @property
    def settings_file(self) -> Path:
        return self.config / f"{self.name}.toml"
