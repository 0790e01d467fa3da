"""What in a file comes nearest to a text that is not there, shown so that the difference can be seen."""

from __future__ import annotations

from mycode.core.patterns import pattern
from mycode.tools.matching import LINE_BREAK

_LINES_SHOWN = 12
_WIDTH_SHOWN = 160
_WINDOWS_COMPARED = 12
_LINES_COMPARED = 200
_COMPARED = 500  # characters of a line
_INVISIBLE = pattern(r"[\x00-\x08\x0b-\x1f\x7f\u00a0\u00ad\u2000-\u200f\u2028-\u202f\u205f-\u2064\u3000\ufeff]")


def nearest_text(text: str, old: str) -> str:
    """A few lines for the model: the most similar place with line numbers and visible blanks, or nothing."""
    from rapidfuzz import fuzz, process

    wanted = [line[:_COMPARED] for line in LINE_BREAK.split(old.strip("\r\n"))[:_LINES_COMPARED]]
    lines = [line[:_COMPARED] for line in LINE_BREAK.split(text)]
    key = max(range(len(wanted)), key=lambda number: len(wanted[number].strip()), default=None)
    if key is None or not wanted[key].strip() or not lines:
        return ""
    close = process.extract(
        wanted[key].strip(), [line.strip() for line in lines], scorer=fuzz.ratio, limit=_WINDOWS_COMPARED
    )
    firsts = sorted({max(0, number - key) for _, _, number in close})
    body = "\n".join(wanted)
    score, first = max((fuzz.ratio(body, "\n".join(lines[at : at + len(wanted)])), -at) for at in firsts)
    first = -first
    if score < 50:
        return ""
    here = lines[first : first + len(wanted)]
    shown = [f"{first + 1 + number}\t{visible(line)}" for number, line in enumerate(here[:_LINES_SHOWN])]
    if len(here) > _LINES_SHOWN:
        shown.append(f"… {len(here) - _LINES_SHOWN} more lines")
    parts = ["Nearest text (blanks at the ends of lines shown as ·, tabs as →):", *shown]
    for number, (line, sought) in enumerate(zip(here, wanted, strict=False)):
        if line != sought:
            parts.append(f"First difference in line {first + 1 + number}; the old text has: {visible(sought)}")
            break
    return "\n".join(parts)


def visible(line: str) -> str:
    """The line with leading and trailing blanks, tabs and invisible characters made visible, cut if long."""
    body = line.strip(" \t")
    start = len(line) - len(line.lstrip(" \t"))
    lead, trail = (line[:start], line[start + len(body) :]) if body else (line, "")
    body = body.replace("\t", "→")
    body = _INVISIBLE.sub(lambda found: f"<U+{ord(found[0]):04X}>", body)
    if len(body) > _WIDTH_SHOWN:
        body = body[:_WIDTH_SHOWN] + "…"
    return _dotted(lead) + body + _dotted(trail)


def _dotted(blanks: str) -> str:
    return blanks.replace(" ", "·").replace("\t", "→")
