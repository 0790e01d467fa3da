"""Where old text stands in a file, exactly or in a form that means the same (pure).

Forms, strictest first: exact; line ends may differ; also trailing blanks may differ; also all lines may be indented by
the same amount more or less; or quotes and dashes may be typographic. The first form that occurs at all decides: a
looser one is never tried because a stricter one was found twice. Nothing outside the span that was found is touched.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct, structs

from mycode.core.errors import ToolError
from mycode.core.patterns import pattern

Form = Literal["exact", "line ends", "trailing blanks", "indentation", "quotes"]

LINE_BREAK = pattern(r"\r\n|\n|\r")
_TYPOGRAPHIC = str.maketrans("‘’‚‛′“”„‟″‐‑‒–—―−", "'''''\"\"\"\"\"-------")


class Span(Struct, frozen=True):
    """A place where the old text was found; `more` and `less` are the blanks each line there has more or less."""

    start: int
    end: int
    form: Form
    more: str = ""
    less: str = ""


class NotFound(ToolError):
    """The old text is in the file in no form."""


def find(text: str, old: str, *, start: int = 0, whole_lines: bool = False) -> list[Span]:
    """Every place of `old` at or after `start` in the strictest form that occurs; overlapping ones count too."""
    spans = _find_exact(text, old, start=start, whole_lines=whole_lines)
    if spans:
        return spans
    plain = LINE_BREAK.sub("\n", old)
    for places in _looser(text, plain, whole_lines=whole_lines):
        spans = [span for span in places if span.start >= start]
        if spans:
            break
    return spans


def find_all(text: str, old: str) -> list[Span]:
    """Every place of `old` from left to right without overlaps, line ends of any kind being equal."""
    spans = list(_find_line_ends(text, LINE_BREAK.sub("\n", old), whole_lines=False)) if LINE_BREAK.search(old) else []
    spans = spans or find(text, old)
    kept: list[Span] = []
    for span in spans:
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept


def line_of(text: str, offset: int) -> int:
    """The number (from 1) of the line that holds `offset`."""
    return len(LINE_BREAK.findall(text, 0, offset)) + 1


def _find_exact(text: str, old: str, *, start: int, whole_lines: bool) -> list[Span]:
    spans: list[Span] = []
    at = text.find(old, start)
    while at >= 0:
        end = at + len(old)
        if not _splits_break(text, at) and not _splits_break(text, end) and (not whole_lines or _whole(text, at, end)):
            spans.append(Span(at, end, "exact"))
        at = text.find(old, at + 1)
    return spans


def _looser(text: str, old: str, *, whole_lines: bool) -> Iterator[Iterator[Span]]:
    """The places of `old` form by form, each looser than the one before."""
    yield _find_line_ends(text, old, whole_lines=whole_lines)
    if old.strip():
        yield _Page(text, strip=True).find(old, "trailing blanks", whole_lines=whole_lines)
        yield _find_indented(text, old)
        yield _Page(text, strip=True, fold=True).find(old, "quotes", whole_lines=whole_lines)


def _find_line_ends(text: str, old: str, *, whole_lines: bool) -> Iterator[Span]:
    """Places that differ from `old` in line ends only; quick where all lines of the text end alike."""
    breaks = text.count("\r")
    if breaks and not breaks == text.count("\r\n") == text.count("\n"):
        yield from _Page(text).find(old, "line ends", whole_lines=whole_lines)
        return
    laid = old.replace("\n", "\r\n") if breaks else old
    for span in _find_exact(text, laid, start=0, whole_lines=whole_lines):
        yield structs.replace(span, form="line ends")


def _splits_break(text: str, at: int) -> bool:
    return text[at - 1 : at + 1] == "\r\n" if at else False


def _whole(text: str, start: int, end: int) -> bool:
    return (start == 0 or text[start - 1] in "\r\n") and (end == len(text) or text[end] in "\r\n")


class _Page:
    """A text with its line ends made equal (trailing blanks gone, quotes plain), and the way back to its offsets."""

    def __init__(self, text: str, *, strip: bool = False, fold: bool = False) -> None:
        self._strip, self._fold = strip, fold
        self._starts: list[int] = []  # where each line begins in the text
        self._stops: list[int] = []  # where its line end begins there
        self._at: list[int] = []  # where the line begins in `plain`
        contents: list[str] = []
        start = at = 0
        for begin, end in _line_bounds(text):
            content = self._plain(text[start:begin])
            self._starts.append(start)
            self._stops.append(begin)
            self._at.append(at)
            contents.append(content)
            at += len(content) + 1
            start = end
        self._lengths = [len(content) for content in contents]
        self.plain = "\n".join(contents)

    def find(self, old: str, form: Form, *, whole_lines: bool = False) -> Iterator[Span]:
        lines = old.split("\n")
        needle = "\n".join(self._plain(line) for line in lines)
        to_line_end = whole_lines or self._plain(lines[-1]) != lines[-1].translate(_TYPOGRAPHIC if self._fold else {})
        at = self.plain.find(needle) if needle else -1
        while at >= 0:
            end = at + len(needle)
            starts_line = at == 0 or self.plain[at - 1] == "\n"
            ends_line = end == len(self.plain) or self.plain[end] == "\n"
            if (starts_line or not whole_lines) and (ends_line or not to_line_end):
                yield Span(self._start(at), self._end(end), form)
            at = self.plain.find(needle, at + 1)

    def _plain(self, line: str) -> str:
        line = line.translate(_TYPOGRAPHIC) if self._fold else line
        return line.rstrip(" \t") if self._strip else line

    def _start(self, at: int) -> int:
        line = bisect_right(self._at, at) - 1
        column = at - self._at[line]
        return self._stops[line] if column and column == self._lengths[line] else self._starts[line] + column

    def _end(self, at: int) -> int:
        line = bisect_right(self._at, at) - 1
        return self._starts[line] + at - self._at[line]


def _line_bounds(text: str) -> Iterator[tuple[int, int]]:
    """Where each line's end begins and stops; the last line ends with the text."""
    for found in LINE_BREAK.finditer(text):
        yield found.span()
    yield len(text), len(text)


def _find_indented(text: str, old: str) -> Iterator[Span]:
    """Whole lines that are those of `old`, all indented by the same blanks more, or the same blanks less."""
    closed = old.endswith("\n")
    wanted = [line.rstrip(" \t") for line in old.removesuffix("\n").split("\n")]
    stripped = [line.lstrip(" \t") for line in wanted]
    key = next(number for number, line in enumerate(stripped) if line)
    bounds = list(_line_bounds(text))
    starts = [0, *(end for _, end in bounds[:-1])]
    lines = [text[start:stop].rstrip(" \t") for start, (stop, _) in zip(starts, bounds, strict=True)]
    for first in range(len(lines) - len(wanted) + 1):
        if lines[first + key].lstrip(" \t") != stripped[key]:
            continue
        here = lines[first : first + len(wanted)]
        if [line.lstrip(" \t") for line in here] != stripped:
            continue
        shift = _shift(wanted, here)
        last = first + len(wanted) - 1
        if shift is None or (closed and bounds[last][0] == bounds[last][1]):
            continue
        end = bounds[last][1] if closed else starts[last] + len(lines[last])
        yield Span(starts[first], end, "indentation", *shift)


def _shift(wanted: list[str], here: list[str]) -> tuple[str, str] | None:
    """The blanks that every line of `here` has more than `wanted`, or less; None if they differ."""
    shifts = set()
    for old, line in zip(wanted, here, strict=True):
        if not old:
            continue
        if line.endswith(old):
            shifts.add((line.removesuffix(old), ""))
        elif old.endswith(line):
            shifts.add(("", old.removesuffix(line)))
        else:
            return None
    return shifts.pop() if len(shifts) == 1 else None
