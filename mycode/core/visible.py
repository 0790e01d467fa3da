"""Foreign text made harmless for a terminal, a file or a title: what is hidden becomes visible or goes away.

Text of models, tools, files and repositories may hold control sequences that move the cursor, rename the window or
answer on standard input, direction marks that swap what is read, and letters of no width. Three strengths:
`plain` for output, `revealed` for what a person is asked to approve, `one_line` for titles and tables.
"""

from __future__ import annotations

import unicodedata

from mycode.core.patterns import pattern

# C0 but tab and newline, DEL, C1, and whatever is drawn as nothing or changes the direction of reading.
_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"
    "\U00013430-\U0001345f\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_SUSPECT = pattern(f"[{_HIDDEN}]")
# Cursor movement and colour, seven or eight bits wide; other escapes of two or three characters.
_CONTROL_SEQUENCE = pattern("(?:\x1b\\[|\x9b)[0-?]{0,256}[ -/]{0,16}[@-~]|\x1b[ -/]{1,4}[0-~]|\x1b[=>78cDEHM]")
_ELLIPSIS = "…"


def plain(text: str) -> str:
    """Text that is safe to write to a terminal: colours and cursor movement are dropped, the rest is made visible.

    Tabs, newlines, letters of every script, combining marks and whole emoji stay. Strings meant for the terminal itself
    (window titles, links, device requests) lose their power and stay readable. A line end of CR LF becomes LF.
    """
    if not _SUSPECT.search(text):
        return text
    if "\x1b" in text or "\x9b" in text:
        text = _CONTROL_SEQUENCE.sub("", text)
    return revealed(text.replace("\r\n", "\n"))


def revealed(text: str) -> str:
    """Every character accounted for: like `plain`, but nothing is dropped, so nothing can hide behind an escape.

    For commands and paths that a person approves: what is shown is exactly what would run.
    """
    if not _SUSPECT.search(text):
        return text
    return _SUSPECT.sub(lambda found: _shown(text, found.start()), text)


def in_json(text: str) -> str:
    """JSON text in which everything hidden is written as an escape: the same value, harmless on a terminal."""
    return _SUSPECT.sub(lambda found: _escaped(ord(found[0])), text) if _SUSPECT.search(text) else text


def one_line(text: str, width: int) -> str:
    """The text on one line of at most `width` columns, blanks collapsed, cut with an ellipsis where it is longer."""
    # Only so much of a long text can be seen; cutting first keeps a title of a megabyte cheap.
    line = " ".join(plain(text[: max(width, 0) * 8 + 4096]).split())
    return fitted(line, width)


def fitted(line: str, width: int) -> str:
    """One line of harmless text cut to `width` columns; the ellipsis counts. No letter is cut in half."""
    if width <= 0:
        return ""
    if line.isascii():
        return line if len(line) <= width else line[: width - 1] + _ELLIPSIS
    used = 0
    room = 0
    for index, char in enumerate(line):
        used += _columns(line, index, char)
        if used <= width - 1:
            room = index + 1
        if used > width:
            return line[:room] + _ELLIPSIS
    return line


def display_width(line: str) -> int:
    """Columns that one line of harmless text takes: wide letters and emoji two, combining marks none."""
    if line.isascii():
        return len(line)
    return sum(_columns(line, index, char) for index, char in enumerate(line))


def _columns(line: str, index: int, char: str) -> int:
    if char < "\u0300":
        return 1
    if char == "\ufe0f":
        # The emoji form of a narrow sign is two columns wide.
        return 1 if index and unicodedata.east_asian_width(line[index - 1]) not in "WF" else 0
    if unicodedata.combining(char) or unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _shown(text: str, index: int) -> str:
    char = text[index]
    if char in "\u200c\u200d\ufe0e\ufe0f" and _joins(text, index):
        return char
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"<U+{code:04X}>"


def _escaped(code: int) -> str:
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def _joins(text: str, index: int) -> bool:
    """Whether a joiner or variation sign stands where scripts and emoji need it, not between plain letters."""
    if index == 0 or text[index - 1] < "\u00a9":
        return text[index - 1 : index] in set("#*0123456789") and text[index] == "\ufe0f" if index else False
    before = text[index - 1]
    if text[index] in "\ufe0e\ufe0f":
        return unicodedata.category(before) in {"So", "Sm", "Sk", "Po"}
    if index + 1 >= len(text) or text[index + 1] < "\u0600":
        return False
    if text[index] == "\u200d" and (before == "\ufe0f" or unicodedata.category(before) in {"So", "Sk"}):
        return unicodedata.category(text[index + 1]) == "So"
    return "\u0600" <= before <= "\u1cff" and "\u0600" <= text[index + 1] <= "\u1cff"
