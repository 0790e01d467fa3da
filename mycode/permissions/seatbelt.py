"""The profile that tells macOS what a boxed command may do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from mycode.permissions.seals import ABSENT


def seatbelt_profile(
    box: Literal["read-only", "workspace-write"],
    roots: tuple[str, ...],
    *,
    network: bool,
    hidden: tuple[str, ...],
    kept: tuple[str, ...] = (),
) -> str:
    """A profile: reads allowed but for hidden paths, writes only in the roots and temporary folders, network or not.

    Later lines win, so what is taken away comes last. `kept` is more that must not be written. Few services can be
    asked: others start programs outside the box for whoever asks.
    """
    services = " ".join(f"(global-name {_quoted(name)})" for name in (*_SERVICES, *(_NETWORK if network else ())))
    lines = [
        "(version 1)",
        "(deny default)",
        "(allow process-exec process-fork sysctl-read ipc-posix-shm ipc-posix-sem pseudo-tty)",
        "(allow signal (target same-sandbox))",
        f"(allow mach-lookup {services})",
        "(allow file-read*)",
        '(allow file-write* (literal "/dev/null") (literal "/dev/tty"))',
        '(allow file-write* (subpath "/private/tmp") (subpath "/private/var/folders"))',
    ]
    if box == "workspace-write":
        lines += [f"(allow file-write* (subpath {_quoted(root)}))" for root in roots]
        for root in roots:
            lines.append(f"(deny file-write* (literal {_quoted(f'{root}/.git')}))")
            lines.append(f"(deny file-write* {_below(f'{root}/{name}' for name in _KEPT)})")
        if kept:
            lines.append(f"(deny file-write* {_below(kept)})")
    lines += [f"(deny file-read* file-write* (subpath {_quoted(path)}))" for path in hidden]
    lines.append("(allow network*)" if network else "(deny network*)")
    return "\n".join(lines) + "\n"


_KEPT = (
    *(f".git/{name}" for name in ("hooks", "config", "config.worktree", "commondir")),
    *(name for name in ABSENT if name != ".git"),
    *(".npmrc", ".yarnrc", ".yarnrc.yml", ".pre-commit-config.yaml", ".gitmodules", ".gitlab-ci.yml"),
)
_SERVICES = (
    "com.apple.system.opendirectoryd.libinfo",
    "com.apple.system.logger",
    "com.apple.logd",
    "com.apple.system.notification_center",
    "com.apple.cfprefsd.agent",
    "com.apple.cfprefsd.daemon",
)
_NETWORK = (
    "com.apple.dnssd.service",
    "com.apple.SystemConfiguration.configd",
    "com.apple.trustd.agent",
    "com.apple.SecurityServer",
    "com.apple.networkd",
)


def _below(paths: Iterable[str]) -> str:
    return " ".join(f"(subpath {_quoted(path)})" for path in paths)


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
