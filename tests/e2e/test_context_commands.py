"""The commands that show and change what the model sees, in a real terminal against the real program."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.chats import Start, chats, command, ready
from tests.support.program import Program
from tests.support.script import Answer, call, say
from tests.support.scripted_server import ScriptedServer, serving
from tests.support.terminal import Terminal


@pytest.fixture
def program(workspace: Path, tmp_path: Path) -> Program:
    return Program(workspace, tmp_path / "home")


@pytest.fixture
def chat(program: Program, terminals: list[Terminal]) -> Start:
    start = chats(program, terminals, columns=100, rows=60)

    def starting(server: ScriptedServer, *options: str) -> Terminal:
        terminal = start(server, *options)
        return terminal if "--plain" in options else ready(terminal)

    return starting


def answering(body: dict[str, Any]) -> Answer:
    """Names what it was asked, at some length; summaries are told, too."""
    if "tools" not in body:
        return say(json.dumps({"summary": "They talked about fruit."}))
    asked = max(re.findall(r"about (fruit-\d+)", json.dumps(body["messages"])), key=lambda name: int(name[6:]))
    return say(f"About {asked}: " + " ".join(f"{asked}-{n}" for n in range(60)) + f" END-{asked}.", piece=400)


def ask(terminal: Terminal, *numbers: int) -> None:
    for number in numbers:
        terminal.send(f"tell me about fruit-{number}\r")
        terminal.wait_for(f"END-fruit-{number}.")
        terminal.wait_gone("Esc interrupts")


def sent(server: ScriptedServer) -> list[Any]:
    """What was said in the newest request, without the system prompt."""
    talks = [seen.body["messages"] for seen in server.asked if "tools" in seen.body]
    return [message["content"] for message in talks[-1][1:]]


def test_context_shows_bar_categories_triggers_and_numbered_items(chat: Start) -> None:
    with serving(answering) as server:
        terminal = chat(server, "--context-window", "12000")
        ask(terminal, 1, 2)
        shown = command(terminal, "/context", "╰")
    for text in (
        "of 12k tokens",
        "SSS",
        "TTT",
        "system",
        "tool",
        "free",
        "Summarizing starts at",
        "ratio: ",
        "of 80 %",
    ):
        assert text in shown
    assert re.search(r"m1 +you +\d+ +tell me about fruit-1", shown)


def test_messages_are_left_out_shortened_restored_and_pinned(chat: Start) -> None:
    with serving(answering) as server:
        terminal = chat(server)
        ask(terminal, 1, 2, 3)
        whole = sent(server)
        command(terminal, "/context drop m2", "Left out: m2.")
        ask(terminal, 4)
        dropped = sent(server)
        command(terminal, "/context restore m2", "Restored: m2.")
        command(terminal, "/context pin m1", "Pinned: tell me about fruit-1")
        ask(terminal, 5)
        restored = sent(server)
    assert "fruit-1-30" in whole[1]
    assert "fruit-1-30" not in json.dumps(dropped)
    assert "m2" in json.dumps(dropped[:3])
    assert restored[: len(whole)] == whole
    assert "tell me about fruit-1" in json.dumps(restored[-2:])


def test_each_undo_says_which_change_it_takes_back_and_the_last_one_that_there_is_none_left(chat: Start) -> None:
    with serving(answering) as server:
        terminal = chat(server)
        ask(terminal, 1, 2)
        whole = sent(server)
        command(terminal, "/context restore m2", "m2 is shown whole already.")
        command(terminal, "/context drop m2", "Left out: m2.")
        command(terminal, "/context drop m2", "m2 is left out already.")
        command(terminal, "/context restore m2", "Restored: m2.")
        command(terminal, "/summarize --undo", "Undone: restoring m2; the view is as it was before it.")
        ask(terminal, 3)
        dropped = sent(server)
        command(terminal, "/summarize --undo", "Undone: leaving out m2; the view is as it was before it.")
        ask(terminal, 4)
        again = sent(server)
        command(terminal, "/summarize --undo", "There is nothing to undo")
    assert "fruit-1-30" not in json.dumps(dropped)
    assert again[: len(whole)] == whole


def test_a_shortened_message_and_an_undo_survive_a_restart(chat: Start) -> None:
    with serving(answering) as server:
        terminal = chat(server)
        ask(terminal, 1, 2)
        whole = sent(server)
        command(terminal, "/context shrink m2", "Shortened: m2.")
        terminal.send("\x04")
        assert terminal.wait_end() == 0
        terminal = chat(server, "-c")
        ask(terminal, 3)
        short = sent(server)
        command(terminal, "/summarize --undo", "Undone")
        terminal.send("\x04")
        assert terminal.wait_end() == 0
        terminal = chat(server, "-c")
        ask(terminal, 4)
        again = sent(server)
    assert "fruit-1-30" not in json.dumps(short)
    assert again[: len(whole)] == whole


def test_raw_is_the_exact_next_request_and_json_the_usage(chat: Start) -> None:
    with serving(answering) as server:
        terminal = chat(server, "--plain")
        terminal.send("tell me about fruit-1\r")
        terminal.wait_for("END-fruit-1.")
        start = len(terminal.raw)
        terminal.send("/context --raw\r")
        terminal.wait(lambda seen: b"\r\n}\r\n" in seen.raw[start:], "the request")
        raw = json.loads(
            re.findall(rb"^\{.*?^\}", terminal.raw[start:].replace(b"\r", b""), re.MULTILINE | re.DOTALL)[0]
        )
        start = len(terminal.raw)
        terminal.send("/context --json\r")
        terminal.wait(lambda seen: b"\r\n}\r\n" in seen.raw[start:], "the usage")
        usage = json.loads(
            re.findall(rb"^\{.*?^\}", terminal.raw[start:].replace(b"\r", b""), re.MULTILINE | re.DOTALL)[0]
        )
        terminal.send("tell me about fruit-2\r")
        terminal.wait_for("END-fruit-2.")
        body = server.asked[-1].body
    assert raw["system"] == body["messages"][0]["content"]
    assert [message["text"] for message in raw["messages"]] == [m["content"] for m in body["messages"][1:-1]]
    assert [tool["name"] for tool in raw["tools"]] == [tool["function"]["name"] for tool in body["tools"]]
    assert sum(category["tokens"] for category in usage["categories"]) == pytest.approx(usage["tokens"], abs=10)


def test_pins_come_and_go_and_are_shown(chat: Start) -> None:
    with serving(answering) as server:
        terminal = chat(server)
        command(terminal, "/pin never eat the plums", "Pinned: never eat the plums")
        ask(terminal, 1)
        pinned = json.dumps(sent(server))
        assert "1. never eat the plums" in command(terminal, "/pin", "1.")
        command(terminal, "/unpin 1", "Unpinned: never eat the plums")
        ask(terminal, 2)
        unpinned = json.dumps(sent(server))
    assert ("never eat the plums" in pinned, "never eat the plums" in unpinned) == (True, False)


def test_summaries_history_and_expand_show_what_was_folded(chat: Start) -> None:
    with serving(answering) as server:
        terminal = chat(server)
        ask(terminal, *range(1, 8))
        command(terminal, "/summarize", "╰")
        assert "s1: messages m1-" in command(terminal, "/summaries", "╰")
        assert "s1: messages m1-" in command(terminal, "/history --summaries", "╰")
        assert "summary of m1-" in command(terminal, "/history --audit", "summary of")
        assert "[Summary 1] Messages 1-" in command(terminal, "/history -n 2", "[Recent]")
        assert "fruit-1-30" in command(terminal, "/expand m2", "END-fruit-1.")
        terminal.send("\x04")
        assert terminal.wait_end() == 0


def counting(body: dict[str, Any]) -> Answer:
    """Counts up by a command when it is asked to."""
    if body["messages"][-1]["role"] == "tool":
        return say("END-of-counting.")
    if "count up" in json.dumps(body["messages"][-1]):
        return call("execute_bash", {"command": "seq -s, 1 900"})
    return answering(body)


def test_a_summary_and_an_output_kept_whole_are_shown_by_their_handles(chat: Start) -> None:
    with serving(counting) as server:
        terminal = chat(server, "--yolo", "--set", "tools.output_limit=1000", "--set", "context.summary.strategy=rules")
        terminal.send("count up\r")
        terminal.wait_for("END-of-counting.")
        terminal.wait_gone("Esc interrupts")
        results = [m["content"] for m in server.asked[-1].body["messages"] if m["role"] == "tool"]
        whole = "".join(command(terminal, "/expand t1", "899,900").split())
        ask(terminal, *range(1, 8))
        command(terminal, "/summarize", "╰")
        summary = command(terminal, "/expand s1", "count up")
        unknown = command(terminal, "/expand t9", "t9")
    assert "t1" in results[0]
    assert "449,450,451" not in results[0]
    assert ",".join(str(number) for number in range(1, 901)) in whole
    assert "fruit-1" in summary
    assert "There is no" in unknown


FULL = ("--context-window", "6000", "--set", "context.summary.strategy=rules")


@pytest.mark.parametrize("answer", ["1", "2"])
def test_with_automatic_summaries_off_the_person_is_asked_at_the_limit(chat: Start, answer: str) -> None:
    with serving(answering) as server:
        terminal = chat(server, *FULL, "--set", "context.auto.enabled=false")
        number = 0
        while "Summarize now?" not in terminal.everything:
            number += 1
            assert number < 30
            terminal.send(f"tell me about fruit-{number}\r")
            either = (f"END-fruit-{number}.", "Summarize now?")
            terminal.wait(lambda seen, either=either: any(text in seen.everything for text in either), "an answer")  # type: ignore[misc]  # a default in a lambda
        assert "Summarizing" not in terminal.everything
        terminal.wait_for("A number, or your own words")
        terminal.send(f"{answer}\r")
        terminal.wait_for(f"END-fruit-{number}.")
        told = " ".join(terminal.everything.split())
        assert ("are summarized now" in told, "/summarize makes room" in told) == (answer == "1", answer == "2")


def test_a_key_puts_an_automatic_summary_off(chat: Start) -> None:
    with serving(answering) as server:
        early = ("--set", "context.auto.reset_ratio=0.4", "--set", "context.auto.trigger_ratio=0.6")
        terminal = chat(server, *FULL, *early, "--set", "context.auto.grace_seconds=30")
        number = 0
        while "Summarizing" not in terminal.everything:
            number += 1
            assert number < 30
            terminal.send(f"tell me about fruit-{number}\r")
            either = (f"END-fruit-{number}.", "puts it off")
            terminal.wait(lambda seen, either=either: any(text in seen.everything for text in either), "an answer")  # type: ignore[misc]  # a default in a lambda
        terminal.wait_for("Esc puts it off")
        terminal.send("\x1b")
        terminal.wait_for("The summary is put off for now")
        terminal.wait_for(f"END-fruit-{number}.")
        assert "are summarized now" not in terminal.everything
        terminal.wait_gone("Esc interrupts")
        assert "s1" in command(terminal, "/summarize", "╰")
