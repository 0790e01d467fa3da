"""How the hunks of a patch are laid on the text of a file (pure)."""

from __future__ import annotations

from mycode.core.errors import ToolError
from mycode.tools import matching, replacing
from mycode.tools.matching import Form, NotFound, Span
from mycode.tools.patch_format import Hunk


def apply_hunks(text: str, hunks: tuple[Hunk, ...]) -> tuple[str, tuple[Form, ...]]:
    """The text with every hunk applied, from top to bottom, and the forms other than exact that were needed.

    A hunk's old lines must stand in one place after the hunk before. Where they stand in several, the anchors choose
    the first place after them, if the lines are there exactly. Raises `ToolError`, `NotFound` when lines are missing.
    """
    forms: list[Form] = []
    cursor = 0
    for number, hunk in enumerate(hunks, start=1):
        which = f"Change {number} of {len(hunks)}: " if len(hunks) > 1 else ""
        if not hunk.old:
            text = _append(text, hunk, which)
            cursor = len(text)
            continue
        span = _place(text, hunk, cursor, which)
        if span.form != "exact":
            forms.append(span.form)
        before = len(text)
        text = _laid(text, span, hunk)
        cursor = span.end + len(text) - before
    return text, tuple(dict.fromkeys(forms))


def _laid(text: str, span: Span, hunk: Hunk) -> str:
    if not hunk.new:
        following = matching.LINE_BREAK.match(text, span.end)
        return text[: span.start] + text[following.end() if following else span.end :]
    if hunk.old == hunk.new:
        return text
    return replacing.substitute(text, [span], "\n".join(hunk.old), "\n".join(hunk.new)).text


def _append(text: str, hunk: Hunk, which: str) -> str:
    """A hunk without old lines adds at the end; whether the file ends with a line end stays as it is."""
    if hunk.anchors:
        message = f"{which}Lines are only added after @@ {hunk.anchors[-1]}; give a context line to say exactly where."
        raise ToolError(message)
    last = max(text.rfind("\n"), text.rfind("\r"))
    ending = "\n" if last < 0 else "\r\n" if text[max(0, last - 1) : last + 1] == "\r\n" else text[last]
    added = ending.join(hunk.new)
    return text + added + ending if not text or text.endswith(("\n", "\r")) else text + ending + added


def _place(text: str, hunk: Hunk, cursor: int, which: str) -> Span:
    old = "\n".join(hunk.old)
    if not old.strip():
        message = f"{which}The change has only empty lines to be found by; give a context line with text."
        raise ToolError(message)
    spans = matching.find(text, old, start=cursor, whole_lines=True)
    if hunk.at_end:
        spans = [span for span in spans if text[span.end :].strip(" \t") in ("", "\n", "\r\n", "\r")]
    start = _after_anchors(text, hunk, cursor, which)
    spans = [span for span in spans if span.start >= start]
    if not spans:
        raise NotFound(which + _missing(text, old, hunk, cursor))
    if len(spans) > 1:
        if not hunk.anchors or spans[0].form != "exact":
            where = f"in {len(spans)} places: lines {_lines(text, spans)}"
            message = f"{which}The old lines stand {where}. Give more context lines or an @@ line."
            raise ToolError(message)
        _require_one_anchor(text, hunk, cursor, which)
    return spans[0]


def _after_anchors(text: str, hunk: Hunk, cursor: int, which: str) -> int:
    """Where the last anchor stands, each being sought from the one before."""
    for anchor in hunk.anchors:
        found = _anchor(text, anchor, cursor)
        if not found:
            message = f"{which}The line @@ {anchor} is not in the file after the change before."
            raise ToolError(message)
        cursor = found[0].start
    return cursor


def _require_one_anchor(text: str, hunk: Hunk, cursor: int, which: str) -> None:
    for anchor in hunk.anchors:
        found = _anchor(text, anchor, cursor)
        if len(found) > 1:
            where = f"in several places, @@ {anchor} in lines {_lines(text, found)}"
            message = f"{which}The old lines stand {where}. Give more context lines."
            raise ToolError(message)
        cursor = found[0].start


def _anchor(text: str, anchor: str, cursor: int) -> list[Span]:
    return matching.find(text, anchor, start=cursor, whole_lines=True) or matching.find(text, anchor, start=cursor)


def _lines(text: str, spans: list[Span]) -> str:
    return ", ".join(str(matching.line_of(text, span.start)) for span in spans[:10])


def _missing(text: str, old: str, hunk: Hunk, cursor: int) -> str:
    if hunk.at_end:
        return "The old lines are not at the end of the file."
    if cursor and matching.find(text, old, whole_lines=True):
        return "The old lines stand before the change before; give changes in the order of the file."
    return "The old lines are not in the file."
