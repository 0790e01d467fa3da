"""The tool that applies a patch to several files, all or none."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct, structs

from mycode.core.errors import ToolError
from mycode.core.tools import Action, DiffDisplay, Display, Report, TextDisplay, ToolOutput
from mycode.tools.diff import diff_display
from mycode.tools.edit import check_writable, read_for_change
from mycode.tools.encoding import decode, encode
from mycode.tools.files import check_overwrite
from mycode.tools.hunks import apply_hunks
from mycode.tools.matching import NotFound
from mycode.tools.patch_format import FileChange, parse
from mycode.tools.workspace import Workspace


class ApplyPatchArgs(Struct, frozen=True, forbid_unknown_fields=True):
    patch: str


class ApplyPatch:
    """`apply_patch`: everything is computed before anything is written, and undone if a write fails."""

    name = "apply_patch"
    description = """\
Change several files, all or none. Example:
*** Begin Patch
*** Update File: src/a.py
@@ def f(x):
     y = x
-    return y
+    return y + 1
*** Add File: src/b.py
+one line
*** Delete File: c.py
*** End Patch
A hunk has unchanged lines (each after one blank), - and + lines; they must be unique in the file or follow a unique \
@@ line. *** Move to: PATH under an Update header renames."""
    Args = ApplyPatchArgs

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def plan(self, args: ApplyPatchArgs) -> Action:
        changes = parse(args.patch)
        names = [name for change in changes for name in (change.path, change.move_to) if name]
        touched = tuple(dict.fromkeys(path for name in names for path in self._workspace.touched(name, write=True)))
        title = f"{self.name} {', '.join(dict.fromkeys(names))}"
        action = Action(self.name, "write", title, reads=touched, writes=touched)
        try:
            done = self._compute(changes)
        except ToolError as error:
            return structs.replace(action, fails=str(error))
        return structs.replace(action, displays=tuple(self._display(change) for change in done.changed()))

    async def run(self, args: ApplyPatchArgs, _report: Report) -> ToolOutput:
        changes = parse(args.patch)
        names = [name for change in changes for name in (change.path, change.move_to) if name]
        with self._workspace.editing(*(self._workspace.resolve(name) for name in names)):
            done = self._compute(changes)
            changed = done.changed()
            self._write(changed)
        displays = [self._display(change) for change in changed]
        return ToolOutput("\n".join(done.told), _one_display(displays))

    def _compute(self, changes: tuple[FileChange, ...]) -> _Outcome:
        outcome = _Outcome(self._workspace)
        for number, change in enumerate(changes, start=1):
            try:
                outcome.add(change)
            except ToolError as error:
                which = f"File {number} of {len(changes)}, " if len(changes) > 1 else ""
                name = "" if str(error).startswith(change.path) else f"{change.path}: "
                message = f"{which}{name}{error}\nNothing was changed."
                raise ToolError(message) from error
        return outcome

    def _display(self, change: _Changed) -> DiffDisplay:
        before, after = (None if data is None else decode(data).text for data in (change.before, change.after))
        return diff_display(self._workspace.relative(change.path), before, after)

    def _write(self, changed: tuple[_Changed, ...]) -> None:
        done: list[_Changed] = []
        made: list[Path] = []
        try:
            for change in changed:
                made += self._workspace.make_folders(change.path.parent) if change.after is not None else ()
                self._put(change.path, change.after, change.mode)
                done.append(change)
        except ToolError as error:
            self._undo(done, made, error)
            raise

    def _undo(self, done: list[_Changed], made: list[Path], cause: ToolError) -> None:
        for change in reversed(done):
            try:
                self._put(change.path, change.before, change.mode)
            except ToolError as error:
                shown = self._workspace.relative(change.path)
                message = f"{cause} Undoing failed too: {shown} was left changed ({error})"
                raise ToolError(message) from error
        for folder in reversed(made):
            try:
                folder.rmdir()
            except OSError:
                pass  # an empty folder left behind harms nobody

    def _put(self, path: Path, data: bytes | None, mode: int | None) -> None:
        if data is None:
            self._workspace.remove(path)
        else:
            self._workspace.write_atomic(path, data, mode=mode)


class _Changed(Struct, frozen=True):
    """One file before and after the patch; None stands for a file that is not there. `mode`: its permission bits."""

    path: Path
    before: bytes | None
    after: bytes | None
    mode: int | None = None


class _Outcome:
    """The files as the patch would leave them, computed change by change without touching them."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._files: dict[Path, _Changed] = {}
        self.told: list[str] = []

    def add(self, change: FileChange) -> None:
        path = self._workspace.resolve(change.path)
        if change.kind == "add":
            self._set(path, "".join(line + "\n" for line in change.lines).encode(), new=True)
            self.told.append(f"A {self._workspace.relative(path)}")
        elif change.kind == "delete":
            self._refuse_link(change.path)
            self._current(path)
            self._set(path, None)
            self.told.append(f"D {self._workspace.relative(path)}")
        else:
            self._update(path, change)

    def changed(self) -> tuple[_Changed, ...]:
        """What there is to write: removals last, so that a move never leaves the content nowhere."""
        changed = [file for file in self._files.values() if file.before != file.after]
        if not changed:
            message = "The patch changes nothing: the files already are as it would leave them."
            raise ToolError(message)
        return tuple(sorted(changed, key=lambda file: file.after is None))

    def _update(self, path: Path, change: FileChange) -> None:
        data = self._current(path)
        before = decode(data)
        for hunk in change.hunks:
            check_writable(before, "\n".join(hunk.old), "\n".join(hunk.new))
        try:
            text, forms = apply_hunks(before.text, change.hunks)
        except NotFound as error:
            near = next((near for hunk in change.hunks if (near := _near(before.text, hunk.old))), "")
            raise ToolError(f"{error}\n{near}".strip()) from error
        after = encode(structs.replace(before, text=text))
        shown = self._workspace.relative(path)
        target = self._workspace.resolve(change.move_to) if change.move_to else path
        if target != path:
            self._refuse_link(change.path)
            self._set(target, after, new=True, mode=self._files[path].mode)
            self._set(path, None)
            shown = f"{shown} -> {self._workspace.relative(target)}"
        else:
            self._set(path, after)
        self.told.append(f"M {shown}" + (f" (found but for {', '.join(forms)})" if forms else ""))

    def _current(self, path: Path) -> bytes:
        """The content now, after the changes before."""
        if path not in self._files:
            data = encode(read_for_change(self._workspace, path))
            self._files[path] = _Changed(path, data, data, self._workspace.mode(path))
        after = self._files[path].after
        if after is None:
            message = f"{self._workspace.relative(path)} does not exist (any more)."
            raise ToolError(message)
        return after

    def _set(self, path: Path, data: bytes | None, *, new: bool = False, mode: int | None = None) -> None:
        known = self._files.get(path)
        if known is None and new and os.path.lexists(path):
            check_overwrite(self._workspace, path)
            before = self._workspace.read_bytes(path)
            known = _Changed(path, before, before, self._workspace.mode(path))
        elif known is not None and new and known.after is not None:
            message = f"{self._workspace.relative(path)} exists already."
            raise ToolError(message)
        self._files[path] = structs.replace(known or _Changed(path, None, None, mode), after=data)

    def _refuse_link(self, path: str) -> None:
        if self._workspace.named(path).is_symlink():
            message = "It is a link, and links are not deleted or moved. Name the file it leads to."
            raise ToolError(message)


def _near(text: str, old: tuple[str, ...]) -> str:
    """The nearest text for lines that are not there."""
    from mycode.tools.nearest import nearest_text

    lines = "\n".join(old)
    return "" if not lines.strip() or lines in text.replace("\r\n", "\n") else nearest_text(text, lines)


def _one_display(displays: list[DiffDisplay]) -> Display:
    if len(displays) == 1:
        return displays[0]
    added, removed = sum(display.added for display in displays), sum(display.removed for display in displays)
    body = "".join(f"--- {display.path}\n{display.diff}" for display in displays)
    return TextDisplay(f"{len(displays)} {'file' if len(displays) == 1 else 'files'} · +{added} -{removed}", body)
