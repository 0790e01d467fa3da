"""Going back in a real chat: files, conversation, both; and forward again."""

import hashlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.support.script import call, say
from tests.support.scripted_server import ScriptedServer, serving
from tests.support.terminal import Terminal

SCRIPT = [
    call("create_file", {"path": "app.py", "content": "first\n"}),
    say("It is written."),
    call("execute_bash", {"command": "echo second > app.py; echo more > more.txt; rm old.txt"}),
    say("It is changed."),
    say("On we go."),
]


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with serving(SCRIPT) as running:
        yield running


@pytest.fixture
def program(workspace: Path, tmp_path: Path, server: ScriptedServer) -> Program:
    (workspace / "old.txt").write_text("old\n")
    (workspace / ".gitignore").write_text("ignored\n")
    (workspace / "ignored").write_text("mine\n")
    return Program(workspace, tmp_path / "home", server.url, {"GIT_CONFIG_GLOBAL": "/dev/null"})


@pytest.fixture
def chat(program: Program) -> Iterator[Terminal]:
    """A chat in which two turns have changed files."""
    terminal = opened(program)
    for prompt, answer in (("write it", "It is written."), ("change it", "It is changed.")):
        terminal.send(f"{prompt}\r")
        terminal.wait_for(answer)
        terminal.wait_gone("interrupts")  # the turn has ended, and what it changed is known to be the agent's
    yield terminal
    terminal.close()


def opened(program: Program, *options: str) -> Terminal:
    arguments = ("-P", "-m", "mycode", "--yolo", *options)
    terminal = Terminal.python(*arguments, cwd=program.cwd, env=program.environment(), columns=100, rows=40)
    terminal.wait_for("openai/scripted")
    return terminal


def left(terminal: Terminal) -> None:
    terminal.send("\x15\x04")
    assert terminal.wait_end() == 0


def files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file() and path.name != ".gitignore"}


CHANGED = {"app.py": "second\n", "more.txt": "more\n", "ignored": "mine\n"}
WRITTEN = {"app.py": "first\n", "old.txt": "old\n", "ignored": "mine\n"}


def test_escape_twice_picks_a_turn_and_takes_both_back(
    chat: Terminal, program: Program, server: ScriptedServer
) -> None:
    assert files(program.cwd) == CHANGED
    chat.send("\x1b\x1b")
    chat.wait_for("Go back to before")
    chat.wait_for("2. ")
    chat.send("1\r")
    chat.wait_for("files and conversation")
    assert all(
        words in chat.everything for words in ("changes    app.py +1 -1", "goes away  more.txt", "comes back old.txt")
    )
    assert files(program.cwd) == CHANGED
    chat.send("b")
    chat.wait_for("What came after is kept")
    assert files(program.cwd) == WRITTEN
    chat.send(", but shorter\r")  # what was said there is on the line again, to be said in another way
    chat.wait_for("On we go.")
    left(chat)
    said = [str(one["content"]) for one in server.asked[-1].body["messages"] if one["role"] == "user"]
    assert [[words for words in ("write it", "change it") if words in one] for one in said] == [
        ["write it"],
        ["change it"],
    ]
    assert "change it, but shorter" in said[-1]


def test_what_was_taken_back_can_be_done_again(chat: Terminal, program: Program) -> None:
    chat.send("/rewind 2 --files\r")
    chat.wait_for("Files taken back")
    assert files(program.cwd) == {"old.txt": "old\n", "ignored": "mine\n"}
    chat.send("/rewind --redo\r")
    chat.wait(lambda seen: seen.everything.count("Files taken back") == 2, "the second going back")
    assert files(program.cwd) == CHANGED
    left(chat)


def test_what_the_person_has_changed_meanwhile_is_asked_for(chat: Terminal, program: Program) -> None:
    (program.cwd / "app.py").write_text("by hand\n")
    chat.send("/rewind 1 --files\r")
    chat.wait_for("overwrite them")
    chat.send("\x1b")
    chat.wait_for("Nothing was changed.")
    assert files(program.cwd) == CHANGED | {"app.py": "by hand\n"}
    left(chat)


def test_the_persons_own_repository_is_left_alone(program: Program, workspace: Path) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=x", "-c", "user.email=x@x", *arguments]
        return subprocess.run(
            command, cwd=workspace, env=program.environment(), capture_output=True, text=True, check=True
        ).stdout

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "mine")
    (workspace / "staged.txt").write_text("staged\n")
    git("add", "staged.txt")

    def own() -> dict[str, str]:
        """Every byte of the person's own repository, and of what it ignores."""
        kept = [path for path in [*(workspace / ".git").rglob("*"), workspace / "ignored"] if path.is_file()]
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in kept}

    before = own()
    terminal = opened(program)
    for prompt, answer in (("write it", "It is written."), ("change it", "It is changed.")):
        terminal.send(f"{prompt}\r")
        terminal.wait_for(answer)
    terminal.send("/rewind 1 --files --conversation\r")
    terminal.wait_for("What came after is kept")
    terminal.send("\x15/rewind --redo\r")
    terminal.wait(lambda seen: seen.everything.count("Files taken back") == 2, "the second going back")
    assert files(workspace) == CHANGED | {"staged.txt": "staged\n"}
    left(terminal)
    terminal.close()
    assert own() == before


def test_a_copy_that_is_resumed_later_still_knows_the_states_it_shares(chat: Terminal, program: Program) -> None:
    chat.send("/rewind 1 --conversation\r")
    chat.wait_for("What came after is kept")
    left(chat)
    again = opened(program, "-c")
    again.send("/rewind 1 --files\r")
    again.wait_for("Files taken back")
    left(again)
    again.close()
    assert files(program.cwd) == {"old.txt": "old\n", "ignored": "mine\n"}


def test_states_go_with_the_last_session_that_needs_them(chat: Terminal, program: Program) -> None:
    chat.send("/rewind 1 --conversation\r")
    chat.wait_for("What came after is kept")
    chat.send("something else\r")
    chat.wait_for("On we go.")
    left(chat)
    kept = program.home / "mycode" / "checkpoints"
    ids = [info["id"] for info in json.loads(program.run("sessions", "list", "--json").stdout)]
    counts = []
    for session_id in ids:
        assert program.run("sessions", "delete", session_id, "--yes").returncode == 0
        counts.append(len(list(kept.iterdir())))
    assert (len(ids), counts) == (2, [1, 0])


def test_a_session_of_another_folder_brings_none_of_its_files(chat: Terminal, program: Program, tmp_path: Path) -> None:
    left(chat)
    other = replace(program, cwd=tmp_path / "other")
    other.cwd.mkdir()
    (other.cwd / "mine.txt").write_text("mine\n")
    terminal = opened(other, "--resume", "write it")
    terminal.send("/rewind 1 --files\r")
    terminal.wait_for("There is no checkpoint")
    left(terminal)
    terminal.close()
    assert files(other.cwd) == {"mine.txt": "mine\n"}
