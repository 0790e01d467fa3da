"""Reading shows lines with numbers and says what is left out; creating never overwrites what was not seen."""

import hashlib
import os
from pathlib import Path

import pytest

from mycode.core.errors import ToolError
from mycode.core.messages import Image
from mycode.core.tools import DiffDisplay, TextDisplay, ToolOutput
from mycode.tools import files
from mycode.tools.files import CreateFile, CreateFileArgs, ReadFile, ReadFileArgs
from mycode.tools.workspace import Workspace


async def read(root: Path | Workspace, *args: object, limit: int = 50_000) -> ToolOutput:
    place = root if isinstance(root, Workspace) else Workspace(root)
    return await ReadFile(place, lambda: limit).run(ReadFileArgs(*args), lambda _: None)


async def create(root: Path | Workspace, path: str, content: str) -> ToolOutput:
    place = root if isinstance(root, Workspace) else Workspace(root)
    return await CreateFile(place).run(CreateFileArgs(path, content), lambda _: None)


async def test_lines_come_with_their_numbers(workspace: Path) -> None:
    (workspace / "a.py").write_text("def f():\n\treturn 1\n")
    assert await read(workspace, "a.py") == ToolOutput("1\tdef f():\n2\t\treturn 1", TextDisplay("a.py · 2 lines"))


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        (2, 3, "2\tb\n3\tc\n[lines 2-3 of 4]"),
        (3, None, "3\tc\n4\td\n[lines 3-4 of 4]"),
        (None, 1, "1\ta\n[lines 1-1 of 4]"),
        (1, 99, "1\ta\n2\tb\n3\tc\n4\td"),
    ],
)
async def test_a_window_of_lines_is_shown_and_named(
    workspace: Path, start: int | None, end: int | None, text: str
) -> None:
    (workspace / "a").write_bytes(b"a\r\nb\rc\nd")
    assert (await read(workspace, "a", start, end)).text == text


async def test_lines_that_are_not_there_are_refused(workspace: Path) -> None:
    (workspace / "a").write_text("a\n")
    with pytest.raises(ToolError, match=r"^a has only 1 lines; there is no line 5\.$"):
        await read(workspace, "a", 5)
    with pytest.raises(ToolError, match="end_line 1 comes before start_line 2"):
        await read(workspace, "a", 2, 1)


async def test_an_empty_file_is_called_empty(workspace: Path) -> None:
    (workspace / "a").touch()
    assert (await read(workspace, "a")).text == "a is empty."


async def test_a_long_file_is_cut_and_says_how_to_go_on(workspace: Path) -> None:
    (workspace / "a").write_text("".join(f"{number}\n" for number in range(1, 5001)))
    output = await read(workspace, "a")
    assert output.text.endswith("2000\t2000\n[lines 1-2000 of 5,000; go on with start_line=2001]")
    assert output.display == TextDisplay("a · lines 1-2000 of 5,000")
    short = await read(workspace, "a", limit=4000)
    assert len(short.text) < 4000
    assert "go on with start_line=" in short.text


async def test_a_file_too_big_to_hold_is_read_by_the_line(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_HELD_BYTES", 10)
    place, data = Workspace(workspace), b"".join(b"line %d\r\n" % number for number in range(1, 3001))
    (workspace / "a").write_bytes(data)
    assert (await read(place, "a", 2999)).text == "2999\tline 2999\n3000\tline 3000\n[lines 2999-3000 of 3,000]"
    assert (await read(place, "a")).text.endswith("[lines 1-2000 of 3,000; go on with start_line=2001]")
    assert place.seen("a") == hashlib.sha256(data).hexdigest()


async def test_a_line_as_long_as_the_file_is_not_held(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_HELD_BYTES", 10)
    (workspace / "a").write_bytes(b"x" * 200_000 + b"\nend\n")
    text = (await read(workspace, "a")).text
    assert text == f"1\t{'x' * 2000} … (198,000 more characters in this line)\n2\tend"


@pytest.mark.parametrize("head", [b"\x89PNG\r\n\x1a\n", "\ufeffab".encode("utf-16-le")])
async def test_what_is_too_big_to_look_at_is_named(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, head: bytes
) -> None:
    monkeypatch.setattr(files, "_HELD_BYTES", 10)
    (workspace / "a").write_bytes(head + bytes(20))
    with pytest.raises(ToolError, match=r"not text that can be shown: (image/png|UTF-16 text)"):
        await read(workspace, "a")


async def test_a_very_long_line_is_cut_and_says_so(workspace: Path) -> None:
    (workspace / "a").write_text("x" * 10_000 + "\nend\n")
    text = (await read(workspace, "a")).text
    assert text == f"1\t{'x' * 2000} … (8,000 more characters in this line)\n2\tend"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"caf\xe9\n", "[not UTF-8, shown as Windows-1252]\n1\tcafé"),
        ("\ufeffa\n".encode("utf-16-le"), "[UTF-16-LE with byte order mark]\n1\ta"),
        (b"\xef\xbb\xbfa\n", "[UTF-8 with byte order mark]\n1\ta"),
    ],
)
async def test_encodings_are_named(workspace: Path, data: bytes, text: str) -> None:
    (workspace / "a").write_bytes(data)
    assert (await read(workspace, "a")).text == text


@pytest.mark.parametrize(
    ("data", "kind"), [(b"\x7fELF\0", "an ELF program"), (b"PK\x03\x04\0", "a ZIP archive"), (b"a\0", "unknown binary")]
)
async def test_binary_files_are_named_and_refused(workspace: Path, data: bytes, kind: str) -> None:
    (workspace / "a").write_bytes(data)
    with pytest.raises(ToolError, match=f"^a is not text that can be shown: {kind}.*, {len(data)} bytes"):
        await read(workspace, "a")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n...", "image/png"),
        (b"\xff\xd8\xff\xe0...", "image/jpeg"),
        (b"GIF89a...", "image/gif"),
        (b"RIFF\0\0\0\0WEBP...", "image/webp"),
    ],
)
async def test_pictures_are_given_as_references_whatever_their_name(workspace: Path, data: bytes, kind: str) -> None:
    (workspace / "picture.txt").write_bytes(data)
    output = await read(workspace, "picture.txt")
    reference = Image(str(workspace / "picture.txt"), kind, hashlib.sha256(data).hexdigest(), len(data))
    assert output.images == (reference,)
    assert output.text == f"picture.txt is an image ({kind}, {len(data)} bytes), attached."


async def test_a_pipe_does_not_hang_the_reader(workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    with pytest.raises(ToolError, match="named pipe"):
        await read(workspace, "pipe")


def test_a_plan_names_the_file_behind_a_link(workspace: Path) -> None:
    (workspace / "key").symlink_to("/etc/hosts")
    action = ReadFile(Workspace(workspace), lambda: 1).plan(ReadFileArgs("key"))
    assert (action.effect, action.reads, action.writes) == ("read", ("/etc/hosts", str(workspace / "key")), ())


async def test_a_file_is_created_with_its_folders(workspace: Path) -> None:
    output = await create(workspace, "a/b/c.txt", "x\r\ny")
    assert (workspace / "a" / "b" / "c.txt").read_bytes() == b"x\r\ny"
    diff = "@@ -0,0 +1,2 @@\n+x\r\n+y\n\\ No newline at end of file\n"
    assert output == ToolOutput("a/b/c.txt created, 2 lines.", DiffDisplay("a/b/c.txt", diff, 2, 0, created=True))


async def test_an_existing_file_is_overwritten_only_after_it_was_read(workspace: Path) -> None:
    place = Workspace(workspace)
    (workspace / "a").write_text("old\n")
    with pytest.raises(ToolError, match="a exists and was not read"):
        await create(place, "a", "new\n")
    await read(place, "a")
    assert (await create(place, "a", "new\n")).text == "a overwritten, 1 line."
    (workspace / "a").write_text("someone else's\n")
    with pytest.raises(ToolError, match="a has changed since it was read"):
        await create(place, "a", "newer\n")
    assert (workspace / "a").read_text() == "someone else's\n"


async def test_creating_what_is_already_there_is_told(workspace: Path) -> None:
    place = Workspace(workspace)
    await create(place, "a", "x")
    action = CreateFile(place).plan(CreateFileArgs("a", "x"))
    assert action.fails == "a already has exactly this content."
    with pytest.raises(ToolError, match="already has exactly"):
        await create(place, "a", "x")


@pytest.mark.parametrize("path", ["pipe", "folder", "/dev/null"])
async def test_only_regular_files_are_written(workspace: Path, path: str) -> None:
    os.mkfifo(workspace / "pipe")
    (workspace / "folder").mkdir()
    with pytest.raises(ToolError, match="not a regular file"):
        await create(workspace, path, "x")
