"""What going back would do, or has done, to the files."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from mycode.core.checkpoints import FileChange, Rewind
from mycode.core.visible import one_line, revealed
from mycode.render.numbers import plural
from mycode.render.panels.boxes import framed

_SHOWN = 30
_WORDS = {"created": "comes back", "changed": "changes", "deleted": "goes away"}


def rewind_panel(rewind: Rewind, *, plain_text: bool = False) -> RenderableType:
    """One line per file, those first that somebody else has changed since; then what stays as it is, and why."""
    foreign = set(rewind.foreign)
    parts: list[RenderableType] = [
        _file(change, foreign=change.path in foreign)
        for change in sorted(rewind.changes, key=lambda change: change.path not in foreign)[:_SHOWN]
    ]
    if len(rewind.changes) > _SHOWN:
        parts.append(Text(f"… {len(rewind.changes) - _SHOWN} more", style="muted"))
    if not rewind.changes:
        parts.append(Text("No file differs."))
    parts += [Text(f"! {one_line(warning, 500)}", style="warn") for warning in rewind.warnings]
    title = f"{'Files taken back' if rewind.done else 'Going back'}: {plural(len(rewind.changes), 'file')}"
    return framed(title, *parts, plain_text=plain_text)


def _file(change: FileChange, *, foreign: bool) -> Text:
    line = Text("! " if foreign else "  ", style="warn")
    line.append(f"{_WORDS[change.kind]:10} ")
    line.append(one_line(revealed(change.path), 200))
    if change.added is not None and change.removed is not None:
        line.append(f" +{change.added}", style="added")
        line.append(f" -{change.removed}", style="removed")
    if foreign:
        line.append("  changed by somebody else since")
    return line
