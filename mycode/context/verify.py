"""What the code checks in a summary before it counts: nothing needed is lost, nothing stands in it without a source."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from mycode.context.facts import Fact
from mycode.context.references import WORD_KINDS, extract

Known = Callable[[str], bool]
"""Whether a name occurs in what the summary was made from."""


class Source(Struct):
    """The text a summary was made from, asked for names."""

    text: str

    def knows(self, name: str) -> bool:
        """Whether the name stands in the source: numbers with or without their separators."""
        if name in self.text:
            return True
        bare = name.replace(",", "")
        return bare != name and bare in self.text


def ungrounded(text: str, known: Known) -> tuple[str, ...]:
    """The names in `text` that its source does not have. Quoted prose is not a name."""
    found = [ref.text for ref in extract(text) if ref.kind != "quoted"]
    return tuple(name for name in found if not known(name))


def ground(text: str, known: Known) -> tuple[str, tuple[str, ...]]:
    """The text without the sentences that hold a name from nowhere, and those names."""
    bad = ungrounded(text, known)
    if not bad:
        return text, ()
    lines: list[str] = []
    for line in text.split("\n"):
        if not any(name in line for name in bad):
            lines.append(line)
            continue
        mark = re.match(r"\s*(?:[-*•]|\d+[.)])?\s*", line)
        lead = mark.group() if mark else ""
        kept = [part for part in _sentences(line[len(lead) :]) if not any(name in part for name in bad)]
        if kept:
            lines.append(lead + " ".join(kept))
    return "\n".join(lines).strip(), bad


def grounded_items(items: Iterable[str], known: Known) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The items whose names all have a source, and the names of the others."""
    kept: list[str] = []
    bad: list[str] = []
    for item in items:
        wrong = ungrounded(item, known)
        if wrong:
            bad.extend(wrong)
        else:
            kept.append(item)
    return tuple(kept), tuple(bad)


def missing(facts: Sequence[Fact], text: str) -> tuple[Fact, ...]:
    """The facts that `text` does not tell."""
    lines = [(line, _words(line)) for line in text.split("\n")]
    flat = " ".join(text.split()).casefold()
    return tuple(fact for fact in facts if not _told(fact, flat, lines))


def not_done(items: Iterable[str], done: Iterable[str]) -> tuple[str, ...]:
    """The items that none of the finished ones speaks of: finished work is never listed as open."""
    finished = [_words(text) for text in done]
    return tuple(item for item in items if not any(_same(_words(item), other) for other in finished))


def _told(fact: Fact, flat: str, lines: Sequence[tuple[str, frozenset[str]]]) -> bool:
    wanted = " ".join(fact.text.split())
    if wanted.casefold() in flat:
        return True
    if fact.kind in {"file_modified", "failed_test"}:
        return False
    words = _words(wanted)
    names = [ref.text for ref in extract(wanted) if ref.kind in WORD_KINDS or ref.kind in {"path", "dotted", "flag"}]
    return any(
        len(words & own) >= 0.7 * len(words) and all(name in line for name in names) for line, own in lines if words
    )


def _same(one: frozenset[str], other: frozenset[str]) -> bool:
    return (
        bool(one)
        and bool(other)
        and len(one & other) >= 0.8 * min(len(one), len(other))
        and min(len(one), len(other)) > 1
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip(".:-") for word in re.findall(r"[\w./:-]{2,}", text.casefold()))


def _sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.!?;])\s+", text) if part.strip()]
