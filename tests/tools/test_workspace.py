"""Paths mean what they say, reads cannot hang, writes are whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from mycode.core.errors import ToolError
from mycode.tools.workspace import Workspace


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    return folder


def test_paths_are_relative_to_the_root_and_home_is_known(workspace: Path) -> None:
    place = Workspace(workspace)
    assert place.resolve("a/../b.py") == workspace / "b.py"
    assert place.resolve("~/x") == Path(os.environ["HOME"]).resolve() / "x"
    assert place.relative(workspace / "a" / "b.py") == "a/b.py"
    assert place.relative("/etc/hosts") == "/etc/hosts"


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_an_empty_path_and_a_nul_are_refused(workspace: Path, path: str) -> None:
    with pytest.raises(ToolError):
        Workspace(workspace).resolve(path)


def test_inside_compares_components_of_resolved_paths(workspace: Path, outside: Path) -> None:
    (workspace / "out").symlink_to(outside)
    (workspace / "dangling").symlink_to(outside / "new.txt")
    evil = workspace.with_name(workspace.name + "-evil")
    place = Workspace(workspace)
    assert place.inside("a.py")
    assert place.inside(workspace)
    assert not any(place.inside(path) for path in (evil / "a", "../x", "out/a", "dangling", "/", "out/../a"))
    assert Workspace(workspace, (outside,)).inside("out/a")


def test_an_action_names_the_file_behind_a_link_and_the_link(workspace: Path, outside: Path) -> None:
    (workspace / "link").symlink_to(outside / "target")
    place = Workspace(workspace)
    assert place.touched("link") == (str(outside / "target"), str(workspace / "link"))
    assert place.touched("plain") == (str(workspace / "plain"),)
    assert place.touched("a/../plain") == (str(workspace / "plain"),)
    assert place.touched("a/../link") == (str(outside / "target"), str(workspace / "link"))


def test_a_root_that_is_reached_by_a_link_is_no_way_out(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(workspace)
    place = Workspace(tmp_path / "alias")
    assert place.touched(str(tmp_path / "alias" / "a.py")) == (str(workspace / "a.py"),)


def test_a_pipe_a_device_and_a_folder_are_refused_without_waiting(workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    place = Workspace(workspace)
    for path, kind in (("pipe", "a named pipe"), ("/dev/zero", "a device"), (".", "a folder")):
        with pytest.raises(ToolError, match=f"is {kind}, not a regular file"):
            place.read_bytes(path)
        with pytest.raises(ToolError):
            place.write_atomic(path, b"x")


def test_a_folder_is_answered_with_what_it_holds(workspace: Path) -> None:
    for name in ("b.py", "a.py"):
        (workspace / name).touch()
    with pytest.raises(ToolError, match=r"is a folder, not a regular file\. It holds a\.py, b\.py\.$"):
        Workspace(workspace).read_bytes(".")


def test_a_missing_file_is_answered_with_names_like_it(workspace: Path) -> None:
    (workspace / "src").mkdir()
    (workspace / "src" / "settings.py").touch()
    place = Workspace(workspace)
    with pytest.raises(ToolError, match=r"^src/setings.py does not exist. Did you mean src/settings.py\?$"):
        place.read_bytes("src/setings.py")
    with pytest.raises(ToolError, match=r"Did you mean src\?$"):
        place.read_bytes("scr/settings.py")
    with pytest.raises(ToolError, match=r"does not exist\.$"):
        place.read_bytes("zzz")


def test_a_write_keeps_the_mode_and_the_link(workspace: Path, outside: Path) -> None:
    script = outside / "run.sh"
    script.write_bytes(b"old")
    script.chmod(0o750)
    (workspace / "run.sh").symlink_to(script)
    files = Workspace(workspace)
    files.touched("run.sh", write=True)
    files.write_atomic("run.sh", b"new")
    assert (workspace / "run.sh").is_symlink()
    assert script.read_bytes() == b"new"
    assert stat.S_IMODE(script.stat().st_mode) == 0o750


def test_a_link_that_leads_out_only_since_it_was_allowed_is_not_followed(workspace: Path, outside: Path) -> None:
    (workspace / "sub").mkdir()
    (outside / "a").write_bytes(b"theirs")
    (outside.parent / f"{workspace.name}-beside").mkdir()
    files = Workspace(workspace)
    files.touched("sub/a", write=True)
    (workspace / "sub").rmdir()
    (workspace / "sub").symlink_to(outside)
    for write in (
        lambda: files.write_atomic("sub/a", b"mine"),
        lambda: files.remove("sub/a"),
        lambda: files.make_folders(workspace / "sub" / "deep"),
        lambda: files.read_bytes("sub/a"),
    ):
        with pytest.raises(ToolError, match=r"A link came to lie on the way to sub/(a|deep) meanwhile"):
            write()
    with pytest.raises(ToolError, match="leads out of the project"):
        files.write_atomic(f"../{workspace.name}-beside/a", b"mine")
    assert [path.name for path in outside.iterdir()] == ["a"]
    assert (outside / "a").read_bytes() == b"theirs"


def test_what_a_path_led_to_when_it_was_judged_is_what_is_written_and_read(workspace: Path) -> None:
    (workspace / ".git").mkdir()
    (workspace / ".git" / "config").write_bytes(b"theirs")
    (workspace / "plain").write_bytes(b"plain")
    (workspace / "name").symlink_to("plain")
    files = Workspace(workspace)
    assert files.touched("name", write=True)[0] == str(workspace / "plain")
    (workspace / "name").unlink()
    (workspace / "name").symlink_to(".git/config")
    assert files.read_bytes("name") == b"plain"
    files.write_atomic("name", b"mine")
    assert (workspace / "plain").read_bytes() == b"mine"
    assert (workspace / ".git" / "config").read_bytes() == b"theirs"
    assert files.touched("name", write=True)[0] == str(workspace / ".git" / "config")


def test_a_file_swapped_for_a_link_after_it_was_judged_is_not_read(workspace: Path, outside: Path) -> None:
    (outside / "key").write_bytes(b"theirs")
    (workspace / "a").write_bytes(b"plain")
    files = Workspace(workspace)
    files.touched("a")
    (workspace / "a").unlink()
    (workspace / "a").symlink_to(outside / "key")
    with pytest.raises(ToolError, match="became a link meanwhile"):
        files.read_bytes("a")


def test_a_new_file_follows_the_umask(workspace: Path) -> None:
    before = os.umask(0o027)
    try:
        Workspace(workspace).write_atomic("new", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((workspace / "new").stat().st_mode) == 0o640


def test_a_failed_write_leaves_the_old_file_and_nothing_else(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace / "a").write_bytes(b"old")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(ToolError, match="disk is full; a was left as it was"):
        Workspace(workspace).write_atomic("a", b"new content")
    assert {path.name: path.read_bytes() for path in workspace.iterdir()} == {"a": b"old"}


def test_a_short_write_is_continued(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, bytes(data[:3])))
    Workspace(workspace).write_atomic("a", b"0123456789")
    assert (workspace / "a").read_bytes() == b"0123456789"


def test_a_folder_swapped_for_a_link_is_not_written_through(
    workspace: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "src").mkdir()
    place = Workspace(workspace)
    resolved = place.resolve("src/a.py")
    real = os.path.realpath

    def swap_after_resolving(path: str) -> str:
        answer = real(path)
        if Path(answer) == resolved and (workspace / "src").is_dir() and not (workspace / "src").is_symlink():
            (workspace / "src").rmdir()
            (workspace / "src").symlink_to(outside)
        return answer

    monkeypatch.setattr(os.path, "realpath", swap_after_resolving)
    with pytest.raises(ToolError):
        place.write_atomic("src/a.py", b"x")
    assert list(outside.iterdir()) == []


def test_a_file_that_changed_since_it_was_seen_is_known_by_its_content(workspace: Path) -> None:
    place = Workspace(workspace)
    assert not place.changed("a", b"anything")
    place.note("a", b"one")
    assert (place.changed("a", b"one"), place.changed("a", b"two")) == (False, True)
    place.write_atomic("a", b"two")
    assert not place.changed("a", b"two")
    place.remove("a")
    assert place.seen("a") is None


def test_missing_folders_are_made_and_told(workspace: Path) -> None:
    place = Workspace(workspace)
    assert place.make_folders(workspace / "a" / "b") == (workspace / "a", workspace / "a" / "b")
    assert place.make_folders(workspace / "a" / "b") == ()
    (workspace / "file").touch()
    with pytest.raises(ToolError, match="is a file, not a folder"):
        place.make_folders(workspace / "file" / "x")


def test_a_read_only_file_is_not_replaced(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace / "a").write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # root may write everything
    with pytest.raises(ToolError, match="read-only"):
        Workspace(workspace).write_atomic("a", b"new")
    assert (workspace / "a").read_bytes() == b"old"
