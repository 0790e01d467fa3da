"""The model is told of its surroundings, and project instructions are read from the root down to the folder."""

import os
from datetime import date
from pathlib import Path

import pytest

from mycode.agent.environment import Environment, look_around, read_memory, repository_root
from mycode.agent.system_prompt import system_prompt


def _repository(root: Path) -> Path:
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text("ref: refs/heads/feature/x\n")
    return root


def test_the_branch_is_read_without_running_git(workspace: Path) -> None:
    assert look_around(_repository(workspace), today=date(2026, 1, 2)).git_branch == "feature/x"


def test_a_worktree_file_leads_to_its_branch(workspace: Path, tmp_path: Path) -> None:
    admin = tmp_path / "admin"
    admin.mkdir()
    (admin / "HEAD").write_text("0123456789abcdef\n")
    (workspace / ".git").write_text(f"gitdir: {admin}\n")
    assert look_around(workspace).git_branch == "0123456789"


def test_instructions_come_from_root_to_folder_and_an_override_wins(workspace: Path) -> None:
    deep = _repository(workspace) / "a" / "b"
    deep.mkdir(parents=True)
    (workspace / "AGENTS.md").write_text("root")
    (workspace / "a" / "CLAUDE.md").write_text("middle")
    (deep / "AGENTS.md").write_text("not this")
    (deep / "AGENTS.override.md").write_text("deep")
    memory = read_memory(deep)
    assert memory.files == (
        str(workspace / "AGENTS.md"),
        str(workspace / "a" / "CLAUDE.md"),
        str(deep / "AGENTS.override.md"),
    )
    assert [memory.text.index(word) for word in ("root", "middle", "deep")] == sorted(
        memory.text.index(word) for word in ("root", "middle", "deep")
    )
    assert "not this" not in memory.text


def test_instructions_beyond_the_cap_are_cut_and_it_is_said(workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("x" * 40_000)
    memory = read_memory(workspace)
    assert memory.cut == 40_000 - 32 * 1024
    assert memory.text.endswith(f"[{memory.cut} bytes of instruction files beyond 32 KiB were left out]")


def test_no_instructions_are_an_empty_memory(workspace: Path) -> None:
    assert read_memory(workspace).text == ""


def test_the_same_facts_give_the_same_system_prompt() -> None:
    facts = Environment(cwd="/w", platform="Linux 6", shell="bash", date="2026-01-02", git_branch="main")
    prompt = system_prompt(facts, append="Speak plainly.")
    assert prompt == system_prompt(facts, append="Speak plainly.")
    assert prompt.endswith("Speak plainly.\n")
    assert "- Git: branch main\n" in prompt


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_a_repository_that_somebody_else_put_around_the_folder_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "shared/.git").mkdir(parents=True)
    (tmp_path / "shared/mine/.git").mkdir(parents=True)
    (tmp_path / "shared/mine/deep").mkdir()
    (tmp_path / "shared/plain").mkdir()
    found = [repository_root(tmp_path / "shared" / name) for name in ("plain", "mine/deep")]
    os.chown(tmp_path / "shared", 65534, 65534)
    assert found == [tmp_path / "shared", tmp_path / "shared/mine"]
    assert repository_root(tmp_path / "shared/plain") is None
    assert repository_root(tmp_path / "shared/mine/deep") == tmp_path / "shared/mine"


def test_instructions_are_no_way_to_a_file_of_another_kind(workspace: Path) -> None:
    _repository(workspace)
    (workspace / ".env").write_text("KEY=hidden")
    (workspace / "AGENTS.md").symlink_to(".env")
    (workspace / "notes.md").write_text("Use tabs.")
    (workspace / "CLAUDE.md").symlink_to("notes.md")
    assert read_memory(workspace).text == f"## {workspace / 'CLAUDE.md'}\nUse tabs."


def test_a_box_is_told_with_what_commands_see_in_it() -> None:
    facts = Environment(cwd="/p", platform="Linux", shell="bash", date="2026-01-02", sandbox="bubblewrap, no network")
    assert "- Sandbox for commands: bubblewrap, no network. Empty read-only .git, " in system_prompt(facts)
