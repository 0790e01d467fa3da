"""Programs that only look when their arguments are of a certain kind: git, find, sed, awk, jq and a few builtins."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec import structs

from mycode.permissions.listed import listed
from mycode.permissions.options import Spec, Use, read_spec, use
from mycode.permissions.programs import GIT
from mycode.permissions.shell_grammar import Word


def _git(words: Sequence[Word]) -> Use | None:
    rest = list(words)
    folder: Word | None = None
    while rest and rest[0].value in {"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "-C"}:
        if rest.pop(0).value == "-C":
            if folder is not None or not rest or rest[0].glob or not rest[0].value or rest[0].value.startswith("-"):
                return None
            folder = rest.pop(0)
    if folder is not None:
        found = _git(rest)
        return found and structs.replace(found, folder=folder, names=(*found.names, folder))
    if [word.value for word in rest] in (["--version"], ["version"]):
        return Use()
    name = (rest[0].value or "") if rest and not rest[0].glob else ""
    table = GIT.get(name)
    if table is None:
        return None
    spec, rest = read_spec(table), rest[1:]
    values = [word.value or "" for word in rest]
    plain = [value for value in values if not value.startswith("-")]
    match spec.operands:
        case "revs":
            found = use(Spec(spec.short, spec.long, "shows", 1000, spec.numbers), rest)
            if found is None:
                return None
            # Pathspecs outside read any file, and so does the part behind the colon of `HEAD:.env`; revisions are
            # harmless as paths go.
            behind = [
                structs.replace(one, value=value[at + 1 :])
                for one in found.shows
                for value in (one.value or "",)
                for at in range(len(value))
                if value[at] == ":"
            ]
            deep, sought = _many(found.shows) if name in _SHOWING else ((), ())
            shows = (*found.shows, *(one for one in behind if one.value))
            return Use(shows, given=found.given, deep=deep, sought=sought)
        case "pattern":
            found = use(spec, rest)
            deep = found.shows if found else ()
            return found and structs.replace(found, deep=deep or (Word(".", "."),), sought=_many(deep)[1])
        case "listing":
            found = use(Spec(spec.short, spec.long, "text", 1000, spec.numbers), rest)
            options = values[: values.index("--")] if "--" in values else values
            lists = any(
                re.match(r"-[a-z]*l|--list|--(?:no-)?contains|--(?:no-)?merged|--points-at", value) for value in options
            )
            return found if found is not None and (lists or not plain) else None
        case "remote":
            return (
                Use()
                if plain in ([], *([["get-url", name] for name in plain[1:2]]))
                and use(Spec(spec.short, spec.long, "text", 2, numbers=False), rest) is not None
                else None
            )
        case "stash":
            return (
                Use()
                if (values[:1] == ["list"] and len(values) == 1)
                or (
                    values[:1] == ["show"]
                    and all(
                        v in {"-p", "--stat", "--name-only"} or re.fullmatch(r"stash@\{\d+\}|\d+", v)
                        for v in values[1:]
                    )
                )
                else None
            )
        case "worktree":
            return Use() if values in (["list"], ["list", "--porcelain"]) else None
        case "reflog":
            if values[:1] and values[0] in {"expire", "delete", "exists", "drop", "write"}:
                return None
            return _git([Word("log", "log"), *(rest[1:] if values[:1] == ["show"] else rest)])
        case "config":
            reads = {"--get", "--get-all"} & set(values)
            harmless = all(
                re.fullmatch(
                    r"(?i)user\.(?:name|email)|remote\.[\w.-]+\.url|branch\..*|init\..*|core\.(?:editor|bare|"
                    r"autocrlf|filemode|ignorecase)|pull\..*|push\.default",
                    value,
                )
                for value in plain
            )
            found = use(Spec(spec.short, spec.long, "text", 1, numbers=False), rest)
            return found if found is not None and len(plain) == 1 and harmless and (reads or len(values) == 1) else None
        case _:
            return use(spec, rest)


_SHOWING = frozenset(listed("diff log show whatchanged diff-tree diff-files diff-index"))


def _many(words: Sequence[Word]) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
    """Those of git's names that may stand for many files, and these without the signs in front of some."""
    many = tuple(word for word in words if re.search(r"^:[^\d]|[*?\[]", word.value or "") and not word.glob)
    bare = (re.sub(r"^:(?:\([^)]*\)|[/!^]+:?)?", "", word.value or "") for word in many)
    return many, tuple(Word(text, text) for text in bare)


_FIND_TESTS = frozenset(
    listed(
        "-name -iname -path -ipath -wholename -iwholename -regex -iregex -type -xtype -size -mtime -mmin"
        " -atime -amin -ctime -cmin -newer -anewer -cnewer -user -group -uid -gid -perm -links -inum -samefile"
        " -maxdepth -mindepth -regextype -printf -fstype -lname -ilname -used -newermt"
    )
)
_FIND_FLAGS = frozenset(
    listed(
        "-print -print0 -ls -prune -empty -readable -writable -executable -true -false -not -and -or -a -o !"
        " ( ) , -depth -mount -xdev -nouser -nogroup -daystart -follow -noleaf -warn -nowarn -quit"
    )
)


def _find(words: Sequence[Word]) -> Use | None:
    rest = list(words)
    starts: list[Word] = []
    while rest and rest[0].value in {"-H", "-L", "-P"}:
        rest.pop(0)
    while rest and not (rest[0].value or "").startswith("-") and rest[0].value not in {"(", "!", ","}:
        starts.append(rest.pop(0))
    while rest:
        word = rest.pop(0)
        if word.value in _FIND_TESTS and rest and not (word.glob or rest[0].glob):
            rest.pop(0)
        elif word.value not in _FIND_FLAGS or word.glob:
            return None
    return None if any(word.glob and (word.value or "")[0] in "*?[" for word in starts) else Use(names=tuple(starts))


def _sed_regex(sign: str) -> str:
    """A regular expression of sed up to `sign`, which stands in no brackets: there some seds end it and some do not."""
    opening = r"\[(?:\^\]|\^(?!\])|\]|(?![\^\]]))"
    inner = rf"(?:\[:[a-z]+:\]|\\[^{sign}\[\]\n]|[^\[\]{sign}\\\n])*"
    return rf"(?:[^\[{sign}\\\n]|\\[^\n]|{opening}{inner}\])*"


def _sed_command() -> str:
    address = rf"(?:\d+|\$|/{_sed_regex('/')}/I?)"
    replaced = "|".join(
        rf"s[{sign}]{_sed_regex(sign)}[{sign}](?:[^{sign}\\\n]|\\[^\n])*[{sign}][gpiI0-9]*" for sign in "/|,#"
    )
    return rf"\s*(?:{address}(?:\s*,\s*(?:{address}|[+~]\d+))?\s*!?\s*)?(?:[pdq=]|{replaced})?\s*"


def _sed(words: Sequence[Word]) -> Use | None:
    """Printing, deleting and replacing lines on the way out; no `e`, `w`, `r`, no script from a file, not in place."""
    scripts: list[str] = []
    operands: list[Word] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        value = word.value or ""
        if value in {"-e", "--expression"} and rest:
            scripts.append(rest.pop(0).value or "")
        elif value in frozenset(listed("-n -E -r -nE -En -nr -rn -s -u -z --quiet --silent --regexp-extended")):
            continue
        elif value == "-ne" and rest:
            scripts.append(rest.pop(0).value or "")
        elif value.startswith("-") and value != "-":
            return None
        else:
            operands.append(word)
    if not scripts and operands:
        scripts.append(operands.pop(0).value or "")
    if any(word.glob and (word.value or "")[0] in "*?[" for word in operands):
        return None
    # A script that is a pattern may become the name of a file, which is a script of somebody else.
    if any(word.glob and word.value in scripts for word in words):
        return None
    lines = [line for script in scripts for line in script.split("\n")]
    command = _sed_command()
    safe = all(len(line) < 1000 and re.fullmatch(f"{command}(?:;{command})*", line) for line in lines)
    return Use(tuple(operands)) if scripts and safe else None


def _awk(words: Sequence[Word]) -> Use | None:
    """Programs that pick and print fields; nothing that runs, reads or writes anything else."""
    rest = list(words)
    while rest and (value := rest[0].value or "").startswith("-"):
        if value == "-F" and len(rest) > 1:
            rest = rest[2:]
        elif re.fullmatch(r"-F.{1,4}", value):
            rest = rest[1:]
        elif value == "-v" and len(rest) > 1 and re.fullmatch(r"[a-z_]\w*=[\w.,:/ -]*", rest[1].value or ""):
            rest = rest[2:]
        else:
            return None
    if not rest or rest[0].glob:
        return None
    program = rest[0].value or ""
    # More than a number, in a pattern or brackets, is no redirect.
    # What follows a `print` may be one all the same.
    first, printing, rest_of_it = program.partition("print")
    first = re.sub(r">=?\s*\d[\d.]*(?=\s*(?:\{|\)|&&|\|\||$))", "", first).replace("||", "")
    program = first + printing + rest_of_it
    harmless = re.fullmatch(r"[\w\s$,;:.\"'+*/%(){}=!<&^~\[\]\\?#-]*", program)
    forbidden = re.search(
        r"system|getline|close|fflush|func|ENVIRON|ARG|PROCINFO|SYMTAB|FUNCTAB|printf\s*>|<\s*[\"$(]|@", program
    )
    operands = rest[1:]
    if not harmless or forbidden or any(word.glob and (word.value or "")[0] in "*?[" for word in operands):
        return None
    if any("=" in (word.value or "") for word in operands):
        return None
    return Use(tuple(operands))


def _jq(words: Sequence[Word]) -> Use | None:
    words = list(words)
    for option, values in (("--arg", 2), ("--argjson", 2), ("--indent", 1)):
        while (at := next((at for at, word in enumerate(words) if word.value == option), None)) is not None:
            taken = words[at + 1 : at + 1 + values]
            if len(taken) < values or any(word.glob or (word.value or "").startswith("-") for word in taken):
                return None
            del words[at : at + 1 + values]
    found = use(
        read_spec(
            "-cCMrjaSsneR --compact-output --color-output --monochrome-output --raw-output"
            " --join-output --ascii-output"
            " --sort-keys --slurp --null-input --exit-status --raw-input --tab --unbuffered | pattern"
        ),
        words,
    )
    plain = [word for word in words if not (word.value or "").startswith("-")]
    dashed = any(word.value == "--" for word in words)
    if not plain or dashed or (plain[0].glob and re.search(r"[*?]|\[[^\d\]]", plain[0].text)):
        return None
    unsafe = re.search(
        r"(?i:\benv\b)|\binput_filename|\bimport\b|\binclude\b|\bmodulemeta\b|\bdebug\b|\bgetpath/",
        plain[0].value or "",
    )
    if unsafe or found is None:
        return None
    return structs.replace(found, shows=tuple(word for word in found.shows if word is not plain[0]))


def _printf(words: Sequence[Word]) -> Use | None:
    values = [word.value or "" for word in words]
    if not values or values[0].startswith("-") or "%n" in values[0] or words[0].glob:
        return None
    return Use(names=tuple(word for word in words if word.glob or word.tilde))


def _echo(words: Sequence[Word]) -> Use | None:
    """Whatever it is given it says; a pattern or `~` says what is where."""
    return Use(names=tuple(word for word in words if word.glob or word.tilde))


def _ps(words: Sequence[Word]) -> Use | None:
    """Processes with their arguments, never with their environment.

    Where it cannot read its options in one style it takes all of them for the letters of another, in which `e` is the
    environment; so only those are let through that it can read.
    """
    rest = [word.value or "" for word in words]
    columns = (
        r"(?:pid|ppid|pgid|sid|user|uid|args|cmd|comm|command|etime|etimes|time|stat|state|rss|vsz|%cpu|%mem|pcpu|pmem|nice"
        r"|ni|pri|start|lstart|tty|tt|nlwp|wchan|cputime|size)"
    )
    styles: set[str] = set()
    while rest:
        value = rest.pop(0)
        if re.fullmatch(r"-?[aux]+w*f?w*", value):
            styles.add("letters")
        elif re.fullmatch(r"-[efFlLHjwyAT]+", value):
            styles.add("options")
        elif re.fullmatch(r"--sort=[+-]?" + columns, value) or value in {"--forest", "--no-headers"}:
            continue
        elif re.fullmatch(r"(?:-[efA]*o|--format|-o)", value) and rest:
            styles.add("options")
            if not re.fullmatch(rf"{columns}=?(?:,{columns}=?)*", rest.pop(0)):
                return None
        elif re.fullmatch(rf"--format={columns}(?:,{columns})*", value):
            continue
        elif value in {"-p", "--pid", "--ppid"} and rest:
            if not re.fullmatch(r"\d{1,7}(?:,\d{1,7})*", rest.pop(0)):
                return None
        else:
            return None
    return Use() if len(styles) < 2 else None


def _test(words: Sequence[Word]) -> Use | None:
    """`test` and `[`: files, strings and numbers; not `-v`, which evaluates what it is given."""
    values = [word.value or "" for word in words]
    if any(word.glob and (word.value or "")[0] in "*?[-" for word in words):
        return None
    if values[-1:] == ["]"]:
        values.pop()
    flags = {value for value in values if re.fullmatch(r"-[a-zA-Z]+", value)}
    known = set(listed("-e -f -d -r -w -x -s -L -h -n -z -a -o -eq -ne -lt -le -gt -ge -nt -ot -ef -S -p"))
    literal = not any(re.search(r"[\[\]`$]", value) for value in values)
    return Use() if flags <= known and literal else None


def _command(words: Sequence[Word]) -> Use | None:
    return Use() if words and words[0].value in {"-v", "-V"} and len(words) > 1 else None


def _cd(words: Sequence[Word]) -> Use | None:
    return (
        Use(names=tuple(words))
        if len(words) == 1 and not words[0].glob and words[0].value != "-" and words[0].value
        else None
    )


LOOKERS: dict[str, Callable[[Sequence[Word]], Use | None]] = {
    "git": _git,
    "find": _find,
    "sed": _sed,
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "jq": _jq,
    "printf": _printf,
    "echo": _echo,
    "ps": _ps,
    "test": _test,
    "[": _test,
    "command": _command,
    "cd": _cd,
}
