"""A session's title without asking a model: the first sentence of what was first said (pure)."""

import re
from collections.abc import Callable

from mycode.core.visible import one_line

WIDTH = 60


def title_of(text: str, redact: Callable[[str], str]) -> str:
    """One harmless line of at most 60 columns, without secrets; empty when the text has no words."""
    # Only the beginning can show; a secret is looked for in more than is shown, so that none is cut in half unseen.
    start = redact(text[:4000])
    line = next((found for found in map(_bare, start.splitlines()) if found), "")
    return one_line(_first_sentence(line), WIDTH)


def _bare(line: str) -> str:
    """The line without the marks of a heading, a list, a quotation or a fence."""
    line = re.sub(r"^[\s#>*`~-]+", "", line).strip()
    return line if re.search(r"\w", line) else ""


def _first_sentence(line: str) -> str:
    # A full stop inside a name (`app.py`) or after a single letter (`e.g.`) ends nothing.
    found = re.search(r"(?<=\w\w)(?:[.!?…]+(?=\s)|[。！？])", line)
    return (line[: found.end()] if found else line).rstrip(".。")
