"""The tool that changes a file by quoting old text and giving the new."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, structs

from mycode.core.errors import ToolError
from mycode.core.tools import Action, DiffDisplay, Report, ToolOutput
from mycode.tools import replacing
from mycode.tools.diff import diff_display
from mycode.tools.encoding import LEGACY, Text, decode, encode
from mycode.tools.matching import NotFound
from mycode.tools.workspace import Workspace


class Edit(Struct, frozen=True, forbid_unknown_fields=True):
    """One replacement."""

    old: Annotated[str, Meta(description="Exact text, unique in the file; empty creates it")]
    new: str
    replace_all: bool = False


class EditFileArgs(Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    edits: Annotated[tuple[Edit, ...], Meta(min_length=1)]


class EditFile:
    """`edit_file`: all edits of a call or none, in their order, each on the result of the one before."""

    name = "edit_file"
    description = (
        "Replace text in a file. Edits apply in order, all or none. Quote old text exactly, without line numbers, with "
        "enough lines to be unique."
    )
    Args = EditFileArgs

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def plan(self, args: EditFileArgs) -> Action:
        touched = self._workspace.touched(args.path, write=True)
        title = f"{self.name} {self._workspace.relative(touched[0])}"
        action = Action(self.name, "write", title, reads=touched, writes=touched)
        try:
            change = self._change(args)
        except ToolError as error:
            return structs.replace(action, fails=str(error))
        return structs.replace(action, displays=(change.display,))

    async def run(self, args: EditFileArgs, _report: Report) -> ToolOutput:
        path = self._workspace.resolve(args.path)
        with self._workspace.editing(path):
            change = self._change(args)
            if change.created:
                self._workspace.make_folders(path.parent)
            self._workspace.write_atomic(path, change.data)
        return ToolOutput(change.told, change.display)

    def _change(self, args: EditFileArgs) -> _Change:
        path = self._workspace.resolve(args.path)
        shown = self._workspace.relative(path)
        if not args.edits[0].old and not path.exists():
            return _created(shown, args.edits)
        before = read_for_change(self._workspace, path)
        text, notes = before.text, []
        for number, edit in enumerate(args.edits, start=1):
            which = f"Edit {number} of {len(args.edits)}: " if len(args.edits) > 1 else ""
            try:
                applied = apply_edit(structs.replace(before, text=text), edit)
            except ToolError as error:
                message = f"{which}{error}\nNothing was changed in {shown}."
                raise ToolError(message) from error
            text = applied.text
            notes.append(_note(applied, which.rstrip(": ")))
        if text == before.text:
            message = f"The edits cancel each other out; {shown} would stay as it is."
            raise ToolError(message)
        data = encode(structs.replace(before, text=text))
        return _Change(data, diff_display(shown, before.text, text), f"{shown} edited. {' '.join(notes)}")


class _Change(Struct, frozen=True):
    """What a call comes to: the bytes to write, the diff to show, the sentence for the model."""

    data: bytes
    display: DiffDisplay
    told: str
    created: bool = False


def read_for_change(workspace: Workspace, path: Path) -> Text:
    """The text of a file that is about to be changed; refused if it is not what was last seen of it."""
    data = workspace.read_bytes(path)
    if workspace.changed(path, data):
        message = (
            f"{workspace.relative(path)} has changed since it was read, so nothing was written. "
            "Read it again, then repeat the edit if it still applies."
        )
        raise ToolError(message)
    return decode(data)


def apply_edit(before: Text, edit: Edit) -> replacing.Applied:
    """One edit on the text; a refusal shows the nearest text."""
    check_writable(before, edit.old, edit.new)
    try:
        return replacing.apply(before.text, edit.old, edit.new, replace_all=edit.replace_all)
    except NotFound as error:
        from mycode.tools.nearest import nearest_text

        raise ToolError(f"{error}\n{nearest_text(before.text, edit.old)}".strip()) from error


def check_writable(before: Text, old: str, new: str) -> None:
    """In a file whose encoding is not known, only ASCII and what was quoted from it can be written."""
    if before.encoding != LEGACY:
        return
    unknown = sorted({character for character in new if ord(character) > 127} - set(old))
    if unknown:
        message = (
            f"The file is not UTF-8 and its encoding is not known, so {', '.join(unknown[:5])} cannot be written "
            "safely. Write ASCII, or convert the file first."
        )
        raise ToolError(message)


def _created(shown: str, edits: tuple[Edit, ...]) -> _Change:
    text = edits[0].new
    for edit in edits[1:]:
        text = replacing.apply(text, edit.old, edit.new, replace_all=edit.replace_all).text
    return _Change(text.encode(), diff_display(shown, None, text), f"{shown} created.", created=True)


def _note(applied: replacing.Applied, which: str) -> str:
    places = ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in applied.lines[:8])
    more = f" and {len(applied.lines) - 8} more" if len(applied.lines) > 8 else ""
    word = "line" if len(applied.lines) == 1 and applied.lines[0][0] == applied.lines[0][1] else "lines"
    form = "" if applied.form == "exact" else f" (found but for {applied.form})"
    return f"{which + ': ' if which else 'Now in '}{word} {places}{more}{form}."
