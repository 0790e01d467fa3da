"""Reads the options of a command against those that a program may have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from msgspec import Struct

from mycode.permissions.listed import listed
from mycode.permissions.shell_grammar import Word

_ANY = 1000


class Use(Struct, frozen=True):
    """What a looking command looks at: files it shows the content of, and files it only names or measures.

    `given` are the options it has; in `follows` are folders in which it goes where links lead, in `deep` those in which
    it shows every file, or those that the patterns `sought` name. `folder` is where git is sent first. `steered` are
    names of files beside it that would say which program really runs, or what it loads.
    """

    shows: tuple[Word, ...] = ()
    names: tuple[Word, ...] = ()
    given: frozenset[str] = frozenset()
    follows: tuple[Word, ...] = ()
    deep: tuple[Word, ...] = ()
    sought: tuple[Word, ...] = ()
    folder: Word | None = None
    steered: tuple[str, ...] = ()


class Spec(Struct, frozen=True):
    """Allowed options. Values: "" a flag, "value" anything, "path" a file to show, "maybe" one that is attached.

    "files" is a pattern that says which files are shown.
    """

    short: dict[str, str]
    long: dict[str, str]
    operands: str
    most: int
    numbers: bool


@cache
def read_spec(text: str) -> Spec:
    """From the short notation: `-abc` flags, `-n:` with a value, `-f@` with a file, `-g%` with a pattern of files.

    Also `-I?` with a value in the same word, the same with `=`, `@`, `%`, `?` for `--long`, and `-#` for numbers.
    After the bar: what operands are (`shows`, `names`, `text`, `none`, `pattern` = one text, then files), `:1` at most.
    """
    options, _, operands = text.partition("|")
    kind, _, most = operands.strip().partition(":")
    short: dict[str, str] = {}
    long: dict[str, str] = {}
    numbers = False
    for option in options.split():
        if option == "-#":
            numbers = True
        elif option.startswith("--"):
            value = {"=": "value", "@": "path", "?": "maybe", "%": "files"}.get(option[-1], "")
            long[option.rstrip("=@?%")] = value
        elif option[-1] in ":@?%":
            value = {":": "value", "@": "path", "?": "maybe", "%": "files"}[option[-1]]
            short.update(dict.fromkeys(option[1:-1], value))
        else:
            short.update(dict.fromkeys(option[1:], ""))
    return Spec(short, long, kind, int(most) if most else _ANY, numbers)


# Programs that do no harm with any option, so that a file named like one may stand where a star does.
ANY_GLOB = frozenset(
    listed("ls cat head tail wc grep egrep fgrep du stat echo md5sum sha1sum sha256sum basename dirname")
)


def use(spec: Spec, words: Sequence[Word], *, any_glob: bool = False) -> Use | None:
    shows: list[Word] = []
    operands: list[Word] = []
    sought: list[Word] = []
    given: set[str] = set()
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        value = word.value or ""
        if value == "--":
            operands += waiting
            break
        if word.glob and value[0] in "*?[-" and not re.match(r"--[\w-]+=", value):
            if not any_glob or value.startswith("-"):
                return None
            operands.append(word)
            continue
        if not value.startswith("-") or value == "-":
            operands.append(word)
            continue
        if spec.numbers and re.fullmatch(r"-\d+", value):
            continue
        if value.startswith("--"):
            name, sign, inline = value.partition("=")
            wanted = spec.long.get(name)
            if wanted is None or (sign and not wanted) or re.search(r"[*?\[]", name):
                return None
            given.add(name)
            if wanted in {"value", "path", "files"}:
                if not sign and not _takes(waiting):
                    return None
                # A pattern behind `--x=` becomes options of that name, or nothing.
                argument = Word(inline, inline, glob=word.glob) if sign else waiting.pop(0)
                if wanted == "path":
                    shows.append(argument)
                if wanted == "files":
                    sought.append(argument)
            continue
        letters = value[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            wanted = spec.short.get(letter)
            if wanted is None or word.glob:
                return None
            given.add("-" + letter)
            if wanted == "maybe":
                break
            if wanted:
                if not letters and not _takes(waiting):
                    return None
                argument = Word(letters, letters) if letters else waiting.pop(0)
                letters = ""
                if wanted == "path":
                    shows.append(argument)
                if wanted == "files":
                    sought.append(argument)
    # A pattern may stand for any number of names, and where one is read another may be written.
    if len(operands) > spec.most or (spec.most < _ANY and any(word.glob for word in operands)):
        return None
    options = frozenset(given)
    match spec.operands:
        case "none":
            return None if operands else Use(tuple(shows), given=options)
        case "text":
            return Use(tuple(shows), tuple(word for word in operands if word.glob or word.tilde), options)
        case "plus":
            plus = all((word.value or "").startswith("+") for word in operands)
            return Use(tuple(shows), given=options) if plus else None
        case "names":
            return Use(tuple(shows), tuple(operands), options)
        case "pattern":
            seeks = not options & {"-e", "-f", "--regexp", "--file", "--files"}
            # The shell puts names in the place of the text that is sought, too.
            files = [word for at, word in enumerate(operands) if at or not seeks or word.glob or word.tilde]
            return Use((*shows, *files), given=options, sought=tuple(sought))
        case _:
            return Use((*shows, *operands), given=options)


def _takes(waiting: Sequence[Word]) -> bool:
    """Whether the next word can be an option's value: never one that could be an option itself."""
    return bool(waiting) and not (waiting[0].value or "").startswith("-") and not waiting[0].glob
