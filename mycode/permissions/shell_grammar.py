"""Reads the text of a shell command into its parts, flagging whatever is not fully understood.

Two readers. A small strict one knows plain words, quotes, `&& || ; |`, newlines and file redirects: what it accepts
means exactly one thing to every shell, and only that can ever be allowed without a question. Everything else goes
through the bash grammar of tree-sitter, so that no command inside it escapes a rule that forbids it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from mycode.core.patterns import pattern
from mycode.permissions.listed import listed

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST = 10_000
"""Characters; a longer text is never fully understood."""
MOST_PARTS = 50
"""Commands; a text with more of them is never fully understood."""
_READABLE = 200_000


class Word(Struct, frozen=True):
    """One word of a command.

    `value` is what the program gets when it is known before running, else None; `guess` is the best that can be said of
    it then: known variables put in, unknown ones left out. `glob` words may become several; `tilde` ones begin at home.
    """

    text: str
    value: str | None
    guess: str = ""
    glob: bool = False
    tilde: bool = False

    @property
    def best(self) -> str:
        return self.guess if self.value is None else self.value


class Redirect(Struct, frozen=True):
    """Where a stream goes: the operator (`>`, `>>`, `<`, `>|`, `&>`, `<<` ...) and the file; None for `2>&1`."""

    sign: str
    target: Word | None

    @property
    def writes(self) -> bool:
        return ">" in self.sign


class Part(Struct, frozen=True):
    """One simple command: its text, the assignments in front of it, its words (program first), its redirects.

    `joint` is the operator in front of it, where the strict reader saw it: `;` for a newline too.
    """

    text: str
    words: tuple[Word, ...] = ()
    assignments: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    joint: str = ""

    @property
    def program(self) -> str:
        return self.words[0].best if self.words else ""


class Script(Struct, frozen=True):
    """All parts in reading order, those inside substitutions and loops too, and why the text is not plain, if so."""

    parts: tuple[Part, ...]
    unclear: tuple[str, ...] = ()


def parse(text: str, *, variables: Mapping[str, str] | None = None) -> Script:
    """The parts of a command text. Never raises; `variables` are values to put in for guesses (`HOME`, `PWD`)."""
    plain = _read_plain(text) if len(text) <= LONGEST else None
    if plain is not None:
        return plain if len(plain.parts) <= MOST_PARTS else structs.replace(plain, unclear=(_too_many(plain.parts),))
    script = _read_with_grammar(text[:_READABLE], dict(variables or {}))
    unclear = script.unclear
    if len(text) > LONGEST:
        unclear = (f"it is {len(text):,} characters long", *unclear)
    if len(script.parts) > MOST_PARTS:
        unclear = (*unclear, _too_many(script.parts))
    return Script(script.parts, unclear or ("it is more than plain words and pipes",))


def braces_opened(text: str) -> list[str]:
    """`{a,b}` as the words it becomes, inner braces first; other text as it is. At most some two hundred words."""
    words = [text]
    for _ in range(8):
        opened: list[str] = []
        for word in words:
            found = re.search(r"\{([^{}]*,[^{}]*)\}", word) if len(words) < 200 and len(word) < 4000 else None
            choices = found[1].split(",") if found else []
            opened += [word[: found.start()] + choice + word[found.end() :] for choice in choices] if found else [word]
        if opened == words:
            break
        words = list(dict.fromkeys(opened))
    return words


def _too_many(parts: tuple[Part, ...]) -> str:
    return f"it has {len(parts)} commands"


# --- the strict reader ------------------------------------------------------------------------------------------------

_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:,+@%=-^")
_GLOB = frozenset("*?[]")
_RESERVED = frozenset(
    listed("if then else elif fi for while until do done case esac in function select coproc time { } [[ ]] !")
)
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_OPERATOR = re.compile(r"&&|\|\|?(?!&)|;(?![;&])|\n")
_REDIRECT = re.compile(r"(?P<fd>\d{0,2})(?P<sign>>>|>\||>&|>|<(?![<>&(]))|(?P<both>&>>|&>)")


def _read_plain(text: str) -> Script | None:
    """The parts, or None when the text holds anything that has to be thought about."""
    parts: list[Part] = []
    words: list[Word] = []
    redirects: list[Redirect] = []
    start = at = 0
    open_operator = False
    joint = ""

    def close(end: int) -> bool:
        nonlocal open_operator, joint
        if not words:
            return not redirects
        part = _simple_command(text[start:end].strip(), words, redirects)
        if part is None:
            return False
        parts.append(structs.replace(part, joint=joint) if joint else part)
        words.clear()
        redirects.clear()
        open_operator = False
        joint = ";"
        return True

    while at < len(text):
        char = text[at]
        if char in " \t":
            at += 1
            continue
        if text.startswith("\\\n", at) and at and text[at - 1] in " \t":
            at += 2
            continue
        if char == "#":
            comment = text[at : text.find("\n", at) if "\n" in text[at:] else len(text)]
            if not re.fullmatch(r"#[\w\s.,:;()/=+*!?@%-]*", comment, re.ASCII):
                return None
            at += len(comment)
            continue
        operator = _OPERATOR.match(text, at)
        if operator:
            sign = operator[0]
            if not words and not redirects and sign != "\n":
                return None
            if not close(at):
                return None
            at = start = operator.end()
            open_operator = open_operator if sign == "\n" else sign != ";"
            joint = joint if sign == "\n" else sign
            continue
        redirect = _REDIRECT.match(text, at)
        if redirect:
            found = _plain_redirect(text, redirect)
            if found is None:
                return None
            redirects.append(found[0])
            at = found[1]
            continue
        read = _plain_word(text, at)
        if read is None:
            return None
        words.append(read[0])
        at = read[1]
    if not close(len(text)) or open_operator:
        return None
    return Script(tuple(parts))


def _simple_command(text: str, words: list[Word], redirects: list[Redirect]) -> Part | None:
    assignments: list[tuple[str, Word]] = []
    rest = list(words)
    while rest and (name := _ASSIGNMENT.match(rest[0].text)):
        value = rest[0].value or ""
        if "~" in rest[0].text or rest[0].glob or not value.startswith(name[0]):
            return None
        assignments.append((name[1], structs.replace(rest[0], value=value[name.end() :])))
        rest.pop(0)
    if rest:
        first = rest[0]
        if first.glob and first.value != "[":
            return None
        if first.tilde or "=" in first.text or not first.text.isascii() or first.text in _RESERVED - {"time"}:
            return None
    return Part(text, tuple(rest), tuple(assignments), tuple(redirects))


def _plain_redirect(text: str, found: re.Match[str]) -> tuple[Redirect, int] | None:
    at = found.end()
    sign = found["both"] or found["sign"]
    if sign == ">&":
        copied = re.compile(r"[0-9](?![^\s;|&])").match(text, at)
        if copied:
            return Redirect(">&", None), copied.end()
        if re.compile(r"[ \t]*[\w./+](?:[\w./+-]*[\w./+])?(?![^\s;|&<>])").match(text, at) is None:
            # `>&-` closes and ends there, and quotes are taken off twice.
            return None
    while at < len(text) and text[at] in " \t":
        at += 1
    read = _plain_word(text, at) if at < len(text) else None
    if read is None or read[0].glob:
        return None
    return Redirect(sign, read[0]), read[1]


def _plain_word(text: str, at: int) -> tuple[Word, int] | None:
    start = at
    value: list[str] = []
    glob = tilde = False
    while at < len(text):
        char = text[at]
        if char in " \t\n;|&<>":
            break
        if char == "'":
            end = text.find("'", at + 1)
            if end < 0 or not _printable(text[at + 1 : end]):
                return None
            value.append(text[at + 1 : end])
            at = end + 1
        elif char == '"':
            quoted = _double_quoted(text, at + 1)
            if quoted is None:
                return None
            value.append(quoted[0])
            at = quoted[1]
        elif char == "\\":
            if at + 1 >= len(text) or not ("!" <= text[at + 1] <= "~" or text[at + 1] == " "):
                return None
            value.append(text[at + 1])
            at += 2
        elif char == "{":
            # `{}` is itself, and so is what stands in braces behind `@` or `^`, as git writes it: `stash@{0}`.
            closed = _braces().match(text, at)
            if closed is None or (closed[0] != "{}" and (at == start or text[at - 1] not in "@^")):
                return None
            value.append(closed[0])
            at = closed.end()
        elif char == "~":
            following = text[at + 1 : at + 2]
            if at == start:
                if following not in {"", "/", " ", "\t", "\n", ";", "|", "&"}:
                    return None
                tilde = True
            elif text[at - 1] in "=:":
                # The shell puts the home folder in there too, when a name stands before it.
                return None
            value.append(char)
            at += 1
        elif char in _BARE or char in _GLOB or (char == "!" and at > start) or (char == "#" and at > start):
            if char == "=" and at == start:
                return None
            glob = glob or char in _GLOB
            value.append(char)
            at += 1
        elif char > "\x7f" and _printable(char):
            value.append(char)
            at += 1
        else:
            return None
    if at == start:
        return None
    raw = text[start:at]
    if text[at : at + 1] in {"<", ">"} and raw.isdecimal():
        # A stream of a high number, or a word if the number is too high.
        return None
    if raw in {"[", "]"}:
        glob = False
    return Word(raw, "".join(value), glob=glob, tilde=tilde), at


def _braces() -> re.Pattern[str]:
    return pattern(r"\{[\w/-]*\}")


def _double_quoted(text: str, at: int) -> tuple[str, int] | None:
    value: list[str] = []
    while at < len(text):
        char = text[at]
        if char == '"':
            inner = "".join(value)
            return (inner, at + 1) if _printable(inner) else None
        # A dollar sign at the end, in front of a blank, or of the end of a pattern's branch is itself.
        if char == "`" or (char == "$" and not re.match(r"[\" |]|\\\|", text[at + 1 : at + 3])):
            return None
        if char == "\\":
            following = text[at + 1 : at + 2]
            if following in {"", "\n"}:
                return None
            value.append(following if following in {'"', "\\", "$", "`"} else char + following)
            at += 2
            continue
        value.append(char)
        at += 1
    return None


# Letters that count as printable and are drawn as nothing.
_BLANK_LETTERS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def _printable(text: str) -> bool:
    """Whether a reader sees all of it: no control characters, no letters of no width, no odd blanks."""
    shown = text.replace("\n", "").replace("\t", "")
    return shown.isprintable() and (text.isascii() or not _BLANK_LETTERS.search(text))


# --- the reader with the whole grammar --------------------------------------------------------------------------------

_COMMANDS = frozenset({"command", "declaration_command", "unset_command", "test_command"})
_PLAIN_NODES = frozenset(
    listed(
        "program list pipeline command command_name word number string string_content raw_string"
        " concatenation redirected_statement file_redirect file_descriptor variable_assignment"
        " variable_assignments variable_name"
    )
)
_NAMES = {
    "command_substitution": "it puts the output of another command in",
    "process_substitution": "it reads from another command as from a file",
    "simple_expansion": "it puts a variable in",
    "expansion": "it puts a variable in",
    "arithmetic_expansion": "it computes",
    "ansi_c_string": "it spells characters by number",
    "function_definition": "it defines a function",
    "subshell": "it uses a subshell",
    "heredoc_redirect": "it has a here-document",
    "herestring_redirect": "it has a here-string",
    "test_command": "it has a condition",
    "declaration_command": "it sets variables",
    "ERROR": "it cannot be parsed",
}


def _read_with_grammar(text: str, variables: dict[str, str]) -> Script:
    from tree_sitter import Language, Parser
    from tree_sitter_bash import language

    parser = Parser(Language(language()))
    parts: list[Part] = []
    unclear: list[str] = []
    # The shell joins lines at a backslash even inside a word, the grammar does not: read it both ways.
    for reading in dict.fromkeys((text, text.replace("\\\n", ""))):
        # The grammar's scanner looks letters up in a table of 256 and falls over others; to a shell they are all
        # letters. With one byte for each character, positions in the tree are positions in the text.
        source = re.sub(r"[^\x01-\x7f]", "X", reading).encode()
        reader = _Reader(reading, dict(variables))
        reader.visit(parser.parse(source).root_node)
        parts += [part for part in reader.parts if part not in parts]
        unclear += reader.unclear
    if any(unicodedata.category(char) in {"Cc", "Cf"} and char not in "\n\t" for char in text):
        unclear.insert(0, "it holds control characters")
    if {_NAMES["ERROR"], "it holds control characters"} & set(unclear):
        # Where the grammar is lost, every piece between operators counts as a command, for the rules that forbid.
        parts += pieces(text, {part.text for part in parts})
    return Script(tuple(parts), tuple(dict.fromkeys(unclear)))


class _Reader:
    """Walks the tree once and collects commands, known variables and reasons for doubt."""

    def __init__(self, source: str, variables: dict[str, str]) -> None:
        self.parts: list[Part] = []
        self.unclear: list[str] = []
        self._source = source
        self._variables = variables

    def visit(self, node: Node) -> None:
        # A list instead of recursion: a text of ten thousand brackets must not exhaust the stack.
        waiting: list[tuple[Node, tuple[Redirect, ...]]] = [(node, ())]
        while waiting:
            current, around = waiting.pop()
            if (current.type not in _PLAIN_NODES and current.is_named) or current.is_missing:
                self.unclear.append(_NAMES.get(current.type, f"it has a {current.type.replace('_', ' ')}"))
            if not current.is_named and current.type in {"&", "|&"}:
                self.unclear.append("it runs something in the background" if current.type == "&" else "it uses |&")
            if current.type == "redirected_statement":
                own = tuple(self._redirect(child) for child in current.children if child.type.endswith("_redirect"))
                around = (*around, *own)
                if not any(child.type not in {"file_redirect", "heredoc_redirect"} for child in current.named_children):
                    self.parts.append(Part(self._text(current), redirects=own))
            elif current.type in _COMMANDS:
                self._command(current, around)
                around = ()
            elif current.type in {"variable_assignment", "variable_assignments"}:
                self._assignment(current)
                around = ()
            elif current.type == "for_statement":
                self._loop(current)
            waiting.extend((child, around) for child in reversed(current.children))

    def _command(self, node: Node, redirects: tuple[Redirect, ...]) -> None:
        words: list[Word] = []
        assignments: list[tuple[str, Word]] = []
        for child in node.children:
            if child.type == "variable_assignment" and node.type == "command":
                assignments += self._pairs(child)
            elif child.type.endswith("_redirect"):
                redirects = (*redirects, self._redirect(child))
            else:
                words.append(self._word(child))
        self.parts.append(Part(self._text(node), tuple(words), tuple(assignments), redirects))

    def _assignment(self, node: Node) -> None:
        if node.parent is not None and node.parent.type in {"command", "declaration_command", "variable_assignments"}:
            if node.parent.type == "declaration_command":
                self._pairs(node)
            return
        nodes = node.children if node.type == "variable_assignments" else [node]
        pairs = [pair for child in nodes for pair in self._pairs(child)]
        self.parts.append(Part(self._text(node), assignments=tuple(pairs)))

    def _loop(self, node: Node) -> None:
        """The variable of a loop is any of its values; braces say so."""
        name = next((self._text(child) for child in node.children if child.type == "variable_name"), "")
        fields = [child for at, child in enumerate(node.children) if node.field_name_for_child(at) == "value"]
        values = [self._word(child).best for child in fields]
        if name and values:
            self._variables[name] = values[0] if len(values) == 1 else "{" + ",".join(values) + "}"

    def _pairs(self, node: Node) -> list[tuple[str, Word]]:
        name, sign, value = self._text(node).partition("=")
        word = self._word(node.children[-1]) if sign and value and node.children else Word(value, value)
        self._variables[name.rstrip("+")] = word.best
        return [(name.rstrip("+"), word)]

    def _redirect(self, node: Node) -> Redirect:
        signs = [child.type for child in node.children if not child.is_named]
        named = [child for child in node.named_children if child.type != "file_descriptor"]
        sign = signs[0] if signs else "<<"
        if node.type != "file_redirect" or not named:
            return Redirect("<<", None)
        word = self._word(named[-1])
        return Redirect(sign, None if sign == ">&" and word.best.isdigit() else word)

    def _word(self, node: Node) -> Word:
        text = self._text(node)
        value = self._value(node)
        if value is None:
            return Word(text, None, self._guess(node))
        bare = node.type in {"word", "concatenation", "command_name"}
        glob = bare and any(char in text for char in "*?[")
        return Word(text, value, glob=glob, tilde=bare and text.startswith("~"))

    def _value(self, node: Node) -> str | None:
        text = self._text(node)
        match node.type:
            case "word" | "number" | "variable_name" | "test_operator" | "regex" | "extglob_pattern":
                return _unescaped(text)
            case "raw_string":
                return text[1:-1]
            case "string_content":
                return re.sub(r'\\([$`"\\\n])', lambda found: "" if found[1] == "\n" else found[1], text)
            case "string" if all(child.type in {'"', "string_content"} for child in node.children):
                return re.sub(r'\\([$`"\\\n])', lambda found: "" if found[1] == "\n" else found[1], text[1:-1])
            case "ansi_c_string":
                return _ansi_c(text[2:-1])
            case "concatenation" | "command_name":
                values = [self._value(child) for child in node.children]
                return None if None in values else "".join(value or "" for value in values)
            case _ if not node.is_named:
                return text
            case _:
                return None

    def _guess(self, node: Node) -> str:
        value = self._value(node)
        if value is not None:
            return "" if node.type == '"' else value
        if node.type in {"simple_expansion", "expansion"}:
            name = re.search(r"[A-Za-z_]\w*", self._text(node))
            default = re.search(r"\w:?[-=+](.*)\}", self._text(node))
            known = self._variables.get(name[0] if name else "", "")
            return known or (default[1] if default else "")
        if node.type == "command_substitution":
            inner = self._text(node).strip('$()`" \t\n')
            if inner in {"pwd", "git rev-parse --show-toplevel"}:
                return self._variables.get("PWD", "")
            if (above := re.fullmatch(r'dirname "?\$\{?(PWD|HOME)\}?"?', self._text(node)[2:-1].strip())) is not None:
                return self._variables.get(above[1], "").rpartition("/")[0] or "/"
            return inner[5:] if re.fullmatch(r"echo [\w./~-]+", inner) else ""
        if node.type in {"process_substitution", "arithmetic_expansion"}:
            return ""
        return "".join(self._guess(child) for child in node.children)

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte]


def _unescaped(text: str) -> str:
    return re.sub(r"\\(\n|.)", lambda found: "" if found[1] == "\n" else found[1], text, flags=re.DOTALL)


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}


def _ansi_c(text: str) -> str:
    """What `$'...'` stands for."""

    def character(found: re.Match[str]) -> str:
        body = found[1]
        if body[0] in "xuU" and len(body) > 1:
            code = int(body[1:], 16)
            return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
        if body[0] in "01234567":
            return chr(int(body, 8) & 0xFF)
        return _ESCAPES.get(body, body)

    return re.sub(
        r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|.)", character, text, flags=re.DOTALL
    )


def pieces(text: str, seen: Collection[str] = ()) -> Iterator[Part]:
    """The text cut at everything that may separate commands, quotes taken off: a crude second opinion."""
    pieces = re.split(r"[;&|\n\r()`{}<>]+|\$\(", text)
    pieces += [
        " ".join(braces_opened(word)) for word in text.split() if "{" in word and "}" in word and len(word) < 999
    ]
    # `{a,b}` is a command of two words.
    pieces += [found[1].replace(",", " ") for found in re.finditer(r"\{([^{}\s]{1,999})\}", text)]
    for piece in pieces[:2000]:
        words = [re.sub(r"[\"'\\]", "", word) for word in piece.split()]
        words = [word for word in words if word]
        while words and (words[0] in _RESERVED or _ASSIGNMENT.match(words[0])):
            words.pop(0)
        if words and piece.strip() not in seen:
            yield Part(piece.strip(), tuple(Word(word, None, word) for word in words))
