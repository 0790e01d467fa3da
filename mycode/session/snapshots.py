"""Keeps states of a folder in a git store of our own, which the folder's own git never hears of."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from mycode.core.checkpoints import FileChange
from mycode.core.errors import SessionError
from mycode.tools.walking import find_git, quiet_git

# Nothing that a repository or its attributes could name is run, and no byte of a file is converted.
_SETTINGS = {
    "core.fsmonitor": "",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "diff.external": "",
    "safe.bareRepository": "explicit",
    "core.autocrlf": "false",
    "core.fileMode": "true",
    "core.protectNTFS": "false",
    "core.quotePath": "false",
    "core.fsync": "none",
    "gc.auto": "0",
    "submodule.recurse": "false",
}
_ATTRIBUTES = "* -text -ident -filter -working-tree-encoding !diff !eol\n"


class Limits(Struct, frozen=True):
    """What is too much to be kept: bytes of one file, files and bytes that are new at once, seconds of one git call."""

    file_bytes: int = 10_000_000
    files: int = 50_000
    bytes: int = 500_000_000
    seconds: float = 30.0


LIMITS = Limits()


class Recorded(Struct, frozen=True):
    """The tree of the folder as it is now, and the files that are not in it, each with the reason."""

    tree: str
    left_out: tuple[str, ...] = ()


class Snapshots:
    """The states of `root`, in the git folder `store`. Ignored files and repositories within are never in them.

    Blocking; for one thread at a time. Every failure is a `SessionError`.
    """

    def __init__(self, root: Path, store: Path, env: Mapping[str, str], limits: Limits = LIMITS) -> None:
        self._root = Path(os.path.realpath(root))
        self._store = Path(os.path.abspath(store))  # noqa: PTH100  # must not follow links
        self._limits = limits
        self._program = find_git(env.get("PATH", os.defpath), self._root)
        self._person_env = dict(env)
        self._env = _scrubbed(env, self._root, self._store)
        self._ready = False

    @property
    def available(self) -> bool:
        """Whether there is a git to do it with."""
        return self._program is not None

    def record(self) -> Recorded:
        """Keeps the folder as it is now; costs what changed since the last time."""
        self._open()
        changed = self._names("ls-files", "-z", "-o", "-m", "--exclude-standard") | self._kept_though_ignored()
        present, gone, left_out = self._sorted(changed)
        self._index(("--force-remove",), gone)
        left_out += self._index(("--add", "--replace"), present)
        return Recorded(self._git("write-tree").strip(), tuple(left_out))

    def commit(self, tree: str, name: str, words: str) -> str:
        """Names a tree, so that it is kept for good; returns its id."""
        made = self._git("commit-tree", tree, "-m", words).strip()
        self._git("update-ref", f"refs/{name}", made)
        return made

    def point(self, name: str, target: str | None) -> None:
        """Lets `name` stand for a commit or tree; None forgets it."""
        self._open()
        self._git("update-ref", *(("-d", f"refs/{name}") if target is None else (f"refs/{name}", target)))

    def tree_of(self, name: str) -> str | None:
        """The tree behind an id or name, None if there is none."""
        self._open()
        done = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{tree}}")
        return done.stdout.decode().strip() if done.returncode == 0 else None

    def commit_of(self, name: str) -> str | None:
        self._open()
        done = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        return done.stdout.decode().strip() if done.returncode == 0 else None

    def changes(self, now: str, then: str) -> tuple[FileChange, ...]:
        """What going from tree `now` to tree `then` does, by path."""
        kinds = _pairs(self._git("diff-tree", "-r", "-z", "--no-renames", "--name-status", now, then))
        rows = self._git(
            "diff-tree", "-r", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--numstat", now, then
        )
        lines = {path: (added, removed) for added, removed, path in (row.split("\t", 2) for row in _parts(rows))}
        return tuple(
            FileChange(path, _KINDS.get(kind, "changed"), *map(_count, lines.get(path, ("-", "-"))))
            for kind, path in kinds
        )

    def apply(self, now: str, then: str, changes: tuple[FileChange, ...]) -> None:
        """Takes the folder from tree `now`, in which it must be, to `then`, or not at all; `changes` lies between them.

        A file in the way that is in neither (an ignored one, say) stops it, and so does one changed at this moment.
        """
        if blocked := self._in_the_way(changes):
            message = f"The files cannot be taken back, nothing was changed: {', '.join(blocked[:5])} would be lost."
            raise SessionError(message)
        modes = self._modes(change.path for change in changes)
        # A file that was only touched is what it was; without a look at its bytes git would take it for changed.
        self._run("update-index", "-q", "--refresh")
        done = self._run("read-tree", "-m", "-u", now, then)
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().removeprefix("error: ")
            untouched = self.record().tree == now
            extent = "nothing was changed" if untouched else "some were: try again, or go back to the state just left"
            message = f"The files cannot be taken back, {extent}: {said}"
            raise SessionError(message)
        for path, mode in modes.items():
            _restrict(self._root / path, mode)

    # Helpers

    def _open(self) -> None:
        if self._ready:
            return
        try:
            # Each by itself: `parents=True` would leave the upper ones to the umask, as git would its files.
            for folder in (*reversed(self._store.parents), self._store):
                folder.mkdir(mode=0o700, exist_ok=True)
            if not (self._store / "HEAD").exists():
                self._git("init", "--quiet", "--shared=0600")
            (self._store / "index.lock").unlink(missing_ok=True)  # of a process that was killed
            info = self._store / "info"
            info.mkdir(mode=0o700, exist_ok=True)
            _write_private(info / "attributes", _ATTRIBUTES.encode())
            _write_private(info / "exclude", self._excluded())
        except OSError as error:
            message = f"Checkpoints cannot be kept: {error.strerror}."
            raise SessionError(message) from error
        self._ready = True

    def _excluded(self) -> bytes:
        """What the person excludes beside `.gitignore`, and our own folder should it lie in the workspace."""
        own = b""
        store = Path(os.path.realpath(self._store))
        if store.is_relative_to(self._root):
            own = os.fsencode(f"/{_escaped(store.relative_to(self._root).as_posix())}/\n")
        theirs = self._root / ".git" / "info" / "exclude"
        asked = self._run("config", "--global", "--type=path", "--get", "core.excludesFile", env=self._person())
        named = os.fsdecode(asked.stdout.rstrip(b"\n"))
        base = Path(self._person_env.get("XDG_CONFIG_HOME") or Path(self._person_env.get("HOME", "/")) / ".config")
        return b"\n".join((_content(Path(named) if named else base / "git" / "ignore"), _content(theirs), own))

    def _kept_though_ignored(self) -> set[str]:
        """Files that the person's own repository keeps although a rule would ignore them."""
        if not os.path.lexists(self._root / ".git"):
            return set()
        done = self._run("ls-files", "-z", "-c", "-i", "--exclude-standard", env=self._person())
        return {os.fsdecode(name) for name in done.stdout.split(b"\0") if name} if done.returncode == 0 else set()

    def _sorted(self, paths: set[str]) -> tuple[list[str], list[str], list[str]]:
        """Paths to be kept, paths that are gone, and sentences on what is left out."""
        present: list[str] = []
        gone: list[str] = []
        left_out: list[str] = []
        total = 0
        for path in sorted(paths):
            if path.endswith("/"):
                continue  # a repository of its own
            try:
                status = os.lstat(self._root / path)
            except (FileNotFoundError, NotADirectoryError):
                gone.append(path)
                continue
            except OSError as error:
                left_out.append(f"{path} ({error.strerror})")
                continue
            if stat.S_ISDIR(status.st_mode):
                gone.append(path)
            elif status.st_size > self._limits.file_bytes:
                left_out.append(f"{path} ({status.st_size // 1_000_000:,} MB)")
            elif stat.S_ISLNK(status.st_mode) or (
                stat.S_ISREG(status.st_mode) and os.access(self._root / path, os.R_OK)
            ):
                present.append(path)
                total += status.st_size
            else:
                left_out.append(f"{path} (cannot be read)")
        if len(present) > self._limits.files or total > self._limits.bytes:
            message = (
                f"The folder is too big for checkpoints: {len(present):,} files, {total // 1_000_000:,} MB to keep. "
                "Let .gitignore name what need not be kept."
            )
            raise SessionError(message)
        return present, gone, left_out

    def _index(self, how: tuple[str, ...], paths: list[str]) -> list[str]:
        """Takes paths into the index; returns those that git refuses."""
        if not paths:
            return []
        data = b"\0".join(map(os.fsencode, paths))
        if self._run(*_PACKED, "update-index", *how, "-z", "--stdin", data=data).returncode == 0:
            return []
        if len(paths) == 1:
            return [f"{paths[0]} (git cannot keep it)"]
        half = len(paths) // 2
        return self._index(how, paths[:half]) + self._index(how, paths[half:])

    def _in_the_way(self, changes: tuple[FileChange, ...]) -> list[str]:
        """Files that are not kept and stand where kept ones have to go: git itself takes ignored ones for worthless."""
        known = {change.path for change in changes if change.kind != "created"}
        found: list[str] = []
        for change in changes:
            if change.kind != "created":
                continue
            parts = change.path.split("/")
            for place in ("/".join(parts[: count + 1]) for count in range(len(parts))):
                full = self._root / place
                if os.path.lexists(full) and (full.is_symlink() or not full.is_dir()) and place not in known:
                    found.append(place)
            if (whole := self._root / change.path).is_dir() and not whole.is_symlink():
                below = (Path(folder, name) for folder, _, names in os.walk(whole) for name in names)
                found += [path for file in below if (path := file.relative_to(self._root).as_posix()) not in known]
        return sorted(set(found))

    def _modes(self, paths: Iterable[str]) -> dict[str, int]:
        """Permissions of the files there are: git itself knows only whether a file can be run."""
        modes = {}
        for path in paths:
            try:
                status = os.lstat(self._root / path)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode):
                modes[path] = stat.S_IMODE(status.st_mode)
        return modes

    def _names(self, *arguments: str) -> set[str]:
        return set(_parts(self._git(*arguments)))

    def _git(self, *arguments: str) -> str:
        done = self._run(*arguments)
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip() or f"git {arguments[0]} failed"
            message = f"A checkpoint could not be kept: {said}"
            raise SessionError(message)
        return os.fsdecode(done.stdout)

    def _run(
        self, *arguments: str, data: bytes = b"", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        assert self._program is not None
        settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
        try:
            return subprocess.run(
                [self._program, *settings, *arguments],
                cwd=self._root,
                env=env or self._env,
                input=data,
                capture_output=True,
                timeout=self._limits.seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            (self._store / "index.lock").unlink(missing_ok=True)  # git was killed and could not remove it
            message = f"Keeping the state of the folder took longer than {self._limits.seconds:g} s."
            raise SessionError(message) from error
        except OSError as error:
            message = f"A checkpoint could not be kept: {error.strerror}."
            raise SessionError(message) from error

    def _person(self) -> dict[str, str]:
        """For reading what the person's own git says; it writes nothing."""
        return quiet_git(self._person_env)


# Streams every file into one pack, where git would else write a file of its own for each.
_PACKED = ("-c", "core.bigFileThreshold=1", "-c", "core.compression=1")
_KINDS: dict[str, Literal["created", "deleted"]] = {"A": "created", "D": "deleted"}


def _scrubbed(env: Mapping[str, str], root: Path, store: Path) -> dict[str, str]:
    kept = {name: value for name, value in env.items() if not name.startswith("GIT_")}
    who = {f"GIT_{role}_{part}": "mycode" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    return {
        **kept,
        **who,
        "GIT_DIR": str(store),
        "GIT_WORK_TREE": str(root),
        "GIT_INDEX_FILE": str(store / "index"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_TEMPLATE_DIR": "",
        "LC_ALL": "C",
    }


def _write_private(path: Path, data: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(data)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _escaped(path: str) -> str:
    return "".join(f"\\{sign}" if sign in "\\*?[ #!" else sign for sign in path)


def _parts(text: str) -> list[str]:
    return [part for part in text.split("\0") if part]


def _pairs(text: str) -> list[tuple[str, str]]:
    parts = _parts(text)
    return list(zip(parts[::2], parts[1::2], strict=True))


def _count(lines: str) -> int | None:
    return None if lines == "-" else int(lines)


def _restrict(path: Path, before: int) -> None:
    """A file that was private before stays so; whether it can be run is the restored state's to say."""
    try:
        status = os.lstat(path)
        if stat.S_ISREG(status.st_mode):
            run = 0o111 if status.st_mode & 0o100 else 0
            readable = before & 0o666
            path.chmod(readable | (run & (readable >> 2)))
    except OSError:
        pass  # gone by the restoring, or not ours
