"""`/rewind`: a turn is picked, what would change is shown, and only what was asked for goes back."""

import pytest

from mycode.core.checkpoints import FileChange, Rewind
from mycode.core.errors import SessionError, UsageError
from mycode.core.messages import AssistantMessage, UserMessage
from tests.support.fake_shell import FakeShell

CHANGES = (FileChange("app.py", "changed", 3, 1), FileChange("new\x1b[2K.txt", "deleted", 0, 9))


class FakeFiles:
    """A `Rewinder` over one plan; `foreign` files stop it until it is forced."""

    state = "on"

    def __init__(self, *foreign: str) -> None:
        self.plan = Rewind("abc1234", CHANGES, foreign)
        self.done: list[str] = []

    async def preview(self, ref: str) -> Rewind:
        return self.plan

    async def restore(self, ref: str, *, force: bool = False) -> Rewind:
        return self._do(f"restored {ref}", force=force)

    async def redo(self, *, force: bool = False) -> Rewind:
        return self._do("redone", force=force)

    def _do(self, what: str, *, force: bool) -> Rewind:
        if self.plan.foreign and not force:
            return self.plan
        self.done.append(what)
        return Rewind(self.plan.ref, self.plan.changes, self.plan.foreign, done=True, rescue="def5678")


def shell_of(*answers: str, files: FakeFiles | None = None) -> FakeShell:
    shell = FakeShell(*answers)
    for text in ("first question", "second question"):
        shell.session.add(UserMessage(text))
        shell.session.add(AssistantMessage("done"))
    shell.session.checkpoints = {1: "abc1234", 3: "abc1234"}
    shell.services.rewinder = files
    return shell


async def test_turns_are_listed_newest_first_and_picked_by_number() -> None:
    files = FakeFiles()
    shell = shell_of("2", "b", files=files)
    shown = await shell.run("/rewind")
    assert "  1. " in shown
    assert shown.index("second question  (m3, files)") < shown.index("first question  (m1, files)")
    assert "Going back: 2 files\n  changes    app.py +3 -1\n  goes away  new␛[2K.txt +0 -9\n" in shown
    assert "Files taken back: 2 files" in shown
    assert (files.done, len(shell.session.log), shell.fresh) == (["restored abc1234"], 0, 1)
    assert "What came after is kept: /resume abc123." in shown
    assert "/rewind --redo brings it back" in shown


@pytest.mark.parametrize(
    ("key", "restored", "left"),
    [("f", ["restored abc1234"], 4), ("c", [], 2), ("esc", [], 4), ("b", ["restored abc1234"], 2)],
)
async def test_files_and_conversation_go_back_together_or_alone(key: str, restored: list[str], left: int) -> None:
    files = FakeFiles()
    shell = shell_of(key, files=files)
    shown = await shell.run("/rewind 1")
    assert (files.done, len(shell.session.log)) == (restored, left)
    assert shell.drafted == ("second question" if left == 2 else "")
    assert ("Nothing was changed." in shown) is (key == "esc")


async def test_options_answer_the_questions_beforehand() -> None:
    files = FakeFiles()
    shell = shell_of(files=files)
    shown = await shell.run("/rewind m3 --preview")
    assert (files.done, len(shell.session.log), "app.py" in shown) == ([], 4, True)
    await shell.run("/rewind m3 --files")
    assert (files.done, len(shell.session.log)) == (["restored abc1234"], 4)
    await shell.run("/rewind m3 --conversation")
    assert (files.done, len(shell.session.log)) == (["restored abc1234"], 2)


async def test_what_somebody_else_has_changed_is_overwritten_only_after_a_yes() -> None:
    for answer, restored in (("esc", []), ("o", ["restored abc1234"])):
        files = FakeFiles("app.py")
        shell = shell_of(answer, files=files)
        shown = await shell.run("/rewind 1 --files --conversation")
        assert "! changes    app.py +3 -1  changed by somebody else since" in shown
        assert "Changed by somebody else since the agent last did: app.py." in shown
        assert (files.done, len(shell.session.log)) == (restored, 2 if restored else 4)


async def test_force_asks_nothing_and_redo_takes_it_back() -> None:
    files = FakeFiles("app.py")
    shell = shell_of("o", files=files)
    await shell.run("/rewind 1 --files --force")
    await shell.run("/rewind --redo")
    assert files.done == ["restored abc1234", "redone"]


async def test_where_no_file_is_kept_only_the_conversation_goes_back() -> None:
    shell = shell_of()
    assert "What came after is kept" in await shell.run("/rewind m3")
    assert len(shell.session.log) == 2
    with pytest.raises(SessionError, match="not recorded"):
        await shell.run("/rewind m1 --files")
    with pytest.raises(SessionError, match="not recorded"):
        await shell.run("/rewind --redo")
    assert "not recorded" in await shell.run("/rewind m1 --preview")


async def test_an_empty_answer_changes_nothing_and_a_wrong_number_is_told() -> None:
    shell = shell_of("")
    await shell.run("/rewind")
    assert len(shell.session.log) == 4
    with pytest.raises(UsageError, match="There is no turn '7'"):
        await shell.run("/rewind 7")


async def test_an_empty_conversation_has_nowhere_to_go_back_to() -> None:
    assert await FakeShell().run("/rewind") == "Note: Nothing was said yet.\n"
