"""Commands that run other commands: which are see-through, and what the others carry."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import structs

from mycode.permissions.listed import listed
from mycode.permissions.shell_grammar import Part, Word, parse

_DEEPEST = 4
# Words that are looked at behind a wrapper, and commands that are looked at in all: enough for any command a person
# would write, and bounded for those nobody would.
_WINDOW = 40
_MOST = 3000

# What an option of a see-through wrapper may be: those of one word, and those with a value in the next word.
_WRAPPERS: dict[str, tuple[str, str]] = {
    "timeout": (r"--foreground|--preserve-status|-v|--verbose|--signal=\w+|--kill-after=[\w.]+", r"-[ks]"),
    "nice": (r"-\d+|-n\d+|--adjustment=-?\d+", r"-n"),
    "nohup": ("", ""),
    "time": (r"-p", ""),
    "command": (r"-p", ""),
    "builtin": ("", ""),
    "stdbuf": (r"-[ioe](?:L|\d+)|--(?:input|output|error)=\w+", r"-[ioe]"),
}
_NAMES = listed(
    "sudo doas env xargs exec eval nsenter chroot flock strace ltrace watch setsid ionice chrt taskset"
    " unshare systemd-run busybox toybox parallel script su runuser unbuffer proxychains proxychains4"
    " torsocks faketime firejail bwrap rlwrap dbus-run-session xvfb-run entr catchsegv valgrind gdb ssh"
    " npx bunx uvx timeout nice nohup time command builtin stdbuf noglob coproc trap caffeinate arch"
    " setarch linux32 linux64 prlimit setpriv capsh pkexec sg at batch dotenv"
    " choom start-stop-daemon tmux screen expect mapfile readarray complete compgen bind chronic ts ifne numactl"
    " cgexec nix-shell"
)
# Programs that run another one behind a word such as `run` or `exec`.
_RUNNERS = frozenset(
    listed(
        "npm pnpm yarn bun pipx poetry uv pdm hatch rye pixi conda mamba bundle docker podman kubectl direnv"
        " op aws-vault mise asdf nix deno go cargo rustup pyenv rbenv nvm fnm volta"
    )
)
# Programs that do what a text among their arguments or on their input says.
_READERS = frozenset(
    listed(
        "source . eval awk gawk mawk nawk sed gsed perl python python2 python3 pypy pypy3 ruby node deno bun php lua"
        " tclsh osascript tar bsdtar make gmake vim vi nvim ed ex emacs less man gdb lldb expect rsync scp sftp zip"
        " crontab alias hash enable just"
    )
)
CARRIERS = frozenset(_NAMES)
"""Programs whose arguments may be a command of their own."""
SHELLS = frozenset(listed("sh bash dash zsh ksh mksh ash fish tcsh csh rbash pwsh busybox yash elvish nu xonsh"))


def unwrapped(part: Part) -> Part:
    """The command inside see-through wrappers (`timeout 5 ls` is `ls`); the part itself when it is not wrapped."""
    words: Sequence[Word] = part.words
    while words and (options := _WRAPPERS.get(words[0].value or "")) is not None:
        rest = _after_options(words[1:], options)
        if rest is None:
            break
        if words[0].value == "timeout":
            if not rest or not re.fullmatch(r"\d+(?:\.\d+)?[smhd]?", rest[0].value or ""):
                break
            rest = rest[1:]
        if not rest:
            break
        words = rest
    return part if words is part.words else structs.replace(part, words=tuple(words))


def does_as_told(part: Part) -> bool:
    """Whether the program may run what some text says: in its words, its input, or the variables in front of it."""
    name = part.program.rpartition("/")[2]
    if part.assignments or name in CARRIERS or name in SHELLS or name in _RUNNERS or name in _READERS:
        return True
    words = {word.best for word in part.words}
    if name == "git":
        return bool(words & {"rebase", "submodule", "bisect", "filter-branch", "-c", "difftool", "mergetool", "config"})
    return bool(re.match(r"(?:python|ruby|perl|lua|php)[\d.]+|ld-linux|ld\.so", name))


def takes_text(part: Part) -> bool:
    """Whether the program may do what a text of this very command says, rather than what a file of the project says."""
    name = part.program.rpartition("/")[2]
    return does_as_told(part) and name not in _RUNNERS and name not in {"make", "gmake", "git", "just"}


def _after_options(words: Sequence[Word], options: tuple[str, str]) -> Sequence[Word] | None:
    alone, valued = options
    while words and (value := words[0].value or "").startswith("-"):
        if alone and re.fullmatch(alone, value):
            words = words[1:]
        elif valued and re.fullmatch(valued, value) and len(words) > 1:
            words = words[2:]
        else:
            return None
    return words


def carried(part: Part, variables: Mapping[str, str]) -> Iterator[Part]:
    """Every command that the part may run besides itself, as well as can be told.

    It says too much rather than too little: behind `sudo -u me rm x` both `me rm x` and `rm x` are named. For rules
    that forbid and for hard stops; never for what allows.
    """
    # Wrappers around wrappers name the same inner commands again and again; each is looked into once.
    seen: set[tuple[str, ...]] = set()
    waiting = [(part, 0)]
    while waiting:
        outer, depth = waiting.pop(0)
        for command in _inside(outer, variables):
            targets = [redirect.target for redirect in command.redirects if redirect.target is not None]
            spelled = tuple(word.best for word in (*command.words, *targets))
            if spelled and spelled not in seen and len(seen) < _MOST:
                seen.add(spelled)
                yield command
                if depth < _DEEPEST:
                    waiting.append((command, depth + 1))


_GIVEN_TEXT = frozenset(
    listed(
        "eval su script watch parallel trap ssh xargs env entr flock sg npx bunx tmux screen mapfile readarray sudo"
        " nix-shell"
    )
)


def _inside(part: Part, variables: Mapping[str, str]) -> Iterator[Part]:
    if not part.words:
        return
    words: Sequence[Word] = part.words
    name = part.program.rpartition("/")[2].casefold()
    inner: list[Part] = []
    if name in CARRIERS:
        inner += [
            structs.replace(part, words=words[at : at + _WINDOW])
            for at in range(1, len(words))
            if not words[at].best.startswith("-") and "=" not in words[at].best.split("/")[0]
        ]
    if name in _RUNNERS:
        after = [at for at, word in enumerate(words) if word.best in {"run", "exec", "x", "dlx", "--", "tool"}]
        first = (after or [len(words)])[0] + 1
        inner += [structs.replace(part, words=words[at : at + _WINDOW]) for at in range(first, len(words))]
    if name == "find":
        inner += list(_found(part))
    if name in SHELLS or name in _GIVEN_TEXT:
        texts = [word.best for word in words[1:] if re.search(r"[^\w./=:@%+,-]", word.best)]
        texts += [word.best[2:] for word in words[1:] if re.match(r"-[cS].*\s", word.best)]
        texts += [word.best.partition("=")[2] for word in words[1:] if re.match(r"--[\w-]+=.*\s", word.best)]
        if name == "eval":
            texts = [" ".join(word.best for word in words[1:])]
        elif name in SHELLS:
            texts += [
                words[at + 1].best
                for at in range(1, len(words) - 1)
                if re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*|--command", words[at].best)
            ]
        elif name == "env":
            texts += [found[1] for word in words[1:] if (found := re.match(r"-\w*?S(.+)", word.best, re.DOTALL))]
        for text in dict.fromkeys(texts):
            inner += parse(text, variables=variables).parts
    if name == "git":
        inner += [
            command
            for word in words[1:]
            if (alias := re.match(r"(?:[\w.-]+)=!?(.+)", word.best))
            for command in parse(alias[1], variables=variables).parts
        ]
    yield from inner


def _found(part: Part) -> Iterator[Part]:
    """What `find -exec` runs."""
    words: Sequence[Word] = part.words
    for at, word in enumerate(words):
        if word.best in {"-exec", "-execdir", "-ok", "-okdir"}:
            end = next((i for i in range(at + 1, len(words)) if words[i].best in {";", "+"}), len(words))
            if words[at + 1 : end]:
                yield structs.replace(part, words=words[at + 1 : end])
