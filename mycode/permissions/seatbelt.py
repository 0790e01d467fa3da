"""The profile that tells macOS what a boxed command may do."""

from __future__ import annotations

from typing import Literal


def seatbelt_profile(
    box: Literal["read-only", "workspace-write"], roots: tuple[str, ...], *, network: bool, hidden: tuple[str, ...]
) -> str:
    """A profile: reads allowed but for hidden paths, writes only in the roots and temporary folders, network or not.

    Later lines win, so what is taken away comes last.
    """
    lines = [
        "(version 1)",
        "(deny default)",
        "(allow process-exec process-fork signal sysctl-read mach-lookup ipc-posix-shm)",
        "(allow file-read*)",
        '(allow file-write* (literal "/dev/null") (literal "/dev/tty"))',
        '(allow file-write* (subpath "/private/tmp") (subpath "/private/var/folders"))',
    ]
    if box == "workspace-write":
        lines += [f"(allow file-write* (subpath {_quoted(root)}))" for root in roots]
        for root in roots:
            kept = " ".join(f"(subpath {_quoted(f'{root}/{name}')})" for name in _KEPT)
            lines.append(f"(deny file-write* {kept})")
    lines += [f"(deny file-read* file-write* (subpath {_quoted(path)}))" for path in hidden]
    lines.append("(allow network*)" if network else "(deny network*)")
    return "\n".join(lines) + "\n"


_KEPT = (
    ".git/hooks",
    ".git/config",
    ".mycode",
    ".vscode",
    ".idea",
    ".husky",
    ".githooks",
    ".github/workflows",
    ".envrc",
)


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
