"""Where old text stands in a file, exactly or in a form that means the same, and the file with new text in its place.

Forms, strictest first: exact; line ends may differ; also trailing blanks may differ; also all lines may be indented by
the same amount more or less; or quotes and dashes may be typographic. The first form that occurs at all decides: a
looser one is never tried because a stricter one was found twice. Nothing outside the span that was found is touched.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct, structs

from mycode.core.errors import ToolError

Form = Literal["exact", "line ends", "trailing blanks", "indentation", "quotes"]

LINE_BREAK = re.compile(r"\r\n|\n|\r")
_BARE_NEWLINE = re.compile(r"(?<!\r)\n")
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


class Applied(Struct, frozen=True):
    """The text after an edit; `lines` are first and last line number (from 1) of each replaced place, as it is now."""

    text: str
    form: Form
    lines: tuple[tuple[int, int], ...]


def apply(text: str, old: str, new: str, *, replace_all: bool = False) -> Applied:
    """`text` with the one occurrence of `old` replaced; with `replace_all`, every one.

    Raises `ToolError` when `old` is not there, stands in several places, or nothing would change.
    """
    if not old:
        message = "The old text is empty; that only creates files. Quote the text to replace."
        raise ToolError(message)
    if old == new:
        message = "Old and new text are the same; nothing to change."
        raise ToolError(message)
    spans = find_all(text, old) if replace_all else find(text, old)
    if not spans:
        message = f"The old text is not in the file.{_numbered(old)}"
        raise NotFound(message)
    if len(spans) > 1 and (not replace_all or spans[0].form not in ("exact", "line ends")):
        raise ToolError(_ambiguous(text, spans))
    return substitute(text, spans, old, new)


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


def substitute(text: str, spans: list[Span], old: str, new: str) -> Applied:
    """`text` with `new` in place of each span (ascending, apart from each other) in which `old` was found."""
    parts: list[str] = []
    lines: list[tuple[int, int]] = []
    done, line = 0, 1
    for span in spans:
        between, piece = text[done : span.start], _replacement(text, span, old, new)
        line += _breaks(between)
        last = line + _breaks(piece)
        lines.append((line, max(line, last - 1) if piece.endswith(("\n", "\r")) else last))
        line = last
        parts += (between, piece)
        done = span.end
    parts.append(text[done:])
    changed = "".join(parts)
    if changed == text:
        message = "The edit changes nothing: the file already has this text."
        raise ToolError(message)
    return Applied(changed, spans[0].form, tuple(lines))


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


def _replacement(text: str, span: Span, old: str, new: str) -> str:
    taken = text[span.start : span.end]
    ending = _ending_around(text, span)
    if span.form == "exact" and len(set(LINE_BREAK.findall(taken))) <= 1:
        return new if ending == "\n" else _BARE_NEWLINE.sub(lambda _: ending, new)
    return _woven(taken, span, ending, LINE_BREAK.sub("\n", old).split("\n"), LINE_BREAK.sub("\n", new).split("\n"))


def _ending_around(text: str, span: Span) -> str:
    """How lines end in the span, else right after it, else right before it."""
    breaks = LINE_BREAK if "\n" not in text else re.compile(r"\r?\n")
    inside = breaks.search(text, span.start, span.end) or breaks.search(text, span.end)
    if inside:
        return inside[0]
    if span.start and text[span.start - 1] == "\r" and "\n" not in text:
        return "\r"
    before = text.rfind("\n", 0, span.start)
    if before < 0:
        return "\r" if "\r" in text[: span.start] and "\n" not in text else "\n"
    return "\r\n" if text[before - 1 : before] == "\r" else "\n"


def _woven(taken: str, span: Span, ending: str, old: list[str], new: list[str]) -> str:
    """The lines of `new`; those that `old` has too stay as the file has them, with their own blanks and line ends."""
    from difflib import SequenceMatcher

    lines, breaks = LINE_BREAK.split(taken), [*LINE_BREAK.findall(taken), ""]
    woven: list[tuple[str, str]] = []
    for kind, i, stop, j, until in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            woven += zip(lines[i:stop], breaks[i:stop], strict=True)
            continue
        for offset, line in enumerate(new[j:until]):
            if span.form == "quotes" and stop - i == until - j:
                line = _requoted(lines[i + offset], old[i + offset], line)
            previous = woven[-1][1] if woven else ""
            woven.append((_indented(line, span), previous or ending))
    parts: list[str] = []
    for content, break_ in woven[:-1]:
        # after a lone carriage return, an empty line ending in a newline would be read as one CRLF
        line = content + (break_ or ending)
        parts.append("\r" if line == "\n" and parts and parts[-1].endswith("\r") else line)
    return "".join((*parts, woven[-1][0]))


def _indented(line: str, span: Span) -> str:
    if not line.strip(" \t"):
        return line
    if not line.startswith(span.less):
        message = (
            "The old text is indented deeper than the file, and a line of the new text is not indented enough to be "
            "shifted along. Quote the old text with the blanks it has in the file."
        )
        raise ToolError(message)
    return span.more + line.removeprefix(span.less)


def _requoted(line: str, old: str, new: str) -> str:
    """`new`, with the characters it shares with `old` at its ends as the file's own line has them."""
    line, old = line.rstrip(" \t"), old.rstrip(" \t")
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    return line[:head] + new[head : len(new) - tail] + line[len(line) - tail :]


def _shared(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _breaks(text: str) -> int:
    return len(LINE_BREAK.findall(text))


def _ambiguous(text: str, spans: list[Span]) -> str:
    numbers = [str(line_of(text, span.start)) for span in spans[:10]]
    more = f" and {len(spans) - 10} more" if len(spans) > 10 else ""
    form = "" if spans[0].form == "exact" else f" (but for {spans[0].form})"
    return (
        f"The old text stands in {len(spans)} places{form}: lines {', '.join(numbers)}{more}. "
        "Quote more of the lines around it, or set replace_all."
    )


def _numbered(old: str) -> str:
    lines = [line for line in LINE_BREAK.split(old) if line.strip()]
    if lines and all(re.match(r"\s*\d+\t", line) for line in lines):
        return " It was quoted with the line numbers of read_file; leave them out."
    return ""
