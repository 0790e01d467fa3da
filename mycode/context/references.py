"""The names a text mentions: paths, test ids, URLs, hashes, errors, dotted names, symbols, flags, numbers, quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

Kind = Literal["path", "test_id", "url", "hash", "error", "dotted", "symbol", "flag", "number", "quoted"]

WORD_KINDS = frozenset({"hash", "error", "symbol", "number"})
"""Kinds that count as present only as a whole word; all others are present wherever their text stands."""


class Reference(Struct, frozen=True, gc=False):
    """A specific name, as it stands in the text (`quoted` without its quotation marks)."""

    text: str
    kind: Kind


Found = tuple[Reference, ...]
Memo = dict[str, Found]
"""What was found in a piece of text already seen; owned by whoever extracts from many lines in a row."""


def extract(text: str) -> Found:
    """The distinct references of a text, in the order of their first mention."""
    memo: Memo = {}
    seen: dict[str, Reference] = {}
    for line in text.split("\n"):
        for reference in in_line(line, memo):
            seen.setdefault(reference.text, reference)
    return tuple(seen.values())


def in_line(line: str, memo: Memo) -> list[Reference]:
    """The references of one line, repeats included; `memo` makes words that come again almost free."""
    found: list[Reference] = []
    if "://" in line:
        found += [Reference(match.group(), "url") for match in _URL.finditer(line)]
        line = _URL.sub(" ", line)
    for chunk in _CHUNK.findall(line):
        known = memo.get(chunk)
        if known is None:
            known = memo[chunk] = tuple(_in_chunk(chunk))
        if known:
            found += known
    if '"' in line or "'" in line or "`" in line:
        for match in _QUOTED.finditer(line):
            text = match.group(match.lastindex or 0)
            if _THREE_LETTERS.search(text) and text.count(" ") <= 8:
                found.append(Reference(text, "quoted"))
    return found


def parts(text: str, kind: Kind) -> tuple[str, ...]:
    """Every name that is shown where this one stands, sorted: itself, its words, its tails, the names within it."""
    found = {text, *words(text)}
    if kind == "path":
        found.update(text[place + 1 :] for place, sign in enumerate(text) if sign == "/")
    elif kind == "dotted":
        pieces = text.split(".")
        found.update(".".join(pieces[a:b]) for a in range(len(pieces)) for b in range(a + 2, len(pieces) + 1))
    elif kind == "quoted":
        found.update(name.text for name in in_line(text, {}))
    return tuple(sorted(found))


def words(text: str) -> list[str]:
    """The identifiers and numbers of a text, repeats included."""
    return _WORD.findall(text)


# A chunk is a run of characters that names are made of; whatever a chunk holds depends on the chunk alone.
_CHUNK = re.compile(r"[\w@.+/~:\[\]-]{3,}")
_URL = re.compile(r"https?://[^\s\"'`<>()\[\]{}|\\,]+[^\s\"'`<>()\[\]{}|\\,.;:!?*]")
_QUOTED = re.compile(
    r"\"(?! )([^\"\n\\]{8,60})(?<! )\"|(?<!\w)'(?! )([^'\n\\]{8,60})(?<! )'(?!\w)|`(?! )([^`\n\\]{8,60})(?<! )`"
)
_THREE_LETTERS = re.compile(r"[A-Za-z]{3}")
_TWO_LETTERS = re.compile(r"[A-Za-z]{2}")
_WORD = re.compile(r"[A-Za-z_]\w*|\d+")
_SYMBOL = re.compile(
    r"[A-Za-z]\w*_\w+|_\w{3,}|[a-z][a-z0-9]*(?:[A-Z][a-z0-9]*)+|[A-Z][a-z0-9]+[A-Z][A-Za-z0-9]*|[A-Z]{2,}[a-z][A-Za-z0-9]*"
)
_DOTTED = re.compile(r"(?<!\w)[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?!\w)")
_ERROR = re.compile(r"[A-Z]\w*(?:Error|Exception|Warning|Failure|Fault)")
_HASH = re.compile(r"(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}")
_FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]{2,}")
_NUMBER = re.compile(r"(?<![\w.-])\d{3,}(?![\w.-])")
_PATH = re.compile(r"(?<![\w@./-])(?:~|\.{1,2}|/)?(?:[\w@.+-]+/)+[\w@.+-]*\w|(?<![\w@./-])/[\w.+-]+\w")
_TEST_ID = re.compile(r"[\w./-]+\.\w+::[\w:\[\]-]+\w\]?")
_FILE = re.compile(
    r"(?<![\w./-])[\w-][\w.-]*\.(?:py|pyi|pyx|ts|tsx|js|jsx|mjs|cjs|go|rs|java|kt|c|h|cc|cpp|hpp|cs|rb|php|swift|scala"
    r"|sh|bash|zsh|md|rst|txt|json|jsonl|ya?ml|toml|ini|cfg|lock|xml|html|css|scss|sql|proto|env|log|csv|patch|diff"
    r"|conf|gradle|mod|sum|ipynb|astro|vue|svelte|dockerfile)(?![\w(/])"
)
_NOT_NAMES = frozenset(
    {"tool_use", "tool_result", "and/or", "i.e", "e.g", "__init__", "__main__", "/dev/null", "/bin/bash"}
)


def _in_chunk(chunk: str) -> Iterator[Reference]:
    if chunk.isalpha() and (chunk.islower() or chunk[1:].islower()):
        return
    rest = chunk
    if "::" in chunk and (test := _TEST_ID.search(chunk)):
        yield Reference(test.group(), "test_id")
        rest = chunk[: test.start()] + " " + chunk[test.end() :]
        name = test.group()
        yield Reference(name.partition("::")[0], "path")
    if "/" in rest:
        for match in _PATH.finditer(rest):
            path = match.group().rstrip("./:")
            if _is_path(path):
                yield Reference(path, "path")
        rest = _PATH.sub(" ", rest)
    if "." in rest:
        for match in _FILE.finditer(rest):
            if len(match.group()) >= 5:
                yield Reference(match.group(), "path")
        rest = _FILE.sub(" ", rest)
        for match in _DOTTED.finditer(rest):
            if len(match.group()) >= 5 and match.group() not in _NOT_NAMES:
                yield Reference(match.group(), "dotted")
    if "--" in rest:
        for match in _FLAG.finditer(rest):
            yield Reference(match.group(), "flag")
    for match in _NUMBER.finditer(rest):
        yield Reference(match.group(), "number")
    for word in _WORD_OR_HEX.findall(rest):
        if len(word) < 5 or word in _NOT_NAMES:
            continue
        if _ERROR.fullmatch(word):
            yield Reference(word, "error")
        elif _SYMBOL.fullmatch(word):
            yield Reference(word, "symbol")
        elif len(word) >= 7 and _HASH.fullmatch(word):
            yield Reference(word, "hash")


_WORD_OR_HEX = re.compile(r"\w+")


def _is_path(path: str) -> bool:
    if len(path) < 5 or path in _NOT_NAMES or not _TWO_LETTERS.search(path):
        return False
    # fractions and sed expressions such as s/a are no paths
    return not (path.count("/") == 1 and path[0] not in "/.~" and min(map(len, path.split("/"))) < 2)
