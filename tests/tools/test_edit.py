"""Editing changes the quoted place and nothing else, or changes nothing and says why."""

import asyncio
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycode.core.errors import ToolError
from mycode.core.tools import DiffDisplay
from mycode.tools.edit import Edit, EditFile, EditFileArgs
from mycode.tools.workspace import Workspace


async def edit(root: Path | Workspace, path: str, *edits: tuple[str, str] | Edit) -> str:
    place = root if isinstance(root, Workspace) else Workspace(root)
    tool = EditFile(place)
    args = EditFileArgs(path, tuple(each if isinstance(each, Edit) else Edit(*each) for each in edits))
    return (await tool.run(args, lambda _: None)).text


async def refused(root: Path | Workspace, path: str, *edits: tuple[str, str] | Edit) -> str:
    """What a refused edit says, which is what its plan said before."""
    place = root if isinstance(root, Workspace) else Workspace(root)
    args = EditFileArgs(path, tuple(each if isinstance(each, Edit) else Edit(*each) for each in edits))
    planned = EditFile(place).plan(args)
    with pytest.raises(ToolError) as error:
        await edit(place, path, *edits)
    assert planned.fails == str(error.value)
    return str(error.value)


async def test_an_edit_is_told_in_a_line_and_shown_as_a_diff(workspace: Path) -> None:
    (workspace / "a.py").write_text("one\ntwo\nthree\n")
    tool, args = EditFile(Workspace(workspace)), EditFileArgs("a.py", (Edit("two", "2\n2b"),))
    diff = DiffDisplay("a.py", "@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2b\n three\n", 2, 1)
    planned = tool.plan(args)
    output = await tool.run(args, lambda _: None)
    assert (planned.title, planned.writes, planned.displays) == ("edit_file a.py", (str(workspace / "a.py"),), (diff,))
    assert (output.text, output.display) == ("a.py edited. Now in lines 2-3.", diff)


async def test_edits_apply_in_order_on_the_result_of_the_earlier_ones(workspace: Path) -> None:
    (workspace / "a").write_text("a\nb  \n")
    told = await edit(workspace, "a", ("a", "x"), Edit("x", "y", replace_all=True), ("y\nb", "z"))
    assert (workspace / "a").read_text() == "z  \n"
    assert told == "a edited. Edit 1 of 3: line 1. Edit 2 of 3: line 1. Edit 3 of 3: line 1."


async def test_a_form_other_than_exact_is_named(workspace: Path) -> None:
    (workspace / "a").write_bytes(b"a \r\nb\r\n")
    assert await edit(workspace, "a", ("a\nb", "c")) == "a edited. Now in line 1 (found but for trailing blanks)."


async def test_one_edit_that_does_not_apply_leaves_all_undone(workspace: Path) -> None:
    (workspace / "a").write_bytes(b"a\nb\n")
    said = await refused(workspace, "a", ("a", "x"), ("missing", "y"))
    assert said == "Edit 2 of 2: The old text is not in the file.\nNothing was changed in a."
    assert (workspace / "a").read_bytes() == b"a\nb\n"


async def test_a_refusal_shows_the_nearest_text_with_numbers_and_visible_blanks(workspace: Path) -> None:
    (workspace / "a.py").write_text("import os\n\ndef area(w, h):\n\treturn w  *  h \n")
    said = await refused(workspace, "a.py", ("def area(w, h):\n    return w * h", "x"))
    assert said == (
        "The old text is not in the file.\n"
        "Nearest text (blanks at the ends of lines shown as ·, tabs as →):\n"
        "3\tdef area(w, h):\n"
        "4\t→return w  *  h·\n"
        "First difference in line 4; the old text has: ····return w * h\n"
        "Nothing was changed in a.py."
    )


async def test_lines_are_numbered_as_read_file_numbers_them(workspace: Path) -> None:
    (workspace / "a").write_text("one\n\x0ctwo\u2028three\ntotal = a + b\n")
    assert "3\ttotal = a + b\n" in await refused(workspace, "a", ("total = a - b", "x"))


async def test_invisible_characters_are_shown_by_name(workspace: Path) -> None:
    (workspace / "a").write_text("total = a\u00a0+ b\u200b\n")
    assert "total = a<U+00A0>+ b<U+200B>" in await refused(workspace, "a", ("total = a + b", "x"))


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"\xef\xbb\xbfa\r\nb\r\n", "b", "c\nd", b"\xef\xbb\xbfa\r\nc\r\nd\r\n"),
        (b"a\rb\rc", "b\nc", "x", b"a\rx"),
        (b"caf\xe9 1\nx\n", "x", "y", b"caf\xe9 1\ny\n"),
        (b"caf\xe9 1\nx\n", "café 1", "café 2", b"caf\xe9 2\nx\n"),
        (b"\x00\x01\xffname=old\x00", "name=old", "name=new", b"\x00\x01\xffname=new\x00"),
        ("\ufeffé\r\nb".encode("utf-16-le"), "b", "→\nc", "\ufeffé\r\n→\r\nc".encode("utf-16-le")),
        ("日本\n".encode(), "本", "語", "日語\n".encode()),
    ],
)
async def test_encoding_mark_and_line_ends_survive(
    workspace: Path, before: bytes, old: str, new: str, after: bytes
) -> None:
    (workspace / "a").write_bytes(before)
    await edit(workspace, "a", (old, new))
    assert (workspace / "a").read_bytes() == after


async def test_new_letters_are_not_guessed_into_an_unknown_encoding(workspace: Path) -> None:
    (workspace / "a").write_bytes(b"caf\xe9 x\n")
    assert "so ü cannot be written" in await refused(workspace, "a", ("x", "ü"))
    assert (workspace / "a").read_bytes() == b"caf\xe9 x\n"


async def test_mode_and_link_survive(workspace: Path) -> None:
    (workspace / "run").write_text("old")
    (workspace / "run").chmod(0o755)
    (workspace / "link").symlink_to("run")
    await edit(workspace, "link", ("old", "new"))
    assert (workspace / "link").is_symlink()
    assert (workspace / "run").read_text() == "new"
    assert stat.S_IMODE((workspace / "run").stat().st_mode) == 0o755


async def test_a_file_changed_since_it_was_read_is_refused_until_read_again(workspace: Path) -> None:
    place, file = Workspace(workspace), workspace / "a"
    file.write_text("one two")
    place.note("a", b"one two")
    os.utime(file, (1, 1))  # touched, not changed
    await edit(place, "a", ("one", "1"))
    await edit(place, "a", ("two", "2"))  # own writes count as read
    file.write_text("1 2 3")
    said = await refused(place, "a", ("1", "one"))
    assert said.startswith("a has changed since it was read, so nothing was written. Read it again")
    place.note("a", place.read_bytes("a"))
    await edit(place, "a", ("1", "one"))
    assert file.read_text() == "one 2 3"


async def test_an_empty_old_text_creates_a_file_with_its_folders(workspace: Path) -> None:
    assert await edit(workspace, "new/a.txt", ("", "hi\n"), ("hi", "ho")) == "new/a.txt created."
    assert (workspace / "new" / "a.txt").read_bytes() == b"ho\n"


@pytest.mark.parametrize("content", [b"", b"x"])
async def test_an_empty_old_text_never_touches_a_file_that_exists(workspace: Path, content: bytes) -> None:
    (workspace / "a").write_bytes(content)
    assert "only creates files" in await refused(workspace, "a", ("", "new"))
    assert (workspace / "a").read_bytes() == content


async def test_edits_that_cancel_out_are_refused(workspace: Path) -> None:
    (workspace / "a").write_text("x")
    assert "cancel each other out" in await refused(workspace, "a", ("x", "y"), ("y", "x"))


async def test_a_missing_file_is_answered_with_names_like_it(workspace: Path) -> None:
    (workspace / "settings.py").touch()
    assert await refused(workspace, "setings.py", ("a", "b")) == (
        "setings.py does not exist. Did you mean settings.py?"
    )


async def test_edits_of_one_file_at_the_same_time_lose_none(workspace: Path) -> None:
    place = Workspace(workspace)
    (workspace / "a").write_text("".join(f"<{number}>\n" for number in range(40)))

    def one(number: int) -> str:
        return asyncio.run(edit(place, "a", (f"<{number}>", f"[{number}]")))

    await asyncio.gather(*(asyncio.to_thread(one, number) for number in range(40)))
    assert (workspace / "a").read_text() == "".join(f"[{number}]\n" for number in range(40))


_BYTES = st.lists(
    st.sampled_from([b"a", b"b", b" ", b"\t", b"\n", b"\r\n", b"\r", b"\xe9", "é".encode(), b"\0", b"\xef\xbb\xbf"]),
    max_size=25,
).map(b"".join)


@given(
    before=_BYTES, after=_BYTES, old=st.text("ab \n\té", min_size=1, max_size=6), new=st.text("ab \n\té", max_size=6)
)
async def test_every_byte_outside_the_place_survives_and_a_refusal_touches_nothing(
    tmp_path: Path, before: bytes, after: bytes, old: str, new: str
) -> None:
    file = tmp_path / "file"
    data = before + b"@" + old.encode() + b"@" + after
    file.write_bytes(data)
    try:
        await edit(tmp_path, "file", (f"@{old}@", f"@{new}@"))
    except ToolError:
        assert file.read_bytes() == data
        return
    changed = file.read_bytes()
    assert changed.startswith(before + b"@")
    assert changed.endswith(b"@" + after)
    body = changed[len(before) + 1 : len(changed) - len(after) - 1]
    assert body.replace(b"\r\n", b"\n").replace(b"\r", b"\n") == new.encode()
