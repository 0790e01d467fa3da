"""A renderable as terminal text of a given width.

Whatever is shown goes through here, so width, colours and the look are decided once.
"""

from __future__ import annotations

import re
from io import StringIO

from rich.console import Console, RenderableType

from mycode.render.theme import Look, theme

SMALLEST = 10
# Blanks at line ends get in the way of whoever copies text from a terminal.
_BLANKS_AT_ENDS = re.compile(r" +((?:\x1b\[0m)?)\n")


class Canvas:
    """What can be shown: `width` in cells; `plain` means labelled lines without boxes, colours or redraws.

    Foreign text is never read as markup, emoji names or links. Making one takes 0.3 ms: keep it.
    """

    def __init__(self, width: int = 80, *, color: bool = True, look: Look = "dark", plain: bool = False) -> None:
        self.width = width
        self.color = color and not plain
        self.look = look
        self.plain = plain
        self._console = Console(
            file=StringIO(),
            width=max(SMALLEST, width),
            height=100,
            force_terminal=self.color,
            color_system="standard" if self.color else None,
            no_color=not self.color,
            theme=theme(look),
            markup=False,
            emoji=False,
            highlight=False,
            legacy_windows=False,
            _environ={},
        )

    def text(self, *things: RenderableType) -> str:
        """The things as text of this width, one after the other; with terminal colours if there are any."""
        with self._console.capture() as captured:
            for thing in things:
                self._console.print(thing, soft_wrap=self.plain)
        return _BLANKS_AT_ENDS.sub(r"\1\n", captured.get())


def picture(terminal_text: str, *, title: str = "mycode", width: int = 100) -> str:
    """An SVG picture of terminal text (with its colours), e.g. for the README."""
    from rich.text import Text

    sheet = StringIO()
    console = Console(
        file=sheet, width=width, record=True, force_terminal=True, color_system="standard", theme=theme(), _environ={}
    )
    console.print(Text.from_ansi(terminal_text))
    return console.export_svg(title=title)
