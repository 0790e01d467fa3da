"""The terminal as people have it: any width and kind, signals, job control, pipes that close; given back as it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.aftermath import gone, kept, orphans, start, store_of, wait_ended, wait_until, written
from tests.support.chats import Start, chats, ready
from tests.support.program import Program, json_lines
from tests.support.script import Answer, call, say
from tests.support.scripted_server import serving
from tests.support.terminal import Terminal

WIDE = "漢字 👩‍👩‍👧 🇩🇪 e\u0301 ｆｕｌｌ שלום"


@pytest.fixture
def program(workspace: Path, tmp_path: Path) -> Program:
    return Program(workspace, tmp_path / "home", env={"GIT_CONFIG_GLOBAL": "/dev/null"})


@pytest.fixture
def chat(program: Program, terminals: list[Terminal]) -> Start:
    return chats(program, terminals)


def left(terminal: Terminal, code: int = 0) -> None:
    terminal.send("\x04")
    assert terminal.wait_end() == code
    assert terminal.modes() == terminal.before
    assert "Traceback" not in terminal.everything


# Every width on every kind of terminal


@pytest.mark.parametrize("color", [True, False])
@pytest.mark.parametrize("term", ["xterm-256color", "dumb", ""])
@pytest.mark.parametrize("columns", [1, 7, 20, 80, 300])
def test_letters_of_all_scripts_go_through_at_any_width_on_any_terminal(
    program: Program, chat: Start, columns: int, term: str, color: bool
) -> None:
    name = "ｎａｍｅ 漢👩‍👩‍👧e\u0301.txt"
    text = f"# {WIDE}\n\n| {WIDE} | b |\n|---|---|\n| 1 | {WIDE} |\n\n- {WIDE}\n\n```\n{WIDE * 4}\n```\n\nThe end."
    make = call("create_file", {"path": name, "content": f"{WIDE}\n" * 3}, text=WIDE)
    with serving([make, say(text, pause=0.001)]) as server:
        terminal = chat(server, "--yolo", columns=columns, env={"TERM": term, "NO_COLOR": "" if color else "1"})
        terminal.send(f"{WIDE}\r")
        terminal.wait(lambda seen: "end." in seen.everything.replace("\n", ""), "the end")
        if term == "xterm-256color":
            terminal.resize(max(1, columns // 2), 12)
        terminal.send("/context\r")
        terminal.wait(lambda seen: "inview" in "".join(filter(str.isalpha, seen.everything)).lower(), "the panel")
        left(terminal)
        assert WIDE in json.dumps(server.asked[0].body["messages"], ensure_ascii=False)
    assert (program.cwd / name).read_text() == f"{WIDE}\n" * 3
    if term != "xterm-256color":
        assert b"\x1b" not in terminal.raw
    if not color:
        assert not any(code in terminal.raw for code in (b"\x1b[31m", b"\x1b[38;", b"\x1b[32m", b"\x1b[34m"))


def test_the_approval_of_a_command_in_other_scripts_shows_all_of_it(chat: Start) -> None:
    command = "touch '漢字 \u202eשלום' && rm -f x"
    with serving([call("execute_bash", {"command": command}), say("I see.")]) as server:
        terminal = chat(server, columns=20)
        terminal.wait_for("default")
        terminal.send("go\r")
        terminal.wait(lambda seen: "rm" in seen.everything and "漢" in seen.everything, "the command")
        assert "\u202e" not in terminal.everything
        terminal.send("\x1b")
        terminal.wait_for("refused")
        left(terminal)


# Signals


def test_the_first_control_c_stops_the_turn_the_second_on_an_empty_line_hints_the_third_leaves(
    program: Program, chat: Start, tmp_path: Path
) -> None:
    command = f"sleep 1000 & echo $! > {tmp_path}/pid; wait"
    with serving([call("execute_bash", {"command": command}, text="I wait for it."), say("On we go.")]) as server:
        terminal = ready(chat(server, "--yolo"))
        terminal.send("go on\r")
        wait_until(lambda: written(tmp_path / "pid"), "the command")
        terminal.send("\x03")
        terminal.wait_for("Interrupted. What was done so far is kept.")
        wait_until(lambda: gone(int((tmp_path / "pid").read_text())), "the command to end")
        assert ("assistant", "I wait for it.") in kept(program)
        terminal.send("and now?\r")
        terminal.wait_for("On we go.")
        terminal.wait_gone("interrupts")
        assert orphans(server.asked[-1].body["messages"]) == []
        terminal.send("\x03")
        terminal.wait_for("Ctrl-C again leaves")
        terminal.send("\x03")
        assert terminal.wait_end() == 0
    assert terminal.modes() == terminal.before


def test_an_interrupt_from_outside_is_a_control_c(chat: Start) -> None:
    with serving([Answer(text="Half of it ", fault="hang_midway"), say("On we go.")]) as server:
        terminal = ready(chat(server))
        terminal.send("go on\r")
        terminal.wait_for("Half")
        os.kill(terminal.child.pid, signal.SIGINT)
        terminal.wait_for("Interrupted.")
        terminal.send("and now?\r")
        terminal.wait_for("On we go.")
        terminal.wait_gone("interrupts")
        left(terminal)


@pytest.mark.parametrize(("ending", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_impatient_second_signal_cuts_the_leaving_short_and_still_leaves_nothing(
    program: Program, tmp_path: Path, ending: signal.Signals, code: int
) -> None:
    command = f"trap '' TERM INT; sleep 1000 & echo $! > {tmp_path}/pid; wait; wait"
    with serving([call("execute_bash", {"command": command}, text="I wait for it."), say("On we go.")]) as server:
        own = replace(program, model_url=server.url)
        running = start(own, "-p", "go", "--yolo")
        wait_until(lambda: written(tmp_path / "pid"), "the command")
        running.send_signal(ending)
        time.sleep(0.2)  # while it waits for a command that does not listen
        running.send_signal(ending)
        out, said = running.communicate(timeout=30)
        assert (running.returncode, out, "Traceback" in said) == (code, "", False)
        wait_ended(own)
        assert ("assistant", "I wait for it.") in kept(program)
        assert own.ask("and now?", "-c").stdout == "On we go.\n"
        assert orphans(server.asked[-1].body["messages"]) == []


@pytest.mark.parametrize("way", ["key", "signal"])
def test_a_stopped_chat_gives_the_terminal_to_the_shell_and_comes_back(program: Program, way: str, chat: Start) -> None:
    with serving([say("Before."), say("After.")]) as server:
        own = replace(program, model_url=server.url)
        environment = {**own.environment(), "PS1": "shell> ", "HISTFILE": "/dev/null"}
        terminal = Terminal(["/bin/bash", "--norc", "--noprofile", "-i"], cwd=own.cwd, env=environment)
        terminal.wait_for("shell>")
        terminal.send("stty -a > before; echo done-$?\r")
        terminal.wait_for("done-0")
        terminal.send(f"{sys.executable} -P -m mycode\r")
        ready(terminal)
        terminal.send("one\r")
        terminal.wait_for("Before.")
        terminal.wait_gone("interrupts")
        if way == "key":
            terminal.send("\x1a")
        else:
            children = Path(f"/proc/{terminal.child.pid}/task/{terminal.child.pid}/children").read_text().split()
            os.kill(int(children[-1]), signal.SIGTSTP)
        terminal.wait_for("Stopped")
        terminal.send("stty -a > stopped; echo again-$?\r")
        terminal.wait_for("again-0")
        terminal.send("fg\r")
        terminal.wait(lambda seen: "openai/scripted" in seen.everything.rpartition("fg")[2], "the prompt")
        terminal.send("two\r")
        terminal.wait_for("After.")
        terminal.wait_gone("interrupts")
        terminal.send("\x04")
        terminal.wait_for("is kept: mycode -r")
        terminal.send("stty -a > after; echo last-$?\r")
        terminal.wait_for("last-0")
        terminal.send("exit\r")
        assert terminal.wait_end() == 0
    modes = [(own.cwd / name).read_text() for name in ("before", "stopped", "after")]
    assert modes[1:] == [modes[0]] * 2


def test_a_fault_of_the_program_itself_gives_the_terminal_back_and_loses_nothing(program: Program) -> None:
    planted = (
        "from mycode.repl import talk; from mycode.__main__ import main\n"
        "def broken(*_): raise RuntimeError('planted')\n"
        "talk.Repl._shell = broken\n"
        "main()"
    )
    with serving([say("Before.")]) as server:
        own = replace(program, model_url=server.url)
        terminal = Terminal.python("-P", "-c", planted, cwd=own.cwd, env=own.environment())
        ready(terminal)
        terminal.send("one\r")
        terminal.wait_for("Before.")
        terminal.wait_gone("interrupts")
        terminal.send("!ls\r")
        assert terminal.wait_end() == 1
        assert "Something unforeseen happened" in terminal.everything
        assert "Traceback" not in terminal.everything
        assert terminal.modes() == terminal.before
        terminal.close()
    assert "planted" in (program.home / "mycode" / "errors.log").read_text()
    assert ("assistant", "Before.") in kept(program)


def test_a_command_that_is_killed_or_spoils_the_terminal_leaves_the_modes_alone(chat: Start) -> None:
    spoil = "stty raw -echo < /dev/tty; printf '\\033[?1049h\\033[8m'; kill -9 $$"
    with serving([call("execute_bash", {"command": spoil}), say("Dead.")]) as server:
        terminal = ready(chat(server, "--yolo"))
        terminal.send("go\r")
        terminal.wait_for("Dead.")
        terminal.wait_gone("interrupts")
        terminal.send(f"!{spoil}\r")
        terminal.wait_for("The model hears of it")
        left(terminal)
    assert b"\x1b[?1049h" not in terminal.raw


# Pipes


@pytest.mark.parametrize("form", ["text", "stream-json", "json"])
def test_a_reader_that_goes_away_is_no_error_and_the_turn_is_kept(program: Program, form: str) -> None:
    text = "".join(f"line {number}\n" for number in range(30_000))

    def played(body: dict[str, Any]) -> Answer:
        return say("On we go.") if "and now?" in str(body["messages"][-1]) else say(text, piece=2_000)

    with serving(played) as server:
        own = replace(program, model_url=server.url)
        command = f"'{sys.executable}' -P -m mycode -p hi --output-format {form} | head -c 20; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(
            ["/bin/bash", "-c", command],
            cwd=own.cwd,
            env=own.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.splitlines()[-1].endswith("0")
        assert ("Traceback" in done.stderr, "BrokenPipe" in done.stderr) == (False, False)
        assert own.ask("and now?", "-c").stdout == "On we go.\n"
    assert ("user", "hi") in kept(program)


# Side by side


def test_a_second_chat_on_the_same_session_is_told(program: Program, chat: Start) -> None:
    with serving([say("First."), say("Second.")]) as server:
        first = ready(chat(server))
        first.send("one\r")
        first.wait_for("First.")
        first.wait_gone("interrupts")
        second = chat(server, "-c", columns=200)
        assert second.wait_end() == 1
        assert "is open in another mycode" in second.everything
        assert "--fork-session" in second.everything
        assert second.modes() == second.before
        third = ready(chat(server))
        third.send("/resume one\r")
        third.wait_for("is open in another mycode")
        left(third)
        first.send("two\r")
        first.wait_for("Second.")
        first.wait_gone("interrupts")
        left(first)
    store = store_of(program)
    assert [info.messages for info in store.sessions(limit=5)] == [4]
    store.close()


def test_two_hundred_changes_of_the_settings_by_eight_at_once_are_all_there(program: Program) -> None:
    """Each changes keys of its own again and again, as people and scripts do."""
    edits = int(os.environ.get("MYCODE_EDITS", "40"))
    keys = [f"model.{name}" for name in ("context_window", "output_limit", "retry_seconds", "idle_timeout")]
    keys += [f"{name}" for name in ("tools.bash_timeout", "tools.output_limit", "session.max_steps")]
    keys += ["model.first_byte_timeout"]
    program_line = f"'{sys.executable}' -P -m mycode config set"
    loops = [
        f"i=0; while [ $i -lt {edits // 8} ]; do i=$((i + 1)); {program_line} {key} $((10000 + i)) || exit 9; done"
        for key in keys
    ]
    running = [
        subprocess.Popen(["/bin/sh", "-c", loop], cwd=program.cwd, env=program.environment(), stdout=subprocess.DEVNULL)
        for loop in loops
    ]
    assert [one.wait(timeout=300) for one in running] == [0] * 8
    text = (program.home / "mycode" / "settings.toml").read_text()
    assert [key for key in keys if f"{key.rpartition('.')[2]} = {10000 + edits // 8}" not in text] == []
    assert sorted(path.name for path in (program.home / "mycode").iterdir()) == [".settings.toml.lock", "settings.toml"]


# Children


@pytest.mark.parametrize(
    "leave",
    [
        "sleep 1000 & disown",
        "setsid sleep 1000 &",
        "(setsid sh -c 'sleep 1000 & sleep 1000 & exit' &) ; sleep 0.2",
        "nohup sleep 1000 > /dev/null 2>&1 &",
        "perl -e 'fork && exit; setpgrp; fork && exit; exec sleep, 1000' || sleep 1000 &",
        "sleep 1000 &",
    ],
)
@pytest.mark.parametrize("by", ["the model", "the person"])
def test_what_a_command_leaves_in_the_background_neither_holds_it_up_nor_outlives_it(
    program: Program, chat: Start, leave: str, by: str
) -> None:
    leave = leave if leave.endswith("&") else f"{leave};"
    script = [call("execute_bash", {"command": f"{leave} echo left"}), say("Done.")]
    with serving(script) as server:
        if by == "the model":
            done = replace(program, model_url=server.url).ask("go", "--yolo", timeout=40)
            assert done.stdout == "Done.\n"
            assert "left\nexit code: 0" in str(server.asked[-1].body["messages"][-1]["content"])
        else:
            terminal = ready(chat(server, env={"SHELL": "/bin/bash"}))
            terminal.send(f"!{leave} echo left\r")
            terminal.wait_for("The model hears of it")
            wait_until(lambda: not sleepers(program), "every child to end")
            left(terminal)
    wait_until(lambda: not sleepers(program), "every child to end")


def sleepers(program: Program) -> list[int]:
    """Commands that sleep in the workspace."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
            if (
                (folder / "cwd").readlink() == program.cwd
                and command[0].endswith(b"sleep")
                and not gone(int(folder.name))
            ):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def test_a_flood_of_the_persons_own_command_takes_little_memory(chat: Start) -> None:
    with serving([]) as server:
        terminal = ready(chat(server))
        terminal.send("!yes | head -c 200000000; echo over\r")
        terminal.wait(lambda seen: "The model hears of it" in seen.everything, "the end")
        status = Path(f"/proc/{terminal.child.pid}/status").read_text()
        peak = int(status.split("VmHWM:")[1].split()[0]) // 1024
        left(terminal)
    assert peak < 200


# Damage


def test_a_damaged_log_is_a_sentence_and_what_can_be_read_is_told_how_to_be_saved(program: Program) -> None:
    with serving([say("Kept. " * 2_000), say("Never asked.")]) as server:
        own = replace(program, model_url=server.url)
        assert own.ask("the first").returncode == 0
        file = program.home / "mycode" / "sessions" / "sessions.db"
        data = bytearray(file.read_bytes())
        for place in range(4096, len(data), 4096):
            data[place : place + 2048] = b"\0" * min(2048, len(data) - place)
        file.write_bytes(data)
        done = own.ask("and now?", "-c")
        listed = own.run("sessions", "list")
    for run in (done, listed):
        assert run.returncode == 1
        assert "is damaged" in run.stderr
        assert ".recover" in run.stderr
        assert "Traceback" not in run.stderr


def test_a_resumed_session_is_never_empty_without_saying_why(program: Program) -> None:
    with serving([say("First."), say("Second.")]) as server:
        own = replace(program, model_url=server.url)
        assert own.ask("the first").returncode == 0
        again = own.ask("the second", "-c", "--output-format", "stream-json")
        asked = json.dumps(server.asked[-1].body["messages"])
    assert json_lines(again.stdout)[-1]["result"] == "Second."
    assert [word in asked for word in ("the first", "First.", "the second")] == [True] * 3
