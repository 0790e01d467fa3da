"""How one block of an answer looks on the terminal."""

from __future__ import annotations

import itertools
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

from mycode.render.blocks import Block, MarkdownStream

_LONGEST_RENDERED = 1500
_TAIL_SHOWN = 1000


class _LeftHeading(Heading):
    """Headings stand at the left like everything else; centred ones jump when the window is resized."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = self.text.copy()
        text.justify = "left"
        yield text


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "heading_open": _LeftHeading}


class _Prose:
    """Markdown without the blank lines around it and without blanks at line ends, which get in the way of copying."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(_Markdown(self._source, hyperlinks=False), options, pad=False)
        shown = [_without_trailing_blanks(line) for line in lines]
        while shown and not shown[-1]:
            shown.pop()
        for line in itertools.dropwhile(lambda line: not line, shown):
            yield from line
            yield Segment.line()


def block(piece: Block, *, code_theme: str = "ansi_dark", highlight: bool = True) -> RenderableType:
    """One block as rich shows it. Links are shown with their address, never as an address in disguise."""
    if piece.code and not piece.source.strip():
        return Text()
    if piece.code:
        code = _code(piece, code_theme) if highlight and piece.language else Text(piece.source)
        return Padding(code, (0, 0, 0, 2 + piece.indent), expand=False)
    shown = _Prose(piece.source)
    return Padding(shown, (0, 0, 0, piece.indent), expand=False) if piece.indent else shown


def open_block(stream: MarkdownStream) -> RenderableType | None:
    """The open block as far as it has come, or None; a long one is shown as it was written, its end only."""
    source = stream.open
    if not source.strip():
        return None
    if stream.in_code:
        return Padding(Text(source[-_TAIL_SHOWN:]), (0, 0, 0, 2), expand=False)
    if len(source) > _LONGEST_RENDERED or "|" in source:
        return Text(source[-_TAIL_SHOWN:])
    return _Prose(source)


def whole(text: str, *, code_theme: str = "ansi_dark") -> list[RenderableType]:
    """A whole answer, in the same blocks as a streamed one."""
    stream = MarkdownStream()
    shown: list[RenderableType] = []
    for piece in [*stream.feed(text), *stream.finish()]:
        if piece.gap:
            shown.append(Text())
        shown.append(block(piece, code_theme=code_theme))
    return shown


def _code(piece: Block, code_theme: str) -> RenderableType:
    from rich.syntax import Syntax

    return Syntax(piece.source, piece.language, theme=code_theme, background_color="default", word_wrap=True)


def _without_trailing_blanks(line: list[Segment]) -> list[Segment]:
    kept = list(line)
    while kept and not kept[-1].text.strip():
        kept.pop()
    if kept:
        last = kept[-1]
        kept[-1] = Segment(last.text.rstrip(), last.style, last.control)
    return kept
