"""A conversation at the real terminal, as a whole: how it is left, and how one comes back."""

from pathlib import Path

from tests.support.program import Program
from tests.support.script import say
from tests.support.scripted_server import serving
from tests.support.terminal import Terminal


def _chat(program: Program, *arguments: str) -> Terminal:
    return Terminal.python("-P", "-m", "mycode", *arguments, cwd=program.cwd, env=program.environment())


def test_whoever_leaves_is_told_how_to_come_back(workspace: Path, tmp_path: Path) -> None:
    with serving([say("Plums are ripe.")]) as server:
        program = Program(workspace, tmp_path / "home", server.url)
        terminal = _chat(program)
        terminal.wait_for("openai/scripted")
        terminal.send("are plums ripe?\r")
        terminal.wait_for("Plums are ripe.")
        terminal.send("/exit\r")
        terminal.wait_for("is kept")
        assert terminal.wait_end() == 0
        (way,) = [line for line in terminal.lines if line.startswith("“are plums ripe?” is kept: mycode -r ")]

        again = _chat(program, "-r", way.split()[-1])
        again.wait_for("Going on with “are plums ripe?”")
        again.send("/exit\r")
        assert again.wait_end() == 0


def test_a_chat_in_which_nothing_was_said_ends_without_a_word(workspace: Path, tmp_path: Path) -> None:
    with serving([]) as server:
        terminal = _chat(Program(workspace, tmp_path / "home", server.url))
        terminal.wait_for("openai/scripted")
        terminal.send("/exit\r")
        assert terminal.wait_end() == 0
    assert "is kept" not in terminal.everything
