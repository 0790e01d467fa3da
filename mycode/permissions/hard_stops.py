"""Commands that no mode and no rule lets pass without a person's fresh yes: what cannot be undone by anyone."""

from __future__ import annotations

import re

from msgspec import structs

from mycode.permissions.places import Look, Places, absolute, components, inside, unseen
from mycode.permissions.shell_grammar import Part, Word, braces_opened

_DEVICE = re.compile(r"/dev/(?!null$|stdout$|stderr$|stdin$|tty$|fd/|zero$|full$|random$|urandom$|shm/)")
_ERASERS = re.compile(
    r"mkfs(?:\..+)?|mke2fs|mkswap|wipefs|fdisk|sfdisk|cfdisk|gdisk|sgdisk|parted|blkdiscard|hdparm|diskutil|cryptsetup"
)
_TRIGGER = "/proc/sysrq-trigger"
_STOPPERS = frozenset({"shutdown", "reboot", "halt", "poweroff", "telinit"})
_INTERPRETER = re.compile(r"(?:python|pypy|ruby|perl|node|php|lua|deno|bun|awk|gawk)[\d.]*")
_INLINE_REMOVAL = re.compile(
    r"rm\s+-\w*[rR]\w*\s+[\"']?(?:/|~|\$HOME)[\"'/*\s;)]"
    r"|[\"']rm[\"']\s{0,9},\s{0,9}[\"']-\w*[rR]\w*[\"']\s{0,9},\s{0,9}[\"'](?:/|~)[\"'/*]"
    r"|(?:rmtree|rmSync|rmdir|rm_rf|remove_tree)\w*\(\s*(?:[\w.]*(?:expanduser|abspath|realpath|Path|resolve)\(\s*)?"
    r"(?:[\"'](?:(?:/|~)[\"'/*]|\.{1,2}/?[\"'])|(?:[\w.]*Path\.(?:home|cwd)|os\.getcwd|os\.homedir|process\.cwd|Dir\.(?:pwd|home))\b)"
)
# Begins where a word begins: tried at each letter of a long word it would take hours.
_FUNCTION = re.compile(r"([^\s(){};|&]{1,100})\s{0,9}\(\)\s{0,9}[{(]([^}]{0,1000})")


def hard_stop(part: Part, places: Places, cwd: str, look: Look = unseen) -> str | None:
    """Why this command is never run without being asked for just now, or None. `cwd` is where it would run."""
    places = structs.replace(places, cwd=cwd)
    name = part.program.rpartition("/")[2]
    values = [word.best for word in part.words[1:]]
    for redirect in part.redirects:
        if not redirect.writes or redirect.target is None or not redirect.target.best:
            continue
        target = absolute(redirect.target.best, cwd, places.home)
        if _DEVICE.match(target) and not target.startswith(("/dev/tcp/", "/dev/udp/")):
            return f"it writes to the device {target}"
        if target == _TRIGGER:
            return "it can stop the machine"
    if name == "tee" and _TRIGGER in {absolute(value, cwd, places.home) for value in values}:
        return "it can stop the machine"
    if _ERASERS.fullmatch(name):
        return f"{name} can erase a whole disk"
    if name in _STOPPERS or (name == "init" and values[:1] in (["0"], ["6"])):
        return f"{name} stops the machine"
    if name in {"systemctl", "loginctl"} and {"poweroff", "reboot", "halt", "kexec"} & {
        value.removesuffix(".target") for value in values
    }:
        return f"{name} stops the machine"
    if name == "dd" and any(
        value.startswith("of=") and _DEVICE.match(absolute(value[3:], cwd, places.home)) for value in values
    ):
        return "dd writes to a device"
    if name in {"cp", "tee", "shred", "mv", "truncate", "install"} and any(
        _DEVICE.match(absolute(value, cwd, places.home)) for value in values
    ):
        return f"{name} writes to a device"
    if _ends_all(name, values):
        return "it ends every process"
    if name == "crontab" and any(re.fullmatch(r"-[a-z]*r[a-z]*", value) for value in values):
        return "it removes all scheduled jobs"
    if _INTERPRETER.fullmatch(name) and any(_INLINE_REMOVAL.search(value) for value in values):
        return "it would remove the root of the file system or your home folder"
    recursive = _recursive(part)
    targets = [word for word in part.words[1:] if not word.best.startswith("-")]
    if (
        name in {"rm", "shred", "srm", "rimraf", "trash", "trash-put", "unlink", "rmdir", "del"}
        and "--no-preserve-root" in values
    ):
        return "it would remove the root of the file system"
    if name == "rm" and recursive and not targets:
        return "it removes folders named by something else"
    if name in {"rm", "srm", "rimraf", "trash", "trash-put", "gio"}:
        return _first(targets, places, look, "it would remove {}", own=True)
    if name == "tar" and "--remove-files" in values:
        return _first(targets, places, look, "it would remove {}", own=True)
    if name in {"zip", "7z", "7za"} and any(
        re.fullmatch(r"-[a-zA-Z]*m[a-zA-Z]*|--move|-sdel", value) for value in values
    ):
        return _first(targets[1:], places, look, "it would remove {}", own=True)
    if name in {"shred", "truncate"}:
        return _first(targets, places, look, "it would destroy {}", own=True)
    if name == "mv":
        to = [at for at, word in enumerate(part.words) if re.fullmatch(r"-[a-zA-Z]*t|--target-directory", word.best)]
        if to:
            targets = [word for at, word in enumerate(part.words[1:], 1) if at not in (to[0], to[0] + 1)]
        elif not any(word.best.startswith(("-t", "--target-directory=")) for word in part.words):
            targets = targets[: max(1, len(targets) - 1)]
        return _first(targets, places, look, "it would move away {}", own=True)
    if name in {"chmod", "chown", "chgrp", "setfacl", "chattr", "chcon"} and recursive:
        return _first(targets[1:] or targets, places, look, "it would change all rights below {}", own=False)
    if name == "find":
        return _find(part, places, look)
    if name in {"fd", "fdfind"}:
        return _fd(part, places, look)
    if name == "rsync" and any(value.startswith(("--del", "--remove-source")) for value in values):
        return _first(targets, places, look, "it would delete in {}", own=True)
    return None


def deletes_inline(part: Part, text: str) -> bool:
    """Whether the part is an interpreter and the text, which it may be given as its input, removes everything."""
    return (
        _INTERPRETER.fullmatch(part.program.rpartition("/")[2]) is not None and _INLINE_REMOVAL.search(text) is not None
    )


def _ends_all(name: str, values: list[str]) -> bool:
    """Whether every process is meant, or all of a person's."""
    if name == "killall5" or (name == "kill" and ("-1" in values[1:] or values[-1:] == ["1"])):
        return True
    if name not in {"pkill", "killall", "skill"}:
        return False
    options = [value for value in values if value.startswith("-")]
    plain = [value for value in values if not value.startswith("-")]
    by_person = any(re.fullmatch(r"-[uUvG]|--user|--euid|--uid|--inverse", value) for value in options)
    patterns = name == "pkill" or bool({"-r", "--regexp"} & set(options))
    return (by_person and len(plain) < 2) or (patterns and any(re.fullmatch(r"[.^$*+?]*", value) for value in plain))


def removes_named(part: Part, text: str) -> str | None:
    """How the part removes what something else names: by "input", by a "command", or not at all.

    `text` is the whole command, which says where variables come from.
    """
    name = part.program.rpartition("/")[2]
    if name in {"xargs", "parallel"}:
        return "command" if any(word.best.rpartition("/")[2] in _REMOVERS for word in part.words[1:]) else None
    if name not in _REMOVERS:
        return None
    targets = [word.text for word in part.words[1:] if word.value is None]
    read = {
        one for words in re.findall(r"\b(?:read|mapfile|readarray)\b([^;|&\n<]{0,200})", text) for one in words.split()
    }
    listed = set(re.findall(r"\bfor\s+(\w+)\s+in\b[^;\n]{0,500}?(?:\$\(|`)", text))
    held = set(re.findall(r"\b(\w{1,100})=\"?(?:\$\(|`)\s*(?:ls|find|fd|pwd|echo|printf|realpath|readlink)\b", text))
    for target in targets:
        names = set(re.findall(r"\$\{?(\w+|[@*])", target))
        # One name below what a variable holds is not all of it.
        if names & held and (".." in target or not re.search(r"[\w}]\"?/[\w-][\w./-]*\"?$", target)):
            return "command"
        if names & read and _recursive(part):
            return "input"
        if (
            re.search(r"\$\(|`", target)
            or names & (read | listed)
            or any(re.fullmatch(r"[@*\d]", one) for one in names)
        ):
            return "command"
    return None


def names_everything(part: Part, places: Places, cwd: str, look: Look = unseen) -> str | None:
    """What is lost when the files that this part names are removed, if that is everything at once."""
    places = structs.replace(places, cwd=cwd)
    name = part.program.rpartition("/")[2]
    if name in {"find", "fd", "fdfind"}:
        ending = ("-delete",) if name == "find" else ("-X", "rm")
        return hard_stop(structs.replace(part, words=(*part.words, *(Word(w, w) for w in ending))), places, cwd, look)
    targets = [word for word in part.words[1:] if not word.best.startswith("-")]
    if name in {"ls", "pwd"} and not targets:
        targets = [Word(".", ".")]
    if name in {"ls", "pwd", "echo", "printf", "set", "realpath", "readlink"}:
        return _first(targets, places, look, "it would remove {}", own=True)
    return None


def names_some(part: Part) -> bool:
    """Whether the part is one that lists files, so that what it names is known well enough."""
    return part.program.rpartition("/")[2] in {"find", "fd", "fdfind", "ls", "git"}


_REMOVERS = frozenset({"rm", "shred", "unlink", "rmdir", "srm", "trash", "trash-put"})
SPOKEN = _REMOVERS | _STOPPERS | {"find", "dd", "chmod", "chown", "mv", "kill", "pkill"}
"""Programs that are looked for inside texts that something may do."""


def _recursive(part: Part) -> bool:
    return any(
        re.fullmatch(r"-[a-zA-Z]*[rR][a-zA-Z]*|--r(?:e(?:c(?:u(?:r\w*)?)?)?)?", word.best) for word in part.words[1:]
    )


def starts_itself(text: str) -> bool:
    """Whether a function of the text starts itself in a pipe or in the background, as a fork bomb does."""
    return any(
        re.search(rf"(?<![^\s(){{}};|&]){re.escape(found[1])}\s*[|&]", found[2]) for found in _FUNCTION.finditer(text)
    )


def really(path: str, start: str, home: str, look: Look) -> str:
    """Where a path leads when `..` goes up from where a link led to, as it does for programs."""
    at = look(start).path
    if path == "~" or path.startswith("~/"):
        at, path = home, path[2:]
    elif path.startswith("/"):
        at = "/"
    for name in path.split("/"):
        at = absolute("..", at, home) if name == ".." else look(absolute(f"./{name}", at, home)).path
    return at


def moved(part: Part, places: Places, cwd: str) -> str:
    """The folder after a `cd`, or the same one."""
    if part.program not in {"cd", "pushd", "chdir"}:
        return cwd
    targets = [word for word in part.words[1:] if not word.best.startswith("-") or word.best == "-"]
    return absolute(targets[0].best, cwd, places.home) if targets else places.home


def _first(targets: list[Word], places: Places, look: Look, reason: str, *, own: bool) -> str | None:
    opened = [structs.replace(word, value=None, guess=text) for word in targets for text in braces_opened(word.best)]
    whole = (_whole(word, places, look, own=own) for word in (*targets, *opened))
    return next((reason.format(what) for what in whole if what), None)


def _whole(word: Word, places: Places, look: Look, *, own: bool) -> str | None:
    """What everything-at-once the word stands for: root, home, a top-level folder, the project or what holds it."""
    text = word.best
    unknown = word.value is None and not text
    if unknown:
        return None
    if word.value is None and not text.startswith(("/", "~")) and text in {"*", ".*"}:
        return "a folder that is not known yet"
    if re.fullmatch(r"~[^/]+/?", text) and (word.value is None or word.tilde):
        return "somebody's home folder"
    path = absolute(text, places.start, places.home)
    names = components(path)
    # `dir/*` and `dir/.*` and `dir/{*,.*}` take all there is in a folder.
    if names and re.fullmatch(r"[*.?]*\*[*.?]*|\.\[[^\]]*\]\*|\{.*\*.*\}|\[[!^].{0,3}\]\*", names[-1]):
        # What is taken lies where a link leads.
        path = look("/" + "/".join(names[:-1])).path
        names = components(path)
    elif ".." in text.split("/"):
        path = really(text, places.start, places.home, look)
        names = components(path)
    if not names:
        return "the root of the file system"
    if inside(places.home, path, fold_case=True):
        return "your home folder" if inside(path, places.home, fold_case=True) else "a folder above your home"
    if len(names) == 1 or (len(names) == 2 and names[0] in {"usr", "var", "home", "Users", "System"}):
        return f"the top-level folder {path}"
    for root in places.workspace:
        if inside(root, path, fold_case=True) and (own or root != path):
            return "the whole project" if inside(path, root, fold_case=True) else "a folder above the project"
        if own and path == f"{root}/.git":
            return "the project's whole git history"
    return None


def _find(part: Part, places: Places, look: Look) -> str | None:
    values = [word.best for word in part.words]
    deletes = "-delete" in values or any(
        value in {"-exec", "-execdir"}
        and any(
            removed.rpartition("/")[2] in {*_REMOVERS, "truncate", "chmod", "chown"} for removed in values[at : at + 4]
        )
        for at, value in enumerate(values)
    )
    if not deletes:
        return None
    starts: list[Word] = []
    for word in part.words[1:]:
        if (word.best.startswith("-") and word.best not in {"-H", "-L", "-P"}) or word.best in {"!", "("}:
            break
        starts.append(word)
    starts = [word for word in starts if not word.best.startswith("-")] or [Word(".", ".")]
    return _first(starts, places, look, "it would delete in {}", own=not _chooses(values))


def _chooses(values: list[str]) -> bool:
    """Whether some test of `find` lets only some files through; not one that all pass, nor one turned round."""
    return any(
        re.fullmatch(r"-(?:i?name|i?path|i?regex|size|mtime|mmin|newer\w*|empty|i?wholename|user|atime|ctime)", value)
        and values[at - 1] not in {"!", "-not"}
        and not re.fullmatch(r"[.*/?]*|\+0\w?", "".join(values[at + 1 : at + 2]) or "x")
        for at, value in enumerate(values)
    )


def _fd(part: Part, places: Places, look: Look) -> str | None:
    values = [word.best for word in part.words]
    runs = [at for at, value in enumerate(values) if value in {"-x", "-X", "--exec", "--exec-batch"}]
    if not runs or not any(value.rpartition("/")[2] in _REMOVERS for value in values[runs[0] : runs[0] + 4]):
        return None
    plain = [word for word in part.words[1 : runs[0]] if not word.best.startswith("-")]
    all_of_it = r"-[HILua0]+|--hidden|--no-ignore|--unrestricted|--follow|--absolute-path|--print0"
    choosing = [one for one in values[1 : runs[0]] if one.startswith("-") and not re.fullmatch(all_of_it, one)]
    chooses = bool(choosing) or not all(re.fullmatch(r"[.^$*]*", word.best) for word in plain[:1])
    return _first(plain[1:] or [Word(".", ".")], places, look, "it would delete in {}", own=not chooses)
