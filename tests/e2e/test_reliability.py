"""What goes wrong on real machines, done to the real program: it loses nothing and leaves nothing behind."""

import json
import os
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.aftermath import gone, kept, orphans, start, wait_until, written
from tests.support.chats import Start, chats, ready
from tests.support.program import Program, json_lines
from tests.support.script import Answer, call, say
from tests.support.scripted_server import ScriptedServer, serving
from tests.support.terminal import Terminal


@pytest.fixture
def program(workspace: Path, tmp_path: Path) -> Program:
    return Program(workspace, tmp_path / "home")


def talking_to(program: Program, server: ScriptedServer) -> Program:
    return replace(program, model_url=server.url)


@pytest.mark.parametrize(("ending", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_ends_a_prompt_with_its_code_and_all_is_saved(
    program: Program, tmp_path: Path, ending: signal.Signals, code: int
) -> None:
    command = f"sleep 1000 & echo $! > {tmp_path}/pid; echo begun; wait"
    with serving([call("execute_bash", {"command": command}, text="I wait for it.")]) as server:
        running = start(talking_to(program, server), "-p", "go", "--yolo")
        wait_until(lambda: written(tmp_path / "pid"), "the command")
        running.send_signal(ending)
        out, said = running.communicate(timeout=30)
    assert (running.returncode, out) == (code, "")
    assert "what was said so far is kept" in said
    assert ("assistant", "I wait for it.") in kept(program)
    assert gone(int((tmp_path / "pid").read_text()))
    with serving([say("On we go.")]) as server:
        again = talking_to(program, server).ask("and now?", "-c")
        faults = orphans(server.asked[-1].body["messages"])
    assert (again.stdout, faults) == ("On we go.\n", [])


def test_what_a_command_left_in_the_background_ends_with_the_program(program: Program, tmp_path: Path) -> None:
    command = (
        f"sleep 1000 & echo $! > {tmp_path}/one; disown; setsid sleep 1000 & echo $! > {tmp_path}/two; "
        f"(nohup sleep 1000 >/dev/null 2>&1 & echo $! > {tmp_path}/three)"
    )
    job = call("execute_bash", {"command": f"echo $$ > {tmp_path}/four; exec sleep 1000", "background": True})
    wait = call("execute_bash", {"command": f"until [ -s {tmp_path}/four ]; do sleep 0.01; done"})
    with serving([call("execute_bash", {"command": command}), job, wait, say("Done.")]) as server:
        done = talking_to(program, server).ask("go", "--yolo")
    pids = [int((tmp_path / name).read_text()) for name in ("one", "two", "three", "four")]
    assert (done.stdout, done.returncode) == ("Done.\n", 0)
    wait_until(lambda: all(map(gone, pids)), "every child to end")


def test_commands_end_even_when_the_program_is_killed(program: Program, tmp_path: Path) -> None:
    command = f"setsid sleep 1000 & echo $! > {tmp_path}/one; echo $$ > {tmp_path}/two; wait; sleep 1000"
    with serving([call("execute_bash", {"command": command})]) as server:
        running = start(talking_to(program, server), "-p", "go", "--yolo")
        wait_until(lambda: written(tmp_path / "two"), "the command")
        running.kill()
        running.communicate()
    pids = [int((tmp_path / name).read_text()) for name in ("one", "two")]
    wait_until(lambda: all(map(gone, pids)), "every child to end")


# Too much, too full, too odd


def test_a_full_disk_is_said_and_what_was_kept_stays_whole(program: Program) -> None:
    with serving([say("Kept.")]) as server:
        assert talking_to(program, server).ask("the first").returncode == 0
    files = list((program.home / "mycode" / "sessions").iterdir())
    room = max(file.stat().st_size for file in files)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    with serving([say("Not kept. " * 40_000), say("Kept again.")]) as server:
        own = talking_to(program, server)
        running = start(own, "-c", "-p", "the second", preexec_fn=limit)
        out, said = running.communicate(timeout=60)
        after = own.ask("the third", "-c")
        faults = orphans(server.asked[-1].body["messages"])
    assert out.startswith("Not kept.")
    assert "is kept in memory" in said or "could not be" in said
    assert "Traceback" not in said
    assert (after.stdout, after.returncode, faults) == ("Kept again.\n", 0, [])
    assert ("assistant", "Kept.") in kept(program)
    assert program.run("sessions", "verify", "the first").returncode == 0


def test_settings_stay_whole_when_the_disk_is_full(program: Program) -> None:
    assert program.run("config", "set", "repl.vi", "true").returncode == 0
    before = (program.home / "mycode" / "settings.toml").read_text()

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4, 4))

    running = start(program, "config", "set", "repl.theme", "light", preexec_fn=limit)
    _, said = running.communicate(timeout=60)
    assert (running.returncode, "Traceback" in said) == (52, False)
    assert "It is as it was." in said
    assert (program.home / "mycode" / "settings.toml").read_text() == before


def test_a_gigabyte_of_output_takes_little_memory(program: Program) -> None:
    # Started by a small process: the peak of a child begins with what its parent had when it was split off.
    measured = (
        "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:]);"
        "sys.stderr.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)); sys.exit(done.returncode)"
    )
    with serving([call("execute_bash", {"command": "yes | head -c 1000000000"}), say("Much.")]) as server:
        own = talking_to(program, server)
        done = subprocess.run(
            [sys.executable, "-c", measured, sys.executable, "-P", "-m", "mycode", "-p", "go", "--yolo"],
            cwd=own.cwd,
            env=own.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        result = server.asked[-1].body["messages"][-1]["content"]
    peak = int(done.stderr.splitlines()[-1])
    megabytes = peak / (1024 if sys.platform == "linux" else 1024 * 1024)
    assert (done.stdout, done.returncode) == ("Much.\n", 0)
    assert "exit code: 0" in json.dumps(result)
    assert megabytes < 200


def test_binary_output_reaches_nobody_raw(program: Program) -> None:
    script = [
        call("execute_bash", {"command": "head -c 1000000 /dev/urandom; printf '\\033]0;owned\\007\\000\\233'"}),
        call("read_file", {"path": "noise.bin"}),
        say("Noise."),
    ]
    (program.cwd / "noise.bin").write_bytes(os.urandom(100_000) + b"\0\x1b]0;owned\x07")
    with serving(script) as server:
        own = talking_to(program, server)
        done = own.ask("go", "--yolo", "--output-format", "stream-json")
        shown = own.run("history", "--full")
    assert done.returncode == 0
    assert json_lines(done.stdout)[-1]["result"] == "Noise."
    assert {sign for sign in done.stdout + done.stderr + shown.stdout if sign < " " and sign not in "\n\t"} == set()


# Side by side


def test_several_prompts_in_one_folder_do_not_disturb_each_other(program: Program) -> None:
    def answer(body: dict[str, Any]) -> Answer:
        if body["messages"][-1]["role"] == "user":
            return call("create_file", {"path": "shared.txt", "content": "x"}, pause=0.01)
        words = json.dumps(body["messages"][1]["content"])
        return say(f"done {words.count('prompt')} {[n for n in '0123' if f'prompt {n}' in words]}")

    with serving(answer) as server:
        own = talking_to(program, server)
        running = [start(own, "-p", f"prompt {number}", "--yolo") for number in range(4)]
        outs = [one.communicate(timeout=60)[0] for one in running]
    assert outs == [f"done 1 {[str(number)]}\n" for number in range(4)]
    listed = json.loads(own.run("sessions", "list", "--json").stdout)
    assert sorted(info["title"] for info in listed) == [f"prompt {number}" for number in range(4)]
    assert [own.run("sessions", "verify", info["id"]).returncode for info in listed] == [0] * 4


def test_a_session_that_is_open_elsewhere_is_not_written_to(program: Program) -> None:
    with serving([say("First."), Answer(fault="hang"), say("In a copy.")]) as server:
        own = talking_to(program, server)
        own.ask("the first")
        running = start(own, "-c", "-p", "the second")
        wait_until(lambda: len(server.asked) == 2, "the second request")
        refused = own.ask("the third", "-c")
        copy = own.ask("the third", "-c", "--fork-session")
        running.terminate()
        running.communicate(timeout=30)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "is open in another mycode" in refused.stderr
    assert "--fork-session" in refused.stderr
    assert copy.stdout == "In a copy.\n"


# The terminal


@pytest.fixture
def chat(program: Program, terminals: list[Terminal]) -> Start:
    return chats(program, terminals)


@pytest.mark.parametrize(("ending", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("plain", [False, True])
def test_a_signal_ends_a_chat_with_its_code_and_gives_the_terminal_back(
    program: Program, chat: Start, tmp_path: Path, ending: signal.Signals, code: int, plain: bool
) -> None:
    command = f"sleep 1000 & echo $! > {tmp_path}/pid; wait"
    with serving([call("execute_bash", {"command": command}, text="I wait for it.")]) as server:
        terminal = chat(server, "--yolo", *(["--plain"] if plain else []))
        if not plain:
            ready(terminal)
        terminal.send("go on\r")
        wait_until(lambda: written(tmp_path / "pid"), "the command")
        os.kill(terminal.child.pid, ending)
        assert terminal.wait_end() == code
    assert terminal.modes() == terminal.before
    assert ("assistant", "I wait for it.") in kept(program)
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_signal_during_the_start_gives_the_terminal_back(chat: Start) -> None:
    with serving([say("hi")]) as server:
        terminal = chat(server)
        terminal.wait_for(">")
        os.kill(terminal.child.pid, signal.SIGTERM)
        assert terminal.wait_end() == 143
    assert terminal.modes() == terminal.before


def test_a_line_that_drops_ends_the_chat_and_all_is_saved(program: Program, chat: Start, tmp_path: Path) -> None:
    command = f"sleep 1000 & echo $! > {tmp_path}/pid; wait"
    with serving([call("execute_bash", {"command": command}, text="I wait for it.")]) as server:
        terminal = ready(chat(server, "--yolo"))
        terminal.send("go on\r")
        wait_until(lambda: written(tmp_path / "pid"), "the command")
        pid = terminal.child.pid
        terminal.child.ptyproc.fileobj.close()
        terminal.child.closed = terminal.child.ptyproc.closed = True
        wait_until(lambda: gone(pid), "the program to end")
    assert ("assistant", "I wait for it.") in kept(program)
    wait_until(lambda: gone(int((tmp_path / "pid").read_text())), "the command to end")


def test_a_resize_in_mid_stream_leaves_one_copy_of_everything(chat: Start) -> None:
    lines = "\n\n".join(f"paragraph number {number}" for number in range(30))
    with serving([say(f"{lines}\n\nThe end.", piece=20, pause=0.01)]) as server:
        terminal = ready(chat(server, columns=100))
        terminal.send("tell\r")
        for columns, rows, line in ((60, 20, 2), (120, 30, 8), (40, 12, 14), (100, 24, 20)):
            terminal.wait_for(f"paragraph number {line}")
            terminal.resize(columns, rows)
        terminal.wait_for("The end.")
        terminal.send("\x04")
        assert terminal.wait_end() == 0
    shown = [terminal.everything.count(f"paragraph number {number}\n") for number in range(30)]
    assert shown == [1] * 30


@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_a_terminal_that_cannot_draw_gets_no_control_sequence(chat: Start, term: str) -> None:
    with serving([call("list_files", {}), say("**All** done.")]) as server:
        terminal = chat(server, env={"TERM": term})
        terminal.send("hello\r")
        terminal.wait_for("done.")
        terminal.send("\x04")
        assert terminal.wait_end() == 0
    assert b"\x1b" not in terminal.raw
    assert terminal.modes() == terminal.before


def test_without_a_terminal_the_input_is_the_prompt(program: Program) -> None:
    with serving([say("**Fine** 漢字.")]) as server:
        done = talking_to(program, server).run(stdin="how are you?")
    assert (done.stdout, done.returncode) == ("**Fine** 漢字.\n", 0)
    assert "\x1b" not in done.stdout + done.stderr


def test_a_chat_whose_output_goes_to_a_file_draws_nothing(program: Program, tmp_path: Path) -> None:
    with serving([say("To the file.")]) as server:
        own = talking_to(program, server)
        command = f"exec {sys.executable} -P -m mycode > {tmp_path}/out 2>&1"
        terminal = Terminal(["/bin/sh", "-c", command], cwd=own.cwd, env=own.environment())
        terminal.send("hello\r")
        out = tmp_path / "out"
        wait_until(lambda: out.exists() and "To the file." in out.read_text(), "the answer")
        terminal.send("\x04")
        assert terminal.wait_end() == 0
        terminal.close()
    assert "\x1b" not in (tmp_path / "out").read_text()
    assert terminal.raw.count(b"\x1b") == 0
