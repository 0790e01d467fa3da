"""What is offered while typing: commands, their options and values, files of the workspace."""

import subprocess
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from mycode.repl.commands.registry import standard
from mycode.repl.completion import ReplCompleter, ranked, workspace_files
from tests.support.fake_shell import FakeShell

FILES = ("README.md", "src/app.py", "src/apple/core.py", "src/parser.py", "tests/test_app.py", "my notes.txt")


def offered(typed: str) -> list[str]:
    completer = ReplCompleter(standard(), FakeShell(), lambda: FILES)
    return [completion.text for completion in completer.get_completions(Document(typed), CompleteEvent())]


def test_commands_are_offered_by_name_and_alias() -> None:
    assert offered("/con") == ["/context", "/config"]
    assert offered("/comp") == ["/compact"]
    assert len(offered("/")) == len(standard().commands)
    assert offered("say /con") == []


def test_each_offer_says_what_the_command_does() -> None:
    completer = ReplCompleter(standard(), FakeShell(), lambda: FILES)

    (found,) = completer.get_completions(Document("/init"), CompleteEvent())

    assert found.display_meta_text == "Have the agent look at the project and write AGENTS.md"


def test_options_and_values_of_a_command_are_offered() -> None:
    assert offered("/summarize --pre") == ["--preview"]
    assert offered("/model ") == ["test/model", "test/other"]
    assert offered("/permissions pl") == ["plan"]
    assert offered("/context d") == ["drop"]
    assert offered("/nothing ") == []


def test_files_are_offered_best_first() -> None:
    assert offered("look at @app") == ["@src/app.py", "@tests/test_app.py", "@src/apple/core.py"]
    assert offered("@sprs") == ["@src/parser.py"]
    assert offered("@notes") == ['@"my notes.txt"']
    assert offered("mail me@") == []


def test_files_are_found_by_letters_in_order() -> None:
    assert ranked("srprs", FILES) == ["src/parser.py"]
    assert ranked("", FILES, most=2) == ["README.md", "src/app.py"]
    assert ranked("zzz", FILES) == []


def test_what_git_ignores_is_not_offered(workspace: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=workspace, check=True)
    (workspace / ".gitignore").write_text("build/\n")
    (workspace / "build").mkdir()
    (workspace / "build" / "out.js").write_text("")
    (workspace / "app.py").write_text("")

    assert sorted(workspace_files(workspace)()) == [".gitignore", "app.py"]
