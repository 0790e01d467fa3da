"""A conversation at the real terminal, as a whole: how it is left, and how one comes back."""

from pathlib import Path
from typing import Any

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


def test_a_prompt_on_the_command_line_is_the_first_turn_of_a_chat(workspace: Path, tmp_path: Path) -> None:
    with serving([say("Plums are ripe."), say("Pears are not.")]) as server:
        terminal = _chat(Program(workspace, tmp_path / "home", server.url), "are plums ripe?", "--name", "fruit")
        terminal.send("and pears?\r")  # while the program is still loading
        terminal.wait_for("Pears are not.")
        terminal.wait_gone("interrupts")
        shown = terminal.everything
        order = ("> are plums ripe?", "Plums are ripe.", "> and pears?", "Pears are not.")
        assert sorted(order, key=shown.index) == [*order]
        assert [shown.count(text) for text in order] == [1, 1, 1, 1]
        terminal.send("\x1b[A\x1b[A")  # twice up: what was said first can be said again
        terminal.wait(lambda seen: seen.lines.count("> are plums ripe?") == 2, "the first prompt")
        terminal.send("\x03")
        terminal.send("/exit\r")
        terminal.wait_for("“fruit” is kept")
        assert terminal.wait_end() == 0
    assert [_said(one.body)[-1] for one in server.asked] == ["are plums ripe?", "and pears?"]


def test_a_prompt_on_the_command_line_goes_on_with_the_last_conversation(workspace: Path, tmp_path: Path) -> None:
    with serving([say("Plums are ripe."), say("Pears are not.")]) as server:
        program = Program(workspace, tmp_path / "home", server.url)
        assert program.ask("are plums ripe?").returncode == 0
        terminal = _chat(program, "and", "pears?", "-c", "--plain")
        terminal.wait_for("Pears are not.")
        terminal.send("\x04")
        assert terminal.wait_end() == 0
    assert _said(server.asked[-1].body) == ["are plums ripe?", "and pears?"]


def test_a_mistyped_command_starts_no_chat(workspace: Path, tmp_path: Path) -> None:
    with serving([]) as server:
        program = Program(workspace, tmp_path / "home", server.url)
        for words, command in ((["sesions"], "sessions"), (["sesions", "list"], "sessions"), (["docter"], "doctor")):
            terminal = _chat(program, *words)
            terminal.wait_for(f"There is no command '{words[0]}'. Did you mean `mycode {command}`?")
            assert terminal.wait_end() == 2
        terminal = _chat(program, " ")
        terminal.wait_for("The prompt is empty.")
        assert terminal.wait_end() == 2


def _said(body: dict[str, Any]) -> list[str]:
    return [message["content"] for message in body["messages"] if message["role"] == "user"]
