"""Whole stories in a real pseudo terminal, judged by what stands on its screen."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from mycode.render.screen import picture
from tests.support.terminal import Terminal

ROOT = Path(__file__).parents[2]
Start = Callable[..., Terminal]


@pytest.fixture
def start(workspace: Path, terminals: list[Terminal]) -> Start:
    def starting(*options: str, columns: int = 80, rows: int = 24, term: str = "xterm-256color") -> Terminal:
        terminal = Terminal.python(
            "-m",
            "tests.support.repl_program",
            *options,
            cwd=workspace,
            env={"PYTHONPATH": str(ROOT), "TERM": term},
            columns=columns,
            rows=rows,
        )
        terminals.append(terminal)
        return terminal

    return starting


def ready(terminal: Terminal) -> Terminal:
    terminal.wait(lambda seen: any("test/model" in line for line in seen.lines), "the status line")
    return terminal


def below(terminal: Terminal) -> list[str]:
    """The input line and what stands below it; [""] while it is being drawn."""
    lines = terminal.lines
    last = max((index for index, line in enumerate(lines) if line.startswith(">")), default=len(lines))
    return [line for line in lines[last:] if line] or [""]


def test_a_prompt_is_answered_and_leaving_gives_the_terminal_back(start: Start) -> None:
    terminal = ready(start())

    terminal.send("hello there\r")
    terminal.wait_for("You said: hello there")
    terminal.wait(lambda seen: below(seen)[0] == ">", "an empty input line")
    terminal.send("\x04")

    assert terminal.wait_end() == 0
    assert terminal.everything.strip() == "· a scripted session\n\n> hello there\n\nYou said: hello there\nleft"
    assert terminal.modes() == terminal.before


def test_a_streamed_answer_stands_once_in_the_scrollback(start: Start) -> None:
    terminal = ready(start(rows=10))

    terminal.send("please stream\r")
    terminal.wait_for("That is all.")
    terminal.send("and again stream\r")
    terminal.wait(lambda seen: seen.everything.count("That is all.") == 2, "the second answer")
    terminal.wait_gone("Esc interrupts")

    answer = "Plan\n\nFirst this.\n\n • one\n • two\n\n  print('hello')\n\nThat is all.\n"
    assert terminal.everything.count(answer) == 2
    assert terminal.everything.count("First this.") == 2


def test_what_is_typed_during_a_stream_stays_intact(start: Start) -> None:
    terminal = ready(start())

    terminal.send("please stream\r")
    terminal.wait_for("Plan")
    for letter in "typed meanwhile":
        terminal.send(letter)
    terminal.wait_for("That is all.")
    terminal.wait(lambda seen: below(seen)[0] == "> typed meanwhile", "the draft")


def test_a_prompt_sent_while_the_agent_works_is_queued_and_runs_afterwards(start: Start, workspace: Path) -> None:
    terminal = ready(start())

    terminal.send("wait for it\r")
    terminal.wait_for("Esc interrupts")
    terminal.send("next one\r")
    terminal.wait_for("queued 1")
    (workspace / "go").touch()
    terminal.wait_for("You said: next one")

    said = terminal.everything
    assert said.index("done waiting") < said.index("> next one")
    terminal.wait_gone("queued 1")


def test_a_queued_prompt_can_be_taken_back(start: Start, workspace: Path) -> None:
    terminal = ready(start())

    terminal.send("wait for it\r")
    terminal.wait_for("Esc interrupts")
    terminal.send("not this\r")
    terminal.wait_for("queued 1")
    terminal.send("\x1b[A")
    terminal.wait(lambda seen: below(seen)[0] == "> not this", "the draft")
    (workspace / "go").touch()
    terminal.wait_for("done waiting")

    assert "You said: not this" not in terminal.everything


def test_a_tool_runs_only_after_the_person_allowed_the_whole_of_it(start: Start) -> None:
    terminal = ready(start())

    terminal.send("use the tool\r")
    terminal.wait_for("[Y] once")
    assert "rm -rf build ␛[2K␛[1A && echo harmless" in terminal.everything
    assert "● execute_bash" not in terminal.everything
    terminal.send("a")
    terminal.wait_for("answer was always Bash(rm -rf build)")

    assert "● execute_bash rm -rf build\n  … 14 lines above (Ctrl-O shows all)\n" in terminal.everything
    terminal.send("\x0f")
    terminal.wait(lambda seen: seen.everything.count("  removed\n") >= 20, "the whole output")


def test_a_refusal_carries_the_persons_words_to_the_model(start: Start) -> None:
    terminal = ready(start())

    terminal.send("use the tool\r")
    terminal.wait_for("[N] no, say why")
    terminal.send("n")
    terminal.wait_for("What should the model do instead?")
    terminal.send("keep the build folder\r")
    terminal.wait_for("answer was no  keep the build folder")


def test_escape_in_mid_tool_interrupts_and_the_session_goes_on(start: Start) -> None:
    terminal = ready(start())

    terminal.send("use the slow tool\r")
    terminal.wait_for("[Y] once")
    terminal.send("y")
    terminal.wait_for("removing")
    terminal.send("\x1b")
    terminal.wait_for("! execute_bash rm -rf build: interrupted, may have had effects")
    terminal.wait_for("! Interrupted. What was done so far is kept.")
    terminal.send("still there?\r")
    terminal.wait_for("You said: still there?")


def test_control_c_in_mid_question_interrupts_too(start: Start) -> None:
    terminal = ready(start())

    terminal.send("use the tool\r")
    terminal.wait_for("[Y] once")
    terminal.send("\x03")
    terminal.wait_for("! Interrupted.")
    terminal.wait_gone("[Y] once")
    terminal.send("y\r")
    terminal.wait_for("You said: y")


def test_commands_and_files_are_completed(start: Start, workspace: Path) -> None:
    (workspace / "src").mkdir()
    (workspace / "src" / "app.py").write_text("")
    terminal = ready(start())

    terminal.send("/hist")
    terminal.wait_for("What was said, with --full")
    terminal.send("\t")
    terminal.wait(lambda seen: below(seen)[0] == "> /history", "the completed command")
    terminal.send(" --fu\t")
    terminal.wait(lambda seen: below(seen)[0] == "> /history --full", "the completed option")
    terminal.send("\x15")
    terminal.wait(lambda seen: below(seen)[0] == ">", "the empty line")
    terminal.send("look at @ap")
    terminal.wait_for("src/app.py")
    terminal.send("\t")
    terminal.wait(lambda seen: below(seen)[0] == "> look at @src/app.py", "the completed file")
    terminal.send(" now\r")
    terminal.wait_for("You said: look at @src/app.py now")


def test_a_paste_of_several_lines_waits_for_enter(start: Start) -> None:
    terminal = ready(start())

    terminal.paste("one\rtwo\rthree")
    terminal.wait(lambda seen: below(seen)[:3] == ["> one", "  two", "  three"], "the pasted lines")
    assert "You said" not in terminal.everything
    terminal.send("\r")
    terminal.wait_for("You said: one two three")


def test_a_shell_command_runs_here_and_the_model_hears_of_it(start: Start, workspace: Path) -> None:
    (workspace / "here.txt").write_text("")
    terminal = ready(start())

    terminal.send("!ls; exit 3\r")
    terminal.wait_for("exit code 3")
    assert "\nhere.txt\n" in terminal.everything
    terminal.send("what is here?\r")
    terminal.wait_for("You said: I ran ls; exit 3 in my shell; it ended with exit code 3.")


def test_the_screen_survives_a_resize_in_mid_stream(start: Start) -> None:
    terminal = ready(start(columns=100))

    terminal.send("please stream\r")
    terminal.wait_for("Plan")
    terminal.resize(50, 20)
    terminal.wait_for("That is all.")
    terminal.resize(120, 30)
    terminal.send("still good\r")
    terminal.wait_for("You said: still good")
    terminal.wait(lambda seen: below(seen) and "test/model" in below(seen)[-1], "the status line")


@pytest.mark.parametrize("columns", [1, 5, 20, 300])
def test_any_width_works(start: Start, columns: int) -> None:
    terminal = start(columns=columns)

    terminal.send("漢字 👩 stream\r")
    terminal.wait(lambda seen: "all." in seen.everything.replace("\n", ""), "the answer")
    terminal.send("\x04")

    assert terminal.wait_end() == 0
    assert terminal.modes() == terminal.before


def test_what_was_typed_before_the_program_was_ready_is_kept(start: Start) -> None:
    terminal = start()

    terminal.wait_for(">")
    terminal.send("typed early\r")
    terminal.wait_for("You said: typed early")

    assert terminal.everything.count("> typed early") == 1


def test_a_fault_before_the_first_draw_gives_the_terminal_back(start: Start, workspace: Path) -> None:
    (workspace / "broken.py").write_text(
        "from mycode.repl.opening import open_prompt\nopen_prompt()\nraise SystemExit(3)\n"
    )
    terminal = Terminal.python("broken.py", cwd=workspace, env={"PYTHONPATH": str(ROOT)})

    assert terminal.wait_end() == 3
    assert terminal.everything.strip() == ""
    assert terminal.modes() == terminal.before
    terminal.close()


def test_keys_are_explained_and_earlier_prompts_found(start: Start) -> None:
    terminal = ready(start("--history"))

    terminal.send("?")
    terminal.wait_for("Ctrl-R           search earlier prompts")
    terminal.send("fix the parser\r")
    terminal.wait_for("You said: fix the parser")
    terminal.send("something else\r")
    terminal.wait_for("You said: something else")
    terminal.send("\x12pars")
    terminal.wait_for("search back: pars")
    terminal.send("\r")
    terminal.wait(lambda seen: below(seen)[0] == "> fix the parser", "the found prompt")


def test_colours_follow_the_setting(start: Start) -> None:
    terminal = ready(start("--color"))

    terminal.send("please stream\r")
    terminal.wait_for("That is all.")

    assert "\x1b[1;36m>" in terminal.picture
    assert "\x1b[1;4mP" in terminal.picture
    svg = picture(terminal.picture, width=80)
    assert "First" in svg


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_gives_the_terminal_back(start: Start, ending: signal.Signals) -> None:
    terminal = ready(start())

    terminal.send("wait a moment\r")
    terminal.wait_for("Esc interrupts")
    os.kill(terminal.child.pid, ending)

    assert terminal.wait_end() == 128 + ending
    assert terminal.modes() == terminal.before


def test_a_terminal_that_cannot_draw_gets_labelled_lines(start: Start) -> None:
    terminal = start(term="dumb")

    terminal.wait_for("Note: a scripted session")
    terminal.send("use the tool\r")
    terminal.wait_for("Answer (y = once")
    terminal.send("y\r")
    terminal.wait_for("mycode:\nanswer was once")
    terminal.send("\x04")

    assert terminal.wait_end() == 0
    assert b"\x1b[" not in terminal.raw
    assert terminal.modes() == terminal.before


def test_in_plain_lines_control_c_interrupts_and_then_leaves(start: Start) -> None:
    terminal = start("--plain")

    terminal.wait_for("Note: a scripted session")
    terminal.send("please wait\r")
    terminal.wait_for("mycode:\nworking on it")
    terminal.send("\x03")
    terminal.wait_for("Warning: Interrupted. What was done so far is kept.")
    terminal.send("\x03")

    assert terminal.wait_end() == 0


def test_in_plain_lines_exit_leaves_at_once(start: Start) -> None:
    terminal = start("--plain")

    terminal.wait_for("Note: a scripted session")
    terminal.send("/exit\r")

    assert terminal.wait_end() == 0
    assert terminal.everything.rstrip().endswith("You: /exit\nleft")
