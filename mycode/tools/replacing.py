"""A text with new words in the place of old ones, everything else as it was (pure)."""

from __future__ import annotations

import re

from msgspec import Struct

from mycode.core.errors import ToolError
from mycode.core.patterns import pattern
from mycode.tools.matching import LINE_BREAK, Form, NotFound, Span, find, find_all, line_of

_BARE_NEWLINE = pattern(r"(?<!\r)\n")
_EVERYWHERE = ("exact", "line ends")  # forms in which every place may be replaced at once


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
    if len(spans) > 1 and (not replace_all or spans[0].form not in _EVERYWHERE):
        raise ToolError(_ambiguous(text, spans))
    return substitute(text, spans, old, new)


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


def _ambiguous(text: str, spans: list[Span]) -> str:
    numbers = [str(line_of(text, span.start)) for span in spans[:10]]
    more = f" and {len(spans) - 10} more" if len(spans) > 10 else ""
    form = "" if spans[0].form == "exact" else f" (but for {spans[0].form})"
    return (
        f"The old text stands in {len(spans)} places{form}: lines {', '.join(numbers)}{more}. "
        f"Quote more of the lines around it{', or set replace_all' if spans[0].form in _EVERYWHERE else ''}."
    )


def _numbered(old: str) -> str:
    lines = [line for line in LINE_BREAK.split(old) if line.strip()]
    if lines and all(re.match(r"\s*\d+\t", line) for line in lines):
        return " It was quoted with the line numbers of read_file; leave them out."
    return ""


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
