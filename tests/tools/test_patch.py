"""A patch is applied to all its files or to none."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycode.core.errors import ToolError
from mycode.core.tools import DiffDisplay, TextDisplay
from mycode.tools.patch import ApplyPatch, ApplyPatchArgs
from mycode.tools.workspace import Workspace

Tree = dict[str, bytes]


def lay(root: Path, tree: Tree) -> None:
    for name, data in tree.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)


def tree_of(root: Path) -> Tree:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def wrapped(body: str) -> ApplyPatchArgs:
    return ApplyPatchArgs(f"*** Begin Patch\n{body}\n*** End Patch\n")


async def apply(place: Workspace, body: str) -> str:
    return (await ApplyPatch(place).run(wrapped(body), lambda _: None)).text


APPLIED: dict[str, tuple[Tree, str, Tree]] = {
    "a file is added with its folders": (
        {},
        "*** Add File: notes/todo.txt\n+milk\n+\n+bread",
        {"notes/todo.txt": b"milk\n\nbread\n"},
    ),
    "an empty file is added": ({}, "*** Add File: empty", {"empty": b""}),
    "several operations in one patch": (
        {"keep.py": b"x = 1\ny = 2\n", "gone.py": b"old\n"},
        "*** Add File: new.py\n+z = 3\n*** Delete File: gone.py\n*** Update File: keep.py\n@@\n x = 1\n-y = 2\n+y = 3",
        {"keep.py": b"x = 1\ny = 3\n", "new.py": b"z = 3\n"},
    ),
    "several changes in one file": (
        {"a": b"one\ntwo\nthree\nfour\nfive\n"},
        "*** Update File: a\n@@\n-two\n+2\n@@\n-four\n+4\n+4b",
        {"a": b"one\n2\nthree\n4\n4b\nfive\n"},
    ),
    "the first @@ may be left out": ({"a": b"one\ntwo\n"}, "*** Update File: a\n one\n-two\n+2", {"a": b"one\n2\n"}),
    "a file is moved and changed": (
        {"old/name.txt": b"from\n"},
        "*** Update File: old/name.txt\n*** Move to: new/name.txt\n@@\n-from\n+to",
        {"new/name.txt": b"to\n"},
    ),
    "a file is only moved": ({"a": b"x"}, "*** Update File: a\n*** Move to: b", {"b": b"x"}),
    "lines are only added at the end": (
        {"a": b"one\n"},
        "*** Update File: a\n@@\n+two\n+three",
        {"a": b"one\ntwo\nthree\n"},
    ),
    "lines are only removed": (
        {"a": b"one\ntwo\nthree\n"},
        "*** Update File: a\n@@\n one\n-two\n three",
        {"a": b"one\nthree\n"},
    ),
    "the last line is removed": ({"a": b"one\ntwo"}, "*** Update File: a\n@@\n one\n-two", {"a": b"one"}),
    "everything is removed": ({"a": b"one\ntwo\n"}, "*** Update File: a\n@@\n-one\n-two", {"a": b""}),
    "a missing last line end stays missing": (
        {"a": b"no end"},
        "*** Update File: a\n@@\n-no end\n+first\n+second",
        {"a": b"first\nsecond"},
    ),
    "lines added to a file without last line end": ({"a": b"x"}, "*** Update File: a\n@@\n+y", {"a": b"x\ny"}),
    "headers and markers may be padded": (
        {"a": b"one\n"},
        "  *** Update File:   a  \n@@\n-one\n+1\n\n*** Add File: b   \n+x",
        {"a": b"1\n", "b": b"x\n"},
    ),
    "an empty line counts as context": (
        {"a": b"one\n\ntwo\n"},
        "*** Update File: a\n@@\n one\n\n-two\n+2",
        {"a": b"one\n\n2\n"},
    ),
    "letters beyond ASCII": (
        {"a": "naïve “café”\n".encode()},
        "*** Update File: a\n@@\n-naïve “café”\n+naïve ☕",
        {"a": "naïve ☕\n".encode()},
    ),
    "the end of the file chooses the place": (
        {"a": b"x\ny\nx\n"},
        "*** Update File: a\n@@\n-x\n+z\n*** End of File",
        {"a": b"x\ny\nz\n"},
    ),
    "CRLF stays": (
        {"a": b"one\r\ntwo\r\n"},
        "*** Update File: a\n@@\n one\n-two\n+2\n+3",
        {"a": b"one\r\n2\r\n3\r\n"},
    ),
    "mixed line ends stay": (
        {"a": b"one\r\ntwo\nthree\r\nfour\n"},
        "*** Update File: a\n@@\n one\n two\n-three\n+3\n four",
        {"a": b"one\r\ntwo\n3\nfour\n"},
    ),
    "an anchor chooses among equal places": (
        {"a": b"def f():\n    return 1\n\ndef g():\n    return 1\n\ndef h():\n    return 1\n"},
        "*** Update File: a\n@@ def g():\n-    return 1\n+    return 2",
        {"a": b"def f():\n    return 1\n\ndef g():\n    return 2\n\ndef h():\n    return 1\n"},
    ),
    "anchors within anchors": (
        {"a": b"class A:\n  def f():\n    pass\nclass B:\n  def f():\n    pass\n"},
        "*** Update File: a\n@@ class B:\n@@ def f():\n-    pass\n+    return",
        {"a": b"class A:\n  def f():\n    pass\nclass B:\n  def f():\n    return\n"},
    ),
    "an anchor may be the first context line too": (
        {"a": b"def f():\n    return 1\ndef g():\n    return 1\n"},
        "*** Update File: a\n@@ def g():\n def g():\n-    return 1\n+    return 2",
        {"a": b"def f():\n    return 1\ndef g():\n    return 2\n"},
    ),
    "line numbers of other diffs are passed over": (
        {"a": b"one\n"},
        "*** Update File: a\n@@ -1,1 +1,1 @@ whatever\n-one\n+1",
        {"a": b"1\n"},
    ),
    "a file is added, then changed": (
        {},
        "*** Add File: a\n+one\n*** Update File: a\n@@\n-one\n+two",
        {"a": b"two\n"},
    ),
    "a file makes room for another": (
        {"a": b"one\n", "b": b"two\n"},
        "*** Delete File: b\n*** Update File: a\n*** Move to: b\n@@\n-one\n+1",
        {"b": b"1\n"},
    ),
    "one shift of the indentation": (
        {"a": b"class A:\n\tdef f(self):\n\t\treturn 1\n"},
        "*** Update File: a\n@@\n def f(self):\n-\treturn 1\n+\treturn 2",
        {"a": b"class A:\n\tdef f(self):\n\t\treturn 2\n"},
    ),
}


@pytest.mark.parametrize("story", APPLIED)
async def test_applied(workspace: Path, story: str) -> None:
    before, body, after = APPLIED[story]
    lay(workspace, before)
    await apply(Workspace(workspace), body)
    assert tree_of(workspace) == after


_FILES: Tree = {"a": b"one\ntwo\none\n", "folder/b": b"x\n"}
REFUSED: dict[str, tuple[str, str]] = {
    "an unknown operation": ("*** Rename File: a", "expected “*** Add File: PATH”"),
    "an operation without a path": ("*** Delete File:", "expected"),
    "an update without changes": ("*** Update File: a", "the update of a has no changes"),
    "an empty change": ("*** Update File: a\n@@", "the change is empty"),
    "a line without its sign": ("*** Update File: a\n@@\nthree", "a line that begins with a blank, + or -: 'three'"),
    "an added file without signs": ("*** Add File: c\nthree", "each line of an added file begins with +"),
    "lines that are not there": ("*** Update File: a\n@@\n-twelve\n+12", "The old lines are not in the file"),
    "lines in several places": ("*** Update File: a\n@@\n-one\n+1", "2 places: lines 1, 3"),
    "an anchor that is not there": ("*** Update File: a\n@@ def f():\n-two\n+2", "@@ def f(): is not in the file"),
    "an anchor in several places": ("*** Update File: a\n@@ one\n-one\n+1", "in several places, @@ one in lines 1, 3"),
    "lines only added after an anchor": ("*** Update File: a\n@@ two\n+2b", "give a context line"),
    "additions before an empty line": ("*** Update File: a\n@@\n+x\n", "only empty lines"),
    "only empty lines to be found by": ("*** Update File: a\n@@\n \n+x", "only empty lines"),
    "changes in the wrong order": (
        "*** Update File: a\n@@\n two\n-one\n+1\n@@\n one\n-two\n+2",
        "before the change before",
    ),
    "not at the end": ("*** Update File: a\n@@\n-two\n+2\n*** End of File", "not at the end of the file"),
    "a missing file to delete": ("*** Delete File: c", "c does not exist"),
    "a missing file to update": ("*** Update File: c\n@@\n-x\n+y", "c does not exist"),
    "a folder to delete": ("*** Delete File: folder", "folder is a folder, not a regular file"),
    "an added file that exists unread": ("*** Add File: a\n+new", "exists and was not read"),
    "a move onto a file that exists unread": ("*** Update File: a\n*** Move to: folder/b", "exists and was not read"),
    "a file deleted twice": ("*** Delete File: a\n*** Delete File: a", "does not exist"),
    "a patch that changes nothing": ("*** Update File: a\n@@\n two", "changes nothing"),
}


@pytest.mark.parametrize("story", REFUSED)
async def test_refused(workspace: Path, story: str) -> None:
    body, said = REFUSED[story]
    lay(workspace, _FILES)
    with pytest.raises(ToolError) as error:
        await apply(Workspace(workspace), body)
    assert said in str(error.value)
    assert tree_of(workspace) == _FILES


async def test_a_patch_without_any_file_is_refused(workspace: Path) -> None:
    with pytest.raises(ToolError, match="The patch is empty"):
        await ApplyPatch(Workspace(workspace)).run(ApplyPatchArgs("*** Begin Patch\n*** End Patch"), lambda _: None)


@pytest.mark.parametrize("patch", ["", "*** Add File: a\n+x\n*** End Patch", "*** Begin Patch\n*** Add File: a\n+x"])
async def test_a_patch_without_its_begin_or_end_is_refused(workspace: Path, patch: str) -> None:
    with pytest.raises(ToolError, match=r"A patch (begins|ends) with the line"):
        await ApplyPatch(Workspace(workspace)).run(ApplyPatchArgs(patch), lambda _: None)
    assert tree_of(workspace) == {}


async def test_a_change_that_does_not_fit_leaves_the_other_files_alone_too(workspace: Path) -> None:
    lay(workspace, _FILES)
    body = "*** Add File: new\n+x\n*** Delete File: folder/b\n*** Update File: a\n@@\n-missing\n+y"
    action = ApplyPatch(Workspace(workspace)).plan(wrapped(body))
    assert action.fails == "File 3 of 3, a: The old lines are not in the file.\nNothing was changed."
    with pytest.raises(ToolError):
        await apply(Workspace(workspace), body)
    assert tree_of(workspace) == _FILES


async def test_a_write_that_fails_half_way_is_undone(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay(workspace, _FILES)
    (workspace / "folder" / "b").chmod(0o751)
    replace, written = os.replace, []

    def fails_for_the_last(source: str, target: str, **folders: int) -> None:
        written.append(target)
        if target == "last":
            raise OSError(28, "No space left on device")
        replace(source, target, **folders)

    monkeypatch.setattr(os, "replace", fails_for_the_last)
    body = "*** Update File: folder/b\n@@\n-x\n+y\n*** Add File: deep/new\n+x\n*** Add File: deep/last\n+x"
    with pytest.raises(ToolError, match="The disk is full"):
        await apply(Workspace(workspace), body)
    assert written == ["b", "new", "last", "b"]
    assert tree_of(workspace) == _FILES
    assert not (workspace / "deep").exists()
    assert stat.S_IMODE((workspace / "folder" / "b").stat().st_mode) == 0o751


async def test_a_moved_file_keeps_its_mode(workspace: Path) -> None:
    lay(workspace, {"run": b"x\n"})
    (workspace / "run").chmod(0o755)
    await apply(Workspace(workspace), "*** Update File: run\n*** Move to: bin/run")
    assert stat.S_IMODE((workspace / "bin" / "run").stat().st_mode) == 0o755


async def test_a_link_is_changed_through_but_not_deleted_or_moved(workspace: Path) -> None:
    lay(workspace, {"a": b"one\n"})
    (workspace / "link").symlink_to("a")
    place = Workspace(workspace)
    await apply(place, "*** Update File: link\n@@\n-one\n+two")
    for body in ("*** Delete File: link", "*** Update File: link\n*** Move to: b"):
        with pytest.raises(ToolError, match="It is a link"):
            await apply(place, body)
    assert (workspace / "link").is_symlink()
    assert tree_of(workspace) == {"a": b"two\n", "link": b"two\n"}


async def test_a_file_changed_since_it_was_read_is_neither_updated_nor_deleted(workspace: Path) -> None:
    lay(workspace, {"a": b"now\n"})
    place = Workspace(workspace)
    place.note("a", b"then\n")
    for body in ("*** Update File: a\n@@\n-now\n+x", "*** Delete File: a"):
        with pytest.raises(ToolError, match="has changed since it was read"):
            await apply(place, body)
    assert tree_of(workspace) == {"a": b"now\n"}


async def test_the_plan_names_every_path_and_shows_every_diff(workspace: Path) -> None:
    lay(workspace, {"a": b"one\n", "b": b"two\n"})
    body = "*** Update File: a\n*** Move to: c\n@@\n-one\n+1\n*** Delete File: b"
    tool = ApplyPatch(Workspace(workspace))
    action = tool.plan(wrapped(body))
    paths = tuple(str(workspace / name) for name in ("a", "c", "b"))
    diffs = (
        DiffDisplay("c", "@@ -0,0 +1 @@\n+1\n", 1, 0, created=True),
        DiffDisplay("a", "@@ -1 +0,0 @@\n-one\n", 0, 1, deleted=True),
        DiffDisplay("b", "@@ -1 +0,0 @@\n-two\n", 0, 1, deleted=True),
    )
    assert (action.title, action.reads, action.writes) == ("apply_patch a, c, b", paths, paths)
    assert action.displays == diffs
    output = await tool.run(wrapped(body), lambda _: None)
    assert output.text == "M a -> c\nD b"
    assert isinstance(output.display, TextDisplay)
    assert output.display.line == "3 files · +1 -2"


async def test_a_form_other_than_exact_is_named(workspace: Path) -> None:
    lay(workspace, {"a": b"one  \ntwo\n"})
    assert await apply(Workspace(workspace), "*** Update File: a\n@@\n one\n-two\n+2") == (
        "M a (found but for trailing blanks)"
    )
    assert tree_of(workspace) == {"a": b"one  \n2\n"}


_WORD = st.text("abc", min_size=1, max_size=3)


@given(
    lines=st.lists(_WORD, min_size=3, max_size=12, unique=True),
    ending=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
    data=st.data(),
)
async def test_a_patch_and_its_reverse_give_the_original(
    tmp_path: Path, lines: list[str], ending: str, last: bool, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(lines) - 1))
    new = data.draw(st.lists(_WORD.map(str.upper), min_size=1, max_size=3))
    original = (ending.join(lines) + (ending if last else "")).encode()
    (tmp_path / "a").write_bytes(original)
    place = Workspace(tmp_path)
    forth = "".join(f"+{line}\n" for line in new)
    back = "".join(f"-{line}\n" for line in new)
    await apply(place, f"*** Update File: a\n@@\n-{lines[at]}\n{forth}".rstrip("\n"))
    changed = [*lines[:at], *new, *lines[at + 1 :]]
    assert (tmp_path / "a").read_bytes() == (ending.join(changed) + (ending if last else "")).encode()
    await apply(place, f"*** Update File: a\n@@\n{back}+{lines[at]}")
    assert (tmp_path / "a").read_bytes() == original
