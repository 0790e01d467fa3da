"""Rules of the form `Tool` or `Tool(specifier)`: how they are written, and what they match.

`Bash(git commit *)` matches a command by its words, `Edit(/src/**)` a path by a gitignore pattern, `WebFetch(domain:
example.com)` a host, `mcp__server__tool` a tool by name. A deny rule beats an ask rule beats an allow rule. Rules that
forbid are read broadly (any spelling of the program, any order of options), rules that allow narrowly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from mycode.core.errors import ConfigError
from mycode.core.tools import Action, Decision
from mycode.permissions.places import Places, absolute
from mycode.permissions.shell_grammar import Part, Word, braces_opened, parse

Family = Literal["shell", "edit", "read", "fetch", "mcp", "tool", "any"]

_FAMILIES: dict[str, Family] = {
    "bash": "shell",
    "shell": "shell",
    "execute_bash": "shell",
    "edit": "edit",
    "write": "edit",
    "multiedit": "edit",
    "notebookedit": "edit",
    "read": "read",
    "webfetch": "fetch",
    "fetch": "fetch",
    "*": "any",
}
# Single tools; each obeys the rules of its family too. `path` ones take a path as specifier.
TOOLS: dict[str, Literal["path", "plain"]] = {
    "read_file": "path",
    "edit_file": "path",
    "create_file": "path",
    "write_file": "path",
    "apply_patch": "path",
    "search_files": "path",
    "grep": "path",
    "list_files": "path",
    "glob": "path",
    "ls": "path",
    "websearch": "plain",
    "web_search": "plain",
    "todo": "plain",
    "todowrite": "plain",
    "update_todos": "plain",
    "history_search": "plain",
    "history_expand": "plain",
    "ask_user": "plain",
    "task": "plain",
    "agent": "plain",
    "skill": "plain",
}


class Rule(Struct, frozen=True):
    """One rule as written, its decision, and where its relative patterns begin (`base` for `/x`; "" is the cwd)."""

    text: str
    decision: Decision
    tool: str
    spec: str | None = None
    base: str = ""

    @property
    def family(self) -> Family:
        if self.tool.startswith("mcp__"):
            return "mcp"
        return _FAMILIES.get(self.tool.lower(), "tool")


class Rules(Struct, frozen=True):
    """The rules in force, by decision."""

    deny: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    allow: tuple[Rule, ...] = ()

    def __add__(self, other: Rules) -> Rules:
        return Rules(self.deny + other.deny, self.ask + other.ask, self.allow + other.allow)


def make_rules(
    *, deny: Iterable[str] = (), ask: Iterable[str] = (), allow: Iterable[str] = (), base: str = ""
) -> Rules:
    """Rules from their texts; a bad one is a `ConfigError` that names it. `base` is the folder of the settings file."""
    return Rules(
        tuple(parse_rule(text, "deny", base=base) for text in deny),
        tuple(parse_rule(text, "ask", base=base) for text in ask),
        tuple(parse_rule(text, "allow", base=base) for text in allow),
    )


_RULE = re.compile(r"\s*([A-Za-z_*][\w*-]*)\s*(?:\((.*)\))?\s*", re.DOTALL)


def parse_rule(
    text: str, decision: Decision, *, base: str = "", match: Iterable[str] = (), not_match: Iterable[str] = ()
) -> Rule:
    """A rule from its text, tried on its own examples; `ConfigError` says what is wrong with which rule.

    Examples are commands, paths or addresses, as the rule's tool takes them.
    """
    found = _RULE.fullmatch(text)
    if found is None:
        raise ConfigError(
            f"The permission rule `{text}` cannot be read. Write `Tool` or `Tool(what)`, as in {_EXAMPLE}."
        )
    rule = Rule(text.strip(), decision, found[1], found[2], base)
    _check(rule)
    places = Places(workspace=(base or "/workspace",), home="/home/me")
    for example in match:
        if not _matches_example(rule, example, places):
            raise ConfigError(
                f"The permission rule `{text}` should match `{example}` and does not. Correct one of them."
            )
    for example in not_match:
        if _matches_example(rule, example, places):
            raise ConfigError(
                f"The permission rule `{text}` should not match `{example}` and does. Correct one of them."
            )
    return rule


_EXAMPLE = "`Bash(git commit *)`, `Edit(/src/**)` or `WebFetch(domain:example.com)`"


def _check(rule: Rule) -> None:
    name, spec = rule.tool, rule.spec
    known = rule.family != "tool" or name.lower() in TOOLS
    if not known:
        raise ConfigError(f"The permission rule `{rule.text}` names no known tool. Write it as in {_EXAMPLE}.")
    if spec is None:
        return
    if not spec.strip():
        raise ConfigError(
            f"The permission rule `{rule.text}` has nothing between its brackets. Leave them out or fill them."
        )
    if "\0" in spec or "\n" in spec:
        raise ConfigError(f"The permission rule `{rule.text!r}` holds a line break or NUL. Write it on one line.")
    if rule.family in {"mcp", "any"} or TOOLS.get(name.lower()) == "plain":
        if name.lower() not in {"agent", "task", "skill"}:
            raise ConfigError(f"The permission rule `{rule.text}` takes nothing in brackets. Leave them out.")
    elif rule.family == "shell":
        _command_pattern(rule.text, spec)
    elif rule.family == "fetch":
        if not re.fullmatch(r"domain:(?:\*\.)?[A-Za-z0-9.:\[\]-]+", spec.strip()):
            raise ConfigError(f"The permission rule `{rule.text}` needs a host, as in `WebFetch(domain:example.com)`.")
    elif spec.startswith("!"):
        raise ConfigError(
            f"The permission rule `{rule.text}` begins with `!`. Write what it means, not what it leaves out."
        )


def _matches_example(rule: Rule, example: str, places: Places) -> bool:
    if rule.family == "shell":
        return any(matches_command(rule, part, places) for part in parse(example).parts)
    if rule.family == "fetch":
        return matches_host(rule, example.partition("://")[2].split("/")[0] or example)
    if rule.family == "mcp":
        return matches_tool(rule, example)
    return matches_path(rule, absolute(example, places.start, places.home), places)


# --- which tool -------------------------------------------------------------------------------------------------------


def concerns(rule: Rule, action: Action) -> bool:
    """Whether the rule is about this kind of action at all, whatever its specifier says."""
    mcp = action.tool.startswith("mcp__")
    match rule.family:
        case "any":
            return True
        case "mcp":
            return mcp and matches_tool(rule, action.tool)
        case "shell":
            return not mcp and (action.effect == "execute" or action.command is not None)
        case "edit":
            return not mcp and (action.effect == "write" or bool(action.writes))
        case "read":
            # What forbids reading forbids showing the content in a diff as well.
            wide = rule.decision != "allow" and bool(action.writes)
            return not mcp and (action.effect == "read" or bool(action.reads) or wide)
        case "fetch":
            return not mcp and action.url is not None
        case _:
            return action.tool.lower() == rule.tool.lower()


def matches_tool(rule: Rule, tool: str) -> bool:
    """Whether an `mcp__server` or `mcp__server__tool` rule (stars allowed) names this tool."""
    name = _glob(rule.tool)
    return re.fullmatch(name, tool) is not None or re.fullmatch(name + "__.*", tool) is not None


# --- commands ---------------------------------------------------------------------------------------------------------


class _CommandPattern(Struct, frozen=True):
    """Patterns for the first words (regular expressions; None is a run of any words), and whether more may follow."""

    words: tuple[str | None, ...]
    literals: tuple[str | None, ...]
    more: bool


def matches_command(rule: Rule, part: Part, places: Places) -> bool:
    """Whether a rule about the shell matches one simple command.

    An allow rule needs every word to be known and the program spelled as in the rule. A deny or ask rule matches any
    spelling: by path, by guess, past options in front of a subcommand, with its own options in any order.
    """
    if rule.spec is None:
        return True
    pattern = _command_pattern(rule.text, rule.spec)
    if rule.decision == "allow":
        values = [word.value for word in part.words]
        if None in values:
            return False
        return _fits(pattern, [value or "" for value in values], fold=False)
    return any(
        _fits(pattern, spelling, fold=places.fold_case, more=True) or _fits_in_any_order(pattern, spelling)
        for spelling in _spellings(part.words, pattern)
    )


def covered_words(rule: Rule) -> int:
    """How many words of a command an allow rule spells out (stars count as nothing)."""
    if rule.spec is None:
        return 0
    literals = _command_pattern(rule.text, rule.spec).literals
    return next((index for index, word in enumerate(literals) if word is None), len(literals))


@lru_cache(maxsize=512)
def _command_pattern(text: str, spec: str) -> _CommandPattern:
    spec = spec.strip()
    if spec.endswith(":*"):
        spec = spec[:-2] + " *"
    tokens = _tokens(spec)
    if tokens is None:
        raise ConfigError(f"The permission rule `{text}` has a quote that is not closed.")
    more = False
    if tokens and tokens[-1] == ["*"]:
        tokens.pop()
        more = True
    elif tokens and tokens[-1][-1:] == ["*"]:
        more = True
    words = tuple(
        None if token == ["*"] else "".join(".*" if piece == "*" else piece for piece in token) for token in tokens
    )
    literals = tuple(None if "*" in token else "".join(token).replace("\\", "") for token in tokens)
    return _CommandPattern(words, literals, more)


def _tokens(spec: str) -> list[list[str]] | None:
    """The words of a specifier, as pieces of regular expression and stars; quotes and backslashes as in a shell."""
    tokens: list[list[str]] = []
    current: list[str] | None = None
    quote = ""
    at = 0
    while at < len(spec):
        char = spec[at]
        at += 1
        if quote:
            if char == quote:
                quote = ""
            else:
                (current := current if current is not None else []).append(re.escape(char))
        elif char in "'\"":
            quote = char
            current = current if current is not None else []
        elif char == "\\" and at < len(spec):
            (current := current if current is not None else []).append(re.escape(spec[at]))
            at += 1
        elif char in " \t":
            if current is not None:
                tokens.append(current)
            current = None
        elif char == "*":
            current = current if current is not None else []
            if current[-1:] != ["*"]:
                current.append("*")
        else:
            (current := current if current is not None else []).append(re.escape(char))
    if current is not None:
        tokens.append(current)
    return None if quote else tokens


def _fits(pattern: _CommandPattern, words: Sequence[str], *, fold: bool, more: bool = False) -> bool:
    flags = re.DOTALL | (re.IGNORECASE if fold else 0)

    def fits(at: int, word: int) -> bool:
        if at == len(pattern.words):
            return pattern.more or more or word == len(words)
        wanted = pattern.words[at]
        if wanted is None:
            return any(fits(at + 1, following) for following in range(word + 1, len(words) + 1))
        return word < len(words) and re.fullmatch(wanted, words[word], flags) is not None and fits(at + 1, word + 1)

    return len(words) <= 2000 and fits(0, 0)


def _fits_in_any_order(pattern: _CommandPattern, words: Sequence[str]) -> bool:
    """Whether `rm -rf *` means `rm -r dir -f` too: other words in order, every option of the rule somewhere."""
    wanted = [word for word in pattern.literals if word is not None]
    options = [word for word in wanted if word.startswith("-") and word != "-"]
    if not options or len(wanted) != len(pattern.literals):
        return False
    plain = [word for word in words if not word.startswith("-")]
    if plain[: len(wanted) - len(options)] != [word for word in wanted if word not in options]:
        return False
    letters = {letter for word in words if re.fullmatch(r"-[^-].*", word) for letter in word[1:]}
    longs = {word.partition("=")[0] for word in words if word.startswith("--") and word != "--"}

    def given(option: str) -> bool:
        if option.startswith("--"):
            short = any(name == option[2:] and letters & set(same) for name, same in _BOTH_WAYS.items())
            return short or any(one.startswith(option) or (option.startswith(one) and len(one) > 3) for one in longs)
        return all(
            letter in letters or any(letter in _BOTH_WAYS[name] and _named(name, letters, longs) for name in _BOTH_WAYS)
            for letter in option[1:]
        )

    return all(given(option) for option in options)


# Options that programs know by a word and by letters, for rules that forbid.
_BOTH_WAYS = {"recursive": "rR", "force": "f", "delete": "dD", "no-verify": "n"}


def _named(name: str, letters: set[str], longs: set[str]) -> bool:
    return bool(letters & set(_BOTH_WAYS[name])) or any(f"--{name}".startswith(one) and len(one) > 3 for one in longs)


def _spellings(words: Sequence[Word], pattern: _CommandPattern) -> list[list[str]]:
    """The command as a rule that forbids may see it: without its folder, braces opened, options in front left out."""
    # A word of nothing but unknown variables may be no word at all.
    seen = [word for word in words if word.best or not word.text.startswith(("$", "`"))]
    best = [opened for word in seen for opened in braces_opened(word.best)]
    if not best:
        return []
    programs = [best[0]]
    if "/" in best[0]:
        programs.append(best[0].rpartition("/")[2])
    programs += [program[:-4] for program in programs if program.lower().endswith(".exe")]
    if programs[-1].startswith("git-"):
        # `git-push` among the programs of git is `git push`.
        programs.append("git")
        best = ["git", programs[-2][4:], *best[1:]]
    wanted = pattern.literals[0] if pattern.literals else None
    if words[0].glob and wanted and re.fullmatch(_glob(programs[-1]), wanted):
        programs.append(wanted)
    starts = [1]
    for at in range(2, min(len(best), 100)):
        if best[at - 1].startswith("-") or best[at - 2].startswith("-"):
            starts.append(at)
        elif at > 2:
            break
    return [[program, *best[start:]] for program in programs for start in starts]


def _glob(text: str) -> str:
    """A shell pattern as a regular expression."""
    pieces = re.split(r"(\*|\?|\[[^\]]*\])", text)
    signs = {"*": ".*", "?": "."}
    return "".join(signs.get(piece) or _letters(piece) or re.escape(piece) for piece in pieces)


def _letters(piece: str) -> str | None:
    """`[a-z]` or `[!a-z]` as a regular expression; None for what is none."""
    if not (piece.startswith("[") and piece.endswith("]") and len(piece) > 2) or "--" in piece:
        return None
    # Signs that stand for sets of sets in a regular expression are letters to a shell.
    inner = re.sub(r"([\\\[&|~])", r"\\\1", piece[1:-1])
    wanted = f"[^{inner[1:]}/]" if inner[0] in "!^" else f"[{inner}]"
    try:
        re.compile(wanted)
    except re.error:
        return None
    return wanted


# --- paths and hosts --------------------------------------------------------------------------------------------------


def matches_path(rule: Rule, path: str, places: Places) -> bool:
    """Whether a rule about files matches an absolute path, or a folder above it."""
    if rule.spec is None:
        return True
    # Cases are told apart only where a difference lets nobody past a rule that forbids.
    fold = places.fold_case or rule.decision != "allow"
    pattern = _path_pattern(rule.spec.strip(), rule.base or places.start, places.start, places.home)
    return re.fullmatch(pattern, path, re.DOTALL | (re.IGNORECASE if fold else 0)) is not None


@lru_cache(maxsize=512)
def _path_pattern(spec: str, base: str, start: str, home: str) -> str:
    if spec.startswith("//"):
        folder, rest, anywhere = "", spec[2:], False
    elif spec == "~" or spec.startswith("~/"):
        folder, rest, anywhere = home, spec[2:], False
    elif spec.startswith("/"):
        folder, rest, anywhere = base, spec[1:], False
    else:
        folder, rest, anywhere = start, spec.removeprefix("./"), "/" not in spec.rstrip("/")
    names = [name for name in rest.split("/") if name not in {"", "."}]
    while names and names[-1] == "**":
        names.pop()
    pattern = re.escape(folder.rstrip("/"))
    if anywhere:
        pattern += r"(?:/[^/]+)*"
    for name in names:
        pattern += r"(?:/[^/]+)*" if name == "**" else "/" + _name_pattern(name)
    return pattern + r"(?:/.*)?"


def _name_pattern(name: str) -> str:
    pieces = re.split(r"(\*+|\?|\[[^\]/]+\]|\\.)", name)
    translated = []
    for piece in pieces:
        if piece.startswith("*"):
            translated.append("[^/]*")
        elif piece == "?":
            translated.append("[^/]")
        elif (letters := _letters(piece)) is not None:
            translated.append(letters)
        else:
            translated.append(re.escape(piece[1:] if piece.startswith("\\") and len(piece) == 2 else piece))
    return "".join(translated)


def matches_host(rule: Rule, host: str) -> bool:
    """Whether a rule about addresses matches a whole host name; `*.example.com` is every host below it."""
    if rule.spec is None:
        return True
    wanted = rule.spec.strip().removeprefix("domain:").casefold().rstrip(".")
    host = host.casefold().rstrip(".")
    if wanted.startswith("*."):
        return host.endswith(wanted[1:]) and len(host) > len(wanted) - 1
    if rule.decision != "allow":
        return host == wanted or host.endswith("." + wanted)
    return host == wanted
