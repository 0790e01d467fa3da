"""Originals purged by the real program, from the shell and by setting from a chat: not a byte of them stays."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.chats import Start, chats, ready
from tests.support.chats import command as chats_command
from tests.support.program import Program, json_lines
from tests.support.script import Answer, call, say
from tests.support.scripted_server import serving
from tests.support.terminal import Terminal

MARK = "a quiet harbour under amber lanterns"
SETTINGS = ("--set", "context.summary.strategy=rules", "--set", "context.keep.recent_messages=2")
PURGE = (*SETTINGS, "--set", "context.originals.policy=purge")


def answering(body: dict[str, Any]) -> Answer:
    """Tells at length; the second answer holds the words that must be gone one day. Looks up m4 when asked to."""
    said = [message["content"] for message in body["messages"] if message["role"] == "user"]
    if body["messages"][-1]["role"] == "tool":
        return say("Looked up: " + str(body["messages"][-1]["content"]))
    if "look up" in str(said[-1]):
        return call("history_expand", {"handle": "m4"})
    number = max(int(found) for found in re.findall(r"tale (\d+)", json.dumps(said)))
    lines = [f"In part {part} of the tale somebody walked on and nothing much happened." for part in range(40)]
    if number == 2:
        lines[20] = f"Then there was {MARK} and nobody spoke."
    return say("\n".join(lines) + f"\nEND-{number}.", piece=500)


@pytest.fixture
def program(workspace: Path, tmp_path: Path) -> Program:
    return Program(workspace, tmp_path / "home")


@pytest.fixture
def chat(program: Program, terminals: list[Terminal]) -> Start:
    start = chats(program, terminals, columns=100, rows=60)
    return lambda server, *options: ready(start(server, *options))


def ask(terminal: Terminal, *numbers: int) -> None:
    for number in numbers:
        terminal.send(f"tell me tale {number}\r")
        terminal.wait_for(f"END-{number}.")
        terminal.wait_gone("Esc interrupts")


def command(terminal: Terminal, line: str, shows: str) -> str:
    """The same words on one line, however wide the terminal is."""
    return " ".join(chats_command(terminal, line, shows).split())


def leave(terminal: Terminal) -> None:
    terminal.send("\x04")
    assert terminal.wait_end() == 0


def kept(program: Program) -> bytes:
    """All bytes below the data folder."""
    return b"".join(file.read_bytes() for file in (program.home / "mycode").rglob("*") if file.is_file())


def the_session(program: Program) -> str:
    [info] = json.loads(program.run("sessions", "list", "--json").stdout)
    return str(info["id"])


def summarized(chat: Start, *options: str) -> None:
    """A session of eight tales, summarized."""
    with serving(answering) as server:
        terminal = chat(server, *SETTINGS, *options)
        ask(terminal, *range(1, 9))
        command(terminal, "/summarize", "╰")
        leave(terminal)


def test_by_setting_the_originals_go_when_the_chat_is_left_and_undo_works_until_then(
    program: Program, chat: Start
) -> None:
    with serving(answering) as server:
        terminal = chat(server, *PURGE)
        ask(terminal, *range(1, 9))
        told = command(terminal, "/summarize", "brings them back")
        assert "The originals under this summary will be purged" in told
        command(terminal, "/summarize --undo", "Undone: the last summary")
        command(terminal, "/summarize", "brings them back")
        assert MARK in command(terminal, "/history --full --grep harbour", "harbour under")
        assert MARK.encode() in kept(program)
        leave(terminal)
    left = kept(program)
    assert MARK.encode() not in left
    # The summary may quote a prompt; the lines typed before hold only those that were not purged.
    assert (b"+tell me tale 2" in left, b"+tell me tale 8" in left) == (False, True)
    session = the_session(program)
    done = program.run("sessions", "verify", session)
    assert (done.returncode, done.stderr) == (0, "Whole and unaltered.\n")
    with serving(answering) as server:
        terminal = chat(server, *PURGE, "-c")
        command(terminal, "/summarize --undo", "cannot be undone: originals under it were purged")
        assert "; 14 characters, sha256 " in command(terminal, "/expand m4", "summary s2 stands for it")
        assert "by the setting context.originals: m2-" in command(terminal, "/history --audit", "messages,")
        assert "characters, sha256" in command(terminal, "/history --full", "purged on")
        ask(terminal, 9)
        terminal.send("please look up what you said then\r")
        terminal.wait_for("Looked up: purged on")
        terminal.wait_gone("Esc interrupts")
        leave(terminal)
    assert program.run("sessions", "verify", session).returncode == 0


def test_by_hand_it_is_said_asked_done_and_done_only_once(program: Program, chat: Start) -> None:
    summarized(chat)
    session = the_session(program)
    looked = program.run("sessions", "purge", session[:6], "--dry-run")
    assert looked.returncode == 0
    assert re.search(r"goes: \d+ messages \([\d,]+ characters\)\n +can no longer be undone: s1\n", looked.stdout)
    assert MARK.encode() in kept(program)
    unasked = program.run("sessions", "purge", session)
    assert unasked.returncode == 2
    assert "cannot be brought back; say --yes" in unasked.stderr
    young = program.run("sessions", "purge", "--older-than", "1", "--yes")
    assert (young.returncode, "nothing to purge" in young.stderr) == (0, True)
    assert MARK.encode() in kept(program)
    done = program.run("sessions", "purge", "--yes")
    assert done.returncode == 0
    assert re.search(r"Purged \d+ messages \([\d,]+ characters\)\.", done.stderr)
    assert MARK.encode() not in kept(program)
    again = program.run("sessions", "purge", "--yes")
    assert (again.returncode, "nothing to purge" in again.stderr) == (0, True)
    unknown = program.run("sessions", "purge", "nobody", "--yes")
    assert (unknown.returncode, "There is no session 'nobody'" in unknown.stderr) == (1, True)
    assert program.run("sessions", "verify", session).returncode == 0
    shown = program.run("history", session, "--full").stdout
    assert "purged on" in shown
    assert "tell me tale 8" in shown
    assert MARK not in shown


def test_a_purged_session_goes_to_another_machine_and_back_into_a_conversation(
    program: Program, chat: Start, tmp_path: Path
) -> None:
    summarized(chat)
    session = the_session(program)
    assert program.run("sessions", "purge", session, "--yes").returncode == 0
    exported = program.run("sessions", "export", session).stdout
    assert sum(line.get("body", {}).get("kind") == "purged" for line in json_lines(exported)) >= 5
    (tmp_path / "talk.jsonl").write_text(exported, encoding="utf-8")
    other = Program(program.cwd, tmp_path / "other")
    assert other.run("sessions", "import", str(tmp_path / "talk.jsonl")).stdout == f"{session}\n"
    assert other.run("sessions", "verify", session).returncode == 0
    assert other.run("sessions", "export", session).stdout.split("\n")[1:] == exported.split("\n")[1:]
    with serving(answering) as server:
        done = replace(other, model_url=server.url).ask("tell me tale 9", "-r", session)
    assert done.returncode == 0, done.stderr
    assert "END-9." in done.stdout
    page = other.run("sessions", "export", session, "--format", "md").stdout
    assert "*purged on " in page


def test_a_person_who_says_no_keeps_everything(program: Program, chat: Start) -> None:
    summarized(chat)
    terminal = Terminal.python(
        "-P", "-m", "mycode", "sessions", "purge", cwd=program.cwd, env=program.environment(), columns=100, rows=30
    )
    terminal.wait_for("cannot be brought back. [y/N]")
    terminal.send("n\r")
    assert terminal.wait_end() == 130
    terminal.close()
    assert MARK.encode() in kept(program)


def test_a_session_that_is_open_is_left_alone_and_said(program: Program, chat: Start) -> None:
    with serving(answering) as server:
        terminal = chat(server, *SETTINGS)
        ask(terminal, *range(1, 9))
        command(terminal, "/summarize", "╰")
        done = program.run("sessions", "purge", "--yes")
        assert done.returncode == 1
        assert "is open in another mycode" in done.stderr
        assert MARK in command(terminal, "/history --full --grep harbour", "harbour under")
        leave(terminal)
