"""A renderable as terminal text of a given width.

Whatever is shown goes through here, so width, colours and the look are decided once.
"""

from __future__ import annotations

from io import StringIO

from msgspec import Struct
from rich.console import Console, RenderableType

from mycode.render.theme import Look, theme

SMALLEST = 10


class Canvas(Struct, frozen=True):
    """What can be shown: `width` in cells; `plain` means labelled lines without boxes, colours or redraws."""

    width: int = 80
    color: bool = True
    look: Look = "dark"
    plain: bool = False

    def text(self, *things: RenderableType) -> str:
        """The things as text of this width, one after the other; with terminal colours if there are any."""
        console = self.console()
        for thing in things:
            console.print(thing, soft_wrap=self.plain)
        out = console.file
        assert isinstance(out, StringIO)
        return out.getvalue()

    def console(self) -> Console:
        """A console that keeps what it prints; foreign text is never read as markup, emoji names or links."""
        colored = self.color and not self.plain
        return Console(
            file=StringIO(),
            width=max(SMALLEST, self.width),
            height=100,
            force_terminal=colored,
            color_system="standard" if colored else None,
            no_color=not colored,
            theme=theme(self.look),
            markup=False,
            emoji=False,
            highlight=False,
            legacy_windows=False,
            _environ={},
        )


def picture(terminal_text: str, *, title: str = "mycode", width: int = 100) -> str:
    """An SVG picture of terminal text (with its colours), e.g. for the README."""
    from rich.text import Text

    sheet = StringIO()
    console = Console(
        file=sheet, width=width, record=True, force_terminal=True, color_system="standard", theme=theme(), _environ={}
    )
    console.print(Text.from_ansi(terminal_text))
    return console.export_svg(title=title)
