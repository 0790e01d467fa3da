"""A disk that is really full: it is said, the program goes on, what was there stays whole, with room all is well."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.aftermath import left_over, orphans
from tests.support.program import Program
from tests.support.script import Answer, Call, call, say
from tests.support.scripted_server import serving
from tests.support.small_disk import SmallDisk, small_disk
from tests.support.terminal import Terminal

LONG = "Not kept. " * 2_000


@pytest.fixture
def program(workspace: Path, tmp_path: Path) -> Program:
    return Program(workspace, tmp_path / "home", env={"GIT_CONFIG_GLOBAL": "/dev/null"})


@pytest.fixture
def full_home(program: Program) -> Iterator[SmallDisk]:
    """The folder of the program's own data has a disk to itself."""
    with small_disk(program.home / "mycode") as disk:
        yield disk


def test_a_prompt_is_answered_though_nothing_can_be_kept(program: Program, full_home: SmallDisk) -> None:
    script = iter([say("Kept."), call("execute_bash", {"command": "echo ran >> made.txt"}), say(LONG), say("Again.")])

    def played(body: dict[str, Any]) -> Answer:
        if len(server.asked) == 2:
            full_home.fill()  # in the middle of the second turn
        return next(script)

    with serving(played) as server:
        own = replace(full_home.around(program), model_url=server.url)
        assert own.ask("the first").stdout == "Kept.\n"
        second = own.ask("the second", "-c", "--yolo")
        full_home.empty()
        third = own.ask("the third", "-c")
        asked = server.asked[-1].body["messages"]
    assert (second.stdout.strip(), second.returncode) == (LONG.strip(), 0)
    assert "disk is full" in second.stderr
    assert "is kept in memory" in second.stderr
    assert "Traceback" not in second.stderr
    assert (program.cwd / "made.txt").read_text() == "ran\n"
    assert (third.stdout, third.returncode, orphans(asked)) == ("Again.\n", 0, [])
    assert "Kept." in json.dumps(asked)
    assert own.run("sessions", "verify", "the first").stderr == "Whole and unaltered.\n"


@pytest.mark.parametrize("arguments", [("-p", "hello"), ("sessions", "list"), ("config", "set", "repl.vi", "true")])
def test_a_start_on_a_full_disk_is_a_sentence(
    program: Program, full_home: SmallDisk, arguments: tuple[str, ...]
) -> None:
    with serving([say("Hello.")]) as server:
        own = replace(full_home.around(program), model_url=server.url)
        full_home.fill()
        done = own.run(*arguments)
        assert ("Traceback" in done.stderr, "unforeseen" in done.stderr) == (False, False)
        assert "full" in done.stderr or "No space left" in done.stderr
        assert done.returncode in (1, 52)
        full_home.empty()
        assert own.run(*arguments).returncode == 0


def test_a_chat_goes_on_and_saves_everything_as_soon_as_there_is_room(program: Program, full_home: SmallDisk) -> None:
    change = call("execute_bash", {"command": "echo changed >> made.txt"})
    script = [say("One."), say(LONG + "Two."), change, say("Three."), say("Four."), say("Five.")]
    with serving(script) as server:
        own = replace(full_home.around(program), model_url=server.url)
        arguments = [*own.inside, *_python("--yolo")]
        terminal = Terminal(arguments, cwd=own.cwd, env=own.environment(), columns=100, rows=40)
        terminal.wait_for("openai/scripted")
        for prompt, answer in (("one", "One."), ("two", "Two."), ("three", "Three."), ("four", "Four.")):
            if prompt == "two":
                full_home.fill()
            if prompt == "four":
                assert "disk is full" in terminal.everything
                full_home.empty()
            terminal.send(f"{prompt}\r")
            terminal.wait_for(answer)
            terminal.wait_gone("interrupts")
        assert "Everything is saved again." in terminal.everything
        terminal.send("\x04")
        assert terminal.wait_end() == 0
        assert terminal.modes() == terminal.before
        assert own.ask("five", "-c").stdout == "Five.\n"
        said = json.dumps(server.asked[-1].body["messages"])
    assert [word in said for word in ("One.", "Two.", "Three.", "Four.")] == [True] * 4
    assert (program.cwd / "made.txt").read_text() == "changed\n"
    assert own.run("sessions", "verify", "one").stderr == "Whole and unaltered.\n"


def test_settings_stay_as_they_were(program: Program, full_home: SmallDisk) -> None:
    own = full_home.around(program)
    assert own.run("config", "set", "repl.vi", "true").returncode == 0
    before = (full_home.seen / "settings.toml").read_bytes()
    full_home.fill()
    refused = own.run("config", "set", "repl.editor", "x" * 9_000)
    assert (refused.returncode, "It is as it was." in refused.stderr) == (52, True)
    assert (full_home.seen / "settings.toml").read_bytes() == before
    full_home.empty()
    assert own.run("config", "set", "repl.theme", "light").returncode == 0
    assert "vi = true" in (full_home.seen / "settings.toml").read_text()
    assert sorted(path.name for path in full_home.seen.iterdir() if path.name.endswith(".new")) == []


def test_a_full_workspace_leaves_every_file_as_it_was(program: Program) -> None:
    body = "".join(f"line {number}\n" for number in range(2_000))
    edit = {"path": "old.txt", "edits": [{"old": "line 0\n", "new": "changed\n"}]}
    look = Answer(calls=(Call("read_file", {"path": "old.txt"}),))
    script = [
        look,
        call("edit_file", edit),
        call("create_file", {"path": "new.txt", "content": body}),
        call("execute_bash", {"command": "echo much > by_command.txt"}),
        say("It is full."),
        look,
        call("edit_file", edit),
        say("It is done."),
    ]
    with small_disk(program.cwd) as disk, serving(script) as server:
        (disk.seen / "old.txt").write_text(body)
        own = replace(disk.around(program), model_url=server.url)
        disk.fill()
        done = own.ask("go", "--yolo")
        told = [str(message["content"]) for message in server.asked[4].body["messages"] if message["role"] == "tool"]
        assert (done.stdout, done.returncode) == ("It is full.\n", 0)
        assert told[1] == "The disk is full; old.txt was left as it was."
        assert told[2] == "The disk is full; new.txt was left as it was."
        assert "No space left on device" in told[3]
        names = sorted(path.name for path in disk.seen.iterdir())
        assert [name for name in names if name != "by_command.txt"] == ["filler", "old.txt"]
        assert (disk.seen / "old.txt").read_text() == body
        disk.empty()
        assert own.ask("again", "-c", "--yolo").stdout == "It is done.\n"
        assert (disk.seen / "old.txt").read_text() == body.replace("line 0\n", "changed\n", 1)


def test_a_full_folder_for_temporary_files_stops_nothing(program: Program, tmp_path: Path) -> None:
    here = call("execute_bash", {"command": "cat <<END\n" + "x" * 100_000 + "\nEND\necho status $?"})
    script = [here, say("Done."), say("Kept nowhere."), say("I read it.")]
    with small_disk(tmp_path / "temporary") as disk, serving(script) as server:
        env = {**program.env, "TMPDIR": str(disk.place), "EDITOR": "true"}
        own = replace(disk.around(program), model_url=server.url, env=env)
        disk.fill()
        done = own.ask("go", "--yolo")
        assert (done.stdout, done.returncode) == ("Done.\n", 0)
        assert "No space left" in str(server.asked[1].body["messages"][-1]["content"])
        assert own.ask("go", "--no-session-persistence").stdout == "Kept nowhere.\n"
        terminal = Terminal([*own.inside, *_python()], cwd=own.cwd, env=own.environment(), columns=100)
        terminal.wait_for("openai/scripted")
        terminal.send("my draft\x07")
        terminal.send(" stays\r")
        terminal.wait_for("I read it.")
        terminal.send("\x04")
        assert terminal.wait_end() == 0
        assert "my draft stays" in json.dumps(server.asked[-1].body["messages"])
    assert left_over(program) == []


def _python(*arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", "mycode", *arguments]
