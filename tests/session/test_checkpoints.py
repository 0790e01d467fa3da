"""The files of a workspace can be taken back to before a turn, and nothing else is ever touched."""

import asyncio
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mycode.core.checkpoints import FileChange
from mycode.core.errors import SessionError
from mycode.core.messages import ToolCall
from mycode.session.checkpoints import Checkpoints
from mycode.session.snapshots import Limits
from mycode.tools.walking import find_git

EDIT = ToolCall("c1", "edit_file", "{}")
READ = ToolCall("c2", "read_file", "{}")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "data" / "checkpoints"


@pytest.fixture
def checkpoints(workspace: Path, store: Path) -> Checkpoints:
    return Checkpoints(workspace, store)


def _git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    return subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def _files(folder: Path) -> dict[str, bytes | str]:
    """Every file outside `.git` with its bytes; links as where they lead."""
    return {
        path.relative_to(folder).as_posix(): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if (path.is_symlink() or path.is_file()) and ".git" not in path.relative_to(folder).parts
    }


def _kinds(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IFMT(path.lstat().st_mode) for path in folder.iterdir()}


async def _taken(checkpoints: Checkpoints, turn: int = 1) -> str:
    ref = await checkpoints.take(turn)
    assert ref is not None
    return ref


async def test_a_workspace_without_git_comes_back_byte_for_byte(workspace: Path, checkpoints: Checkpoints) -> None:
    (workspace / "app.py").write_bytes(b"one\r\ntwo\rthree")
    (workspace / "blob").write_bytes(bytes(range(256)))
    (workspace / "run.sh").write_text("#!/bin/sh\n")
    (workspace / "run.sh").chmod(0o755)
    (workspace / "deep").mkdir()
    (workspace / "deep" / "ä b\n\tc").write_text("odd name")
    (workspace / "link").symlink_to("app.py")
    before = _files(workspace)
    ref = await _taken(checkpoints)

    (workspace / "app.py").write_text("spoilt")
    (workspace / "blob").unlink()
    shutil.rmtree(workspace / "deep")
    (workspace / "run.sh").chmod(0o644)
    (workspace / "link").unlink()
    (workspace / "new").mkdir()
    (workspace / "new" / "file").write_text("new")
    report = await checkpoints.restore(ref, force=True)

    assert report.done
    assert _files(workspace) == before
    assert stat.S_IMODE((workspace / "run.sh").stat().st_mode) == 0o755
    assert not (workspace / "new").exists()


async def test_a_checkpoint_is_made_once_a_turn_and_only_before_a_change(
    workspace: Path, store: Path, checkpoints: Checkpoints
) -> None:
    changing = Checkpoints(workspace, store, changes=lambda call: call.name == "edit_file")
    (workspace / "a").write_text("1")
    assert await changing.before(READ, 1) is None
    first = await changing.before(EDIT, 1)
    (workspace / "a").write_text("2")
    assert await changing.before(EDIT, 1) is None
    second = await changing.before(EDIT, 2)
    assert first
    assert second
    assert first != second


async def test_the_person_sees_what_going_back_would_do(workspace: Path, checkpoints: Checkpoints) -> None:
    (workspace / "kept").write_text("same")
    (workspace / "changed").write_text("a\nb\nc\n")
    (workspace / "gone").write_text("x\n")
    ref = await checkpoints.before(EDIT, 1)
    assert ref
    (workspace / "changed").write_text("a\nB\nc\nd\n")
    (workspace / "gone").unlink()
    (workspace / "made").write_bytes(b"\0binary")
    await checkpoints.settle()
    after = _files(workspace)

    preview = await checkpoints.preview(ref)

    assert preview.changes == (
        FileChange("changed", "changed", 1, 2),
        FileChange("gone", "created", 1, 0),
        FileChange("made", "deleted"),
    )
    assert (preview.foreign, preview.done) == ((), False)
    assert _files(workspace) == after


async def test_going_back_can_be_taken_back_and_done_again(workspace: Path, checkpoints: Checkpoints) -> None:
    (workspace / "a").write_text("before")
    ref = await checkpoints.before(EDIT, 1)
    assert ref
    (workspace / "a").write_text("after")
    (workspace / "b").write_text("new")
    await checkpoints.settle()
    after = _files(workspace)

    assert (await checkpoints.restore(ref)).done
    assert _files(workspace) == {"a": b"before"}
    assert (await checkpoints.redo()).done
    assert _files(workspace) == after
    assert (await checkpoints.redo()).done
    assert _files(workspace) == {"a": b"before"}


async def test_a_file_that_was_only_touched_does_not_stop_going_back(workspace: Path, checkpoints: Checkpoints) -> None:
    (workspace / "a.txt").write_text("one")
    ref = await checkpoints.before(EDIT, 1)
    assert ref is not None
    (workspace / "a.txt").write_text("two")
    await checkpoints.settle()
    os.utime(workspace / "a.txt", (1, 1))
    done = await checkpoints.restore(ref)
    assert (done.done, done.foreign, (workspace / "a.txt").read_text()) == (True, (), "one")


async def test_a_new_turn_ends_redo(workspace: Path, checkpoints: Checkpoints) -> None:
    (workspace / "a").write_text("before")
    ref = await _taken(checkpoints)
    (workspace / "a").write_text("after")
    await checkpoints.restore(ref, force=True)
    await _taken(checkpoints, 2)
    with pytest.raises(SessionError, match="nothing to redo"):
        await checkpoints.redo()


async def test_a_file_changed_from_outside_stops_going_back_unless_forced(
    workspace: Path, checkpoints: Checkpoints
) -> None:
    (workspace / "mine").write_text("1")
    (workspace / "theirs").write_text("1")
    ref = await checkpoints.before(EDIT, 1)
    assert ref
    (workspace / "mine").write_text("2")
    await checkpoints.settle()
    (workspace / "theirs").write_text("from an editor")

    refused = await checkpoints.restore(ref)
    assert (refused.done, refused.foreign) == (False, ("theirs",))
    assert _files(workspace) == {"mine": b"2", "theirs": b"from an editor"}

    forced = await checkpoints.restore(ref, force=True)
    assert forced.done
    assert _files(workspace) == {"mine": b"1", "theirs": b"1"}
    assert forced.rescue
    await checkpoints.restore(forced.rescue)
    assert _files(workspace) == {"mine": b"2", "theirs": b"from an editor"}


async def test_what_the_agent_last_did_is_known_to_the_next_start(workspace: Path, store: Path) -> None:
    (workspace / "a").write_text("1")
    first = Checkpoints(workspace, store)
    ref = await first.before(EDIT, 1)
    assert ref
    (workspace / "a").write_text("2")
    await first.settle()
    (workspace / "a").write_text("3, between two starts")
    assert (await Checkpoints(workspace, store).preview(ref)).foreign == ("a",)


async def test_the_persons_repository_is_never_touched(workspace: Path, checkpoints: Checkpoints) -> None:
    _git(workspace, "init", "-q")
    (workspace / ".gitignore").write_text("*.log\nbuild/\n!forced.log\n")
    (workspace / "a").write_text("1")
    _git(workspace, "add", "-A")
    _git(workspace, "commit", "-qm", "first")
    (workspace / "a").write_text("staged")
    _git(workspace, "add", "a")
    (workspace / "a").write_text("on disk")
    (workspace / "noise.log").write_text("ignored")
    (workspace / "private").write_text("excluded")
    (workspace / ".git" / "info" / "exclude").write_text("private\n")
    inside = {path: path.read_bytes() for path in (workspace / ".git").rglob("*") if path.is_file()}
    ref = await _taken(checkpoints)
    (workspace / "a").write_text("changed")
    (workspace / "noise.log").write_text("ignored, changed")
    (workspace / "private").write_text("excluded, changed")
    await checkpoints.restore(ref, force=True)

    assert {path: path.read_bytes() for path in (workspace / ".git").rglob("*") if path.is_file()} == inside
    assert _files(workspace) == {
        ".gitignore": b"*.log\nbuild/\n!forced.log\n",
        "a": b"on disk",
        "noise.log": b"ignored, changed",
        "private": b"excluded, changed",
    }


async def test_files_kept_though_ignored_come_back(workspace: Path, checkpoints: Checkpoints) -> None:
    _git(workspace, "init", "-q")
    (workspace / ".gitignore").write_text("dist\n")
    (workspace / "dist").write_text("committed by force")
    _git(workspace, "add", "-f", "dist")
    ref = await _taken(checkpoints)
    (workspace / "dist").write_text("changed")
    await checkpoints.restore(ref, force=True)
    assert (workspace / "dist").read_text() == "committed by force"


async def test_nothing_that_a_repository_names_is_run(workspace: Path, checkpoints: Checkpoints) -> None:
    trap = workspace / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {workspace}/sprung\ncat\n")
    trap.chmod(0o755)
    _git(workspace, "init", "-q")
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-commit"):
        shutil.copy(trap, workspace / ".git" / "hooks" / hook)
    for name in ("core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "diff.external"):
        _git(workspace, "config", name, str(trap))
    (workspace / ".gitattributes").write_text("* filter=evil diff=evil text eol=crlf\n")
    (workspace / "a").write_text("1\n")
    ref = await _taken(checkpoints)
    (workspace / "a").write_text("2\n")
    await checkpoints.preview(ref)
    await checkpoints.restore(ref, force=True)
    assert (workspace / "a").read_bytes() == b"1\n"
    assert not (workspace / "sprung").exists()


async def test_an_ignored_file_in_the_way_is_not_lost(workspace: Path, checkpoints: Checkpoints) -> None:
    (workspace / "data").write_text("was kept")
    (workspace / "other").write_text("1")
    ref = await _taken(checkpoints)
    (workspace / "data").unlink()
    await checkpoints.take(2)
    (workspace / ".gitignore").write_text("data\n")
    (workspace / "data").write_text("secret of the person")
    (workspace / "other").write_text("2")
    with pytest.raises(SessionError, match="nothing was changed: data would be lost"):
        await checkpoints.restore(ref, force=True)
    assert ((workspace / "data").read_text(), (workspace / "other").read_text()) == ("secret of the person", "2")


async def test_an_ignored_link_to_elsewhere_is_not_followed(
    workspace: Path, tmp_path: Path, checkpoints: Checkpoints
) -> None:
    (workspace / "sub").mkdir()
    (workspace / "sub" / "a").write_text("inside")
    ref = await _taken(checkpoints)
    shutil.rmtree(workspace / "sub")
    outside = tmp_path / "outside"
    outside.mkdir()
    (workspace / "sub").symlink_to(outside)
    await checkpoints.restore(ref, force=True)
    assert list(outside.iterdir()) == []
    assert (workspace / "sub" / "a").read_text() == "inside"
    assert not (workspace / "sub").is_symlink()


async def test_a_hard_link_is_not_written_through(workspace: Path, tmp_path: Path, checkpoints: Checkpoints) -> None:
    (workspace / "a").write_text("inside")
    ref = await _taken(checkpoints)
    outside = tmp_path / "outside"
    outside.write_text("outside")
    (workspace / "a").unlink()
    os.link(outside, workspace / "a")
    await checkpoints.restore(ref, force=True)
    assert (outside.read_text(), (workspace / "a").read_text()) == ("outside", "inside")


async def test_a_private_file_stays_private(workspace: Path, checkpoints: Checkpoints) -> None:
    secret = workspace / "key"
    secret.write_text("1")
    secret.chmod(0o600)
    ref = await _taken(checkpoints)
    secret.write_text("2")
    await checkpoints.restore(ref, force=True)
    assert (secret.read_text(), stat.S_IMODE(secret.stat().st_mode)) == ("1", 0o600)


async def test_repositories_inside_are_left_alone(workspace: Path, checkpoints: Checkpoints) -> None:
    (workspace / "a").write_text("1")
    for name, commit in (("empty", False), ("full", True)):
        inner = workspace / name
        inner.mkdir()
        _git(inner, "init", "-q")
        (inner / "file").write_text("theirs")
        if commit:
            _git(inner, "add", "-A")
            _git(inner, "commit", "-qm", "first")
    ref = await _taken(checkpoints)
    (workspace / "a").write_text("2")
    (workspace / "full" / "file").write_text("changed")
    await checkpoints.restore(ref, force=True)
    assert _files(workspace) == {"a": b"1", "empty/file": b"theirs", "full/file": b"changed"}


async def test_a_big_file_is_left_out_and_told_once(workspace: Path, store: Path) -> None:
    told: list[str] = []
    checkpoints = Checkpoints(workspace, store, warn=told.append, limits=Limits(file_bytes=2_000_000))
    (workspace / "big").write_bytes(b"x" * 3_000_000)
    (workspace / "small").write_text("1")
    ref = await _taken(checkpoints)
    await _taken(checkpoints, 2)
    (workspace / "big").write_bytes(b"y" * 3_000_000)
    (workspace / "small").write_text("2")
    report = await checkpoints.restore(ref, force=True)
    assert told == ["Not part of checkpoints: big (3 MB)."]
    assert report.warnings == ("Not kept, stays as it is: big (3 MB).",)
    assert ((workspace / "small").read_text(), (workspace / "big").read_bytes()[:1]) == ("1", b"y")


async def test_a_huge_folder_has_no_checkpoints_and_says_so_once(workspace: Path, store: Path) -> None:
    told: list[str] = []
    for number in range(4):
        (workspace / str(number)).write_text("x")
    checkpoints = Checkpoints(workspace, store, warn=told.append, limits=Limits(files=3))
    assert [await checkpoints.take(1), await checkpoints.take(2)] == [None, None]
    assert told[0].startswith("Turns cannot be taken back from here on: The folder is too big for checkpoints: 4 files")
    assert checkpoints.state.startswith("off: The folder is too big")


async def test_without_git_it_says_so_and_the_turn_goes_on(workspace: Path, store: Path) -> None:
    told: list[str] = []
    checkpoints = Checkpoints(workspace, store, env={"PATH": "/nowhere"}, warn=told.append)
    assert checkpoints.state == "off: git is not installed"
    assert await checkpoints.before(EDIT, 1) is None
    assert told == ["This turn cannot be taken back: git is not installed."]
    with pytest.raises(SessionError, match="git is not installed"):
        await checkpoints.preview("abc")


async def test_what_takes_too_long_is_given_up_once(workspace: Path, store: Path) -> None:
    told: list[str] = []
    checkpoints = Checkpoints(workspace, store, warn=told.append, limits=Limits(seconds=0.000001))
    assert [await checkpoints.take(1), await checkpoints.take(2)] == [None, None]
    assert "took longer than 1e-06 s" in told[0]
    assert checkpoints.state.startswith("off: Keeping the state of the folder took longer")


def test_a_git_of_the_workspace_is_never_used(workspace: Path) -> None:
    planted = workspace / "git"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    assert find_git(f".:{workspace}", workspace) is None
    assert find_git(f".:{workspace}:{os.environ['PATH']}", workspace) == shutil.which("git")


@pytest.mark.parametrize("ref", ["0000000", "--all", "HEAD", "known", "refs", ""])
async def test_an_unknown_checkpoint_is_one_sentence(workspace: Path, checkpoints: Checkpoints, ref: str) -> None:
    (workspace / "a").write_text("1")
    await _taken(checkpoints)
    with pytest.raises(SessionError, match=r"There is no checkpoint .*in this session\."):
        await checkpoints.restore(ref)


async def test_a_lock_left_by_a_killed_process_does_not_matter(workspace: Path, store: Path) -> None:
    (workspace / "a").write_text("1")
    await _taken(Checkpoints(workspace, store))
    (store / "index.lock").write_text("")
    assert await Checkpoints(workspace, store).take(2)


async def test_the_store_is_private_and_never_part_of_itself(workspace: Path) -> None:
    store = workspace / "own data" / "[store]"
    checkpoints = Checkpoints(workspace, store)
    (workspace / "a").write_text("1")
    ref = await _taken(checkpoints)
    assert stat.S_IMODE(store.stat().st_mode) == 0o700
    assert (await checkpoints.preview(ref)).changes == ()


async def test_odd_files_do_not_stop_a_checkpoint(workspace: Path, checkpoints: Checkpoints) -> None:
    os.mkfifo(workspace / "pipe")
    (workspace / "git~1").write_text("a name that other systems take for .git")
    (workspace / "back\\slash").write_text("1")
    (workspace / "dangling").symlink_to("nowhere")
    (workspace / os.fsdecode(b"latin-\xe4")).write_text("1")
    before = _kinds(workspace)
    ref = await _taken(checkpoints)
    for name in before:
        (workspace / name).unlink()
    await checkpoints.restore(ref, force=True)
    del before["pipe"]
    assert _kinds(workspace) == before


async def test_a_file_may_become_a_folder_and_back(workspace: Path, checkpoints: Checkpoints) -> None:
    (workspace / "x").write_text("file")
    file = await _taken(checkpoints)
    (workspace / "x").unlink()
    (workspace / "x").mkdir()
    (workspace / "x" / "y").write_text("below")
    folder = await _taken(checkpoints, 2)
    await checkpoints.restore(file, force=True)
    assert _files(workspace) == {"x": b"file"}
    await checkpoints.restore(folder, force=True)
    assert _files(workspace) == {"x/y": b"below"}


_TREES = st.dictionaries(st.sampled_from(["a", "b", "d/a", "d/b", "d/e/f"]), st.binary(max_size=6), max_size=5)


@settings(max_examples=5)
@given(states=st.lists(_TREES, min_size=2, max_size=4), data=st.data())
def test_every_state_can_be_reached_from_every_other(
    tmp_path_factory: pytest.TempPathFactory, states: list[dict[str, bytes]], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("project")
    checkpoints = Checkpoints(folder, tmp_path_factory.mktemp("store") / "git")

    async def story() -> None:
        refs = []
        for turn, state in enumerate(states):
            for path in _files(folder):
                (folder / path).unlink()
            for name, content in state.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
            refs.append(await _taken(checkpoints, turn))
        for _ in range(2):
            goal = data.draw(st.integers(0, len(states) - 1))
            await checkpoints.restore(refs[goal])
            assert _files(folder) == states[goal]

    asyncio.run(story())


async def test_what_is_kept_of_the_workspace_is_private_whatever_the_umask(
    workspace: Path, store: Path, checkpoints: Checkpoints
) -> None:
    (workspace / "a").write_text("one")
    before = os.umask(0)
    try:
        await _taken(checkpoints)
    finally:
        os.umask(before)
    modes = {str(path.relative_to(store)): path.stat().st_mode & 0o077 for path in store.rglob("*")}
    assert modes
    assert {name: oct(mode) for name, mode in modes.items() if mode} == {}
