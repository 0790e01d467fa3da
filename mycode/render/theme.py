"""The named styles of everything that is shown, in one place.

Only the sixteen colours of the terminal's own palette and its attributes are used, so each style follows the person's
own colours and stays legible on a dark and on a light ground. Nothing is said by colour alone (NO_COLOR, colour-blind
readers): each style has a sign or a word beside it where it is used.
"""

from typing import Literal

from rich.theme import Theme

Look = Literal["dark", "light"]

_SHARED = {
    "user": "bold",
    "tool": "bold",
    "ok": "green",
    "error": "bold red",
    "warn": "bold",
    "title": "bold",
    "key": "bold reverse",
    "added": "green",
    "removed": "red",
    "bar.free": "dim",
    "bar.reserve": "dim",
    "markdown.paragraph": "none",
    "markdown.h1": "bold underline",
    "markdown.h2": "bold underline",
    "markdown.h3": "bold",
    "markdown.h4": "bold",
    "markdown.h5": "italic",
    "markdown.h6": "italic",
    "markdown.item.bullet": "none",
    "markdown.item.number": "none",
    "markdown.hr": "dim",
    "markdown.block_quote": "italic",
}

_DARK = {
    "muted": "dim",
    "accent": "cyan",
    "note": "dim",
    "prompt": "bold cyan",
    "markdown.code": "cyan",
    "markdown.code_block": "cyan",
    "markdown.link": "cyan",
    "markdown.link_url": "underline",
    "bar.1": "cyan",
    "bar.2": "blue",
    "bar.3": "magenta",
    "bar.4": "green",
    "bar.5": "yellow",
}

_LIGHT = {
    "muted": "none",
    "accent": "blue",
    "note": "italic",
    "prompt": "bold blue",
    "markdown.code": "blue",
    "markdown.code_block": "blue",
    "markdown.link": "blue",
    "markdown.link_url": "underline",
    "bar.1": "blue",
    "bar.2": "magenta",
    "bar.3": "red",
    "bar.4": "green",
    "bar.5": "black",
}


def theme(look: Look = "dark") -> Theme:
    """The styles for a dark or a light ground, over rich's own defaults."""
    return Theme({**_SHARED, **(_LIGHT if look == "light" else _DARK)})


def code_theme(look: Look = "dark") -> str:
    """The name of the highlighter's colours for code, made of the same sixteen."""
    return "ansi_light" if look == "light" else "ansi_dark"
