"""The box for shell commands: bubblewrap on Linux, seatbelt on macOS, or a plain word that there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from mycode.core.errors import SandboxError
from mycode.core.tools import Sandbox
from mycode.permissions.git_programs import git_programs
from mycode.permissions.listed import listed
from mycode.permissions.places import inside
from mycode.permissions.protected import SHELL_FILES
from mycode.permissions.seals import Held, absent, kept, links, redirections, unasked
from mycode.permissions.seatbelt import seatbelt_profile

Kind = Literal["auto", "read-only", "workspace-write", "off"]
Box = Literal["read-only", "workspace-write"]

# Programs that put others into a box are never taken from a folder that a project could fill.
_TRUSTED_PATH = "/usr/bin:/bin:/usr/local/bin:/usr/sbin:/run/current-system/sw/bin:/opt/homebrew/bin"
_KEYS = listed(
    ".ssh .gnupg .aws .azure .kube .docker .config/gcloud .config/gh .config/op .config/rclone"
    " .password-store .netrc .git-credentials .pgpass .npmrc .pypirc .vault-token .local/share/keyrings"
    " .mozilla .config/google-chrome .config/chromium .bash_history .zsh_history .claude .claude.json .codex .gemini"
    " .config/github-copilot .local/share/opencode .colima .lima .orbstack .rd .python_history .psql_history"
    " .mysql_history .node_repl_history .oci .age .my.cnf .dockercfg .s3cfg .boto .terraformrc .databrickscfg .kaggle"
    " .terraform.d/credentials.tfrc.json .cargo/credentials .cargo/credentials.toml .gem/credentials .m2/settings.xml"
    " .cache/huggingface/token .config/hub .config/glab-cli .config/doctl .config/hcloud .config/stripe .fly/config.yml"
)


def detect(
    kind: Kind,
    workspace: Path,
    *,
    added: Iterable[Path] = (),
    network: bool = False,
    hidden: Iterable[Path] = (),
    home: Path | None = None,
) -> Sandbox:
    """The box that this system can give, tried with a real command.

    `auto` takes what works and says so when nothing does; asking for a box by name where there is none is a
    `SandboxError`. `hidden` are folders that nothing inside may see (our own data), besides the usual places of keys.
    """
    if kind == "off":
        return NoSandbox("as permissions.sandbox says")
    box: Box = "read-only" if kind == "read-only" else "workspace-write"
    home = Path(os.path.realpath(home or Path.home()))
    roots = tuple(os.path.realpath(folder) for folder in (workspace, *added))
    secrets = (*(str(home / name) for name in _KEYS), *(os.path.realpath(folder) for folder in hidden))
    found: Bubblewrap | Seatbelt | None = None
    reason = f"there is none for {sys.platform}"
    if box == "workspace-write" and "/" in roots:
        reason = "the workspace is the whole disk, and nothing would be outside it"
    elif sys.platform == "darwin" and (program := shutil.which("sandbox-exec", path=_TRUSTED_PATH)):
        found = Seatbelt(program, box, roots, network=network, hidden=secrets, home=home)
    elif sys.platform.startswith("linux"):
        program = shutil.which("bwrap", path=_TRUSTED_PATH)
        reason = "bubblewrap is not installed"
        if program:
            found = Bubblewrap(program, box, roots, network=network, hidden=secrets, home=home)
    if found is not None:
        reason = _probe(found, roots[0])
        if not reason:
            return found
    if kind == "auto":
        return NoSandbox(reason)
    how = "Start in a folder of a project" if "/" in roots else "Install bubblewrap (bwrap)"
    raise SandboxError(f"A sandbox was asked for, but {reason}. {how}, or use --sandbox off.")


def _probe(box: Bubblewrap | Seatbelt, cwd: str) -> str:
    """Why the box does not work here, or "" when a command ran in it."""
    try:
        done = subprocess.run(box.wrap(("true",), cwd), capture_output=True, timeout=10, check=False, text=True)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it does not start ({type(error).__name__})"
    finally:
        box.ended()
    if done.returncode == 0:
        return ""
    lines = done.stderr.strip().splitlines()
    return f"it does not work here ({lines[-1] if lines else f'exit {done.returncode}'})"


class NoSandbox:
    """No box; `state` says why."""

    active = False

    def __init__(self, reason: str) -> None:
        self.state = f"off ({reason})"

    def wrap(self, argv: tuple[str, ...], cwd: str) -> tuple[str, ...]:
        del cwd
        return argv

    def ended(self) -> None:
        return


class Bubblewrap:
    """A box of Linux namespaces: the system read-only, the workspace writable, keys hidden, no network."""

    active = True

    def __init__(
        self, program: str, box: Box, roots: tuple[str, ...], *, network: bool, hidden: tuple[str, ...], home: Path
    ) -> None:
        self._program = program
        self._box = box
        self._roots = roots
        self._network = network
        self._hidden = hidden
        self._home = home
        self._held = Held()

    @property
    def state(self) -> str:
        return _state("bubblewrap", self._box, network=self._network)

    def wrap(self, argv: tuple[str, ...], cwd: str) -> tuple[str, ...]:
        # A mount point must exist when its turn comes: first the whole tree, then what is laid over it.
        options = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        for place in ("/tmp", "/var/tmp", "/run"):  # noqa: S108 - mount points inside the box
            if Path(place).is_dir() and not Path(place).is_symlink():
                options += ["--tmpfs", place]
        if self._network:
            options += ["--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve"]
        writable = self._box == "workspace-write"
        for root in self._roots:
            options += ["--bind" if writable else "--ro-bind", root, root]
        if writable:
            options += self._sealed()
        # What is hidden is asked for each time: a login may have been made since the last command.
        for path in dict.fromkeys(os.path.realpath(path) for path in self._hidden if Path(path).exists()):
            options += ["--tmpfs", path] if Path(path).is_dir() else ["--ro-bind", "/dev/null", path]
        options += ["--unshare-all", *(["--share-net"] if self._network else []), "--die-with-parent", "--new-session"]
        options += ["--cap-drop", "ALL"]
        return (self._program, *options, "--chdir", cwd, "--", *argv)

    def ended(self) -> None:
        self._held.release()

    def _sealed(self) -> list[str]:
        """What runs later outside the box stays as it is, and cannot come to be."""
        roots = [Path(root) for root in self._roots]
        there = [path for root in roots for path in kept(root, self._home)]
        missing = [path for root in roots for path in absent(root, self._home)]
        leading = frozenset[Path]().union(*(links(root, (*map(Path, there), *missing)) for root in roots))
        nowhere = [Path(os.path.realpath(link)) for link in leading if not link.exists()]
        forbidden = [*nowhere, *(path for root in roots for path in redirections(root))]
        # A link in a circle leads to itself.
        forbidden = [path for path in forbidden if not os.path.lexists(path) and self._holds(str(path))]
        places = self._held.hold(
            missing, forbidden, leading, lambda: [path for root in roots for path in unasked(root)]
        )
        paths = [*there, *map(str, places)]
        found = {os.path.realpath(path) for path in paths if Path(path).exists() and Path(path).name != ".github"}
        sealed = sorted(path for path in found if self._holds(path))
        # A folder that is a mount point itself cannot be moved away to make room for another.
        above = {str(folder) for path in sealed for folder in Path(path).parents} - set(self._roots)
        pinned = sorted(folder for folder in above if self._holds(folder))
        options = [word for path in pinned if path not in sealed for word in ("--bind", path, path)]
        return options + [word for path in sealed for word in ("--ro-bind", path, path)]

    def _holds(self, path: str) -> bool:
        return any(inside(path, root) for root in self._roots)


class Seatbelt:
    """A box made by macOS from a profile."""

    active = True

    def __init__(
        self, program: str, box: Box, roots: tuple[str, ...], *, network: bool, hidden: tuple[str, ...], home: Path
    ) -> None:
        self._program = program
        self._box = box
        self._network = network
        named = [path for root in roots for path in git_programs(Path(root))]
        if any(inside(str(home), root) for root in roots):
            named += [str(home / name) for name in SHELL_FILES]
        self._profile = seatbelt_profile(box, roots, network=network, hidden=hidden, kept=tuple(named))

    @property
    def state(self) -> str:
        return _state("seatbelt", self._box, network=self._network)

    def wrap(self, argv: tuple[str, ...], cwd: str) -> tuple[str, ...]:
        del cwd
        return (self._program, "-p", self._profile, *argv)

    def ended(self) -> None:
        return


def _state(name: str, box: Box, *, network: bool) -> str:
    what = "workspace writable" if box == "workspace-write" else "everything read-only"
    return f"{name}, {what}, {'network open' if network else 'no network'}"
