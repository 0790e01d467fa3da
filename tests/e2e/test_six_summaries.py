"""A long conversation in a real terminal, folded six times for six reasons: the right panels, and nothing is lost."""

from __future__ import annotations

import json
import os
import random
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mycode.core.summaries import SummaryRecord
from mycode.core.usage import Usage
from mycode.llm.tokens import Tokens
from mycode.session.archive import SessionArchive
from mycode.session.store import Store
from tests.support.aftermath import orphans
from tests.support.program import Program, json_lines
from tests.support.script import Answer, call, fail, say
from tests.support.scripted_server import serving
from tests.support.terminal import Terminal

WINDOW = 12_000
WORDS = ("parser", "token", "session", "cookie", "header", "expiry", "refresh", "middleware", "scope", "audit", "log")
HUGE = "dense.txt"


class Model:
    """Answers at length, calls a tool when it is asked for one, writes summaries, and counts as a provider would."""

    def __init__(self) -> None:
        self.tokens = Tokens()
        self.tokens.load()
        self.requests: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.current = ""
        self.told: list[str] = []
        self.summaries = 0
        self.overflowed = False

    def __call__(self, body: dict[str, Any]) -> Answer:
        size = self.size(body)
        if "tools" not in body:
            self.summaries += 1
            told = {"summary": f"So far the talk was about the parser and auth. Told {self.summaries} times."}
            return say(json.dumps(told), usage=Usage(size, 40))
        self.requests.append(body)
        self.asked.append(self.current)
        messages = body["messages"]
        last = messages[-1]
        asked = self.current
        if last["role"] != "tool":
            if "overflow" in asked and not self.overflowed:
                self.overflowed = True
                limit = size - 500
                sentence = (
                    f"This model's maximum context length is {limit} tokens. However, you requested {size} tokens."
                )
                return fail(400, sentence)
            if "huge" in asked:
                return call("read_file", {"path": HUGE}, text="I read it.", usage=Usage(size, 20))
            if "hang" in asked:
                return call("execute_bash", {"command": "echo begun; exec sleep 1000"}, usage=Usage(size, 20))
        chance = random.Random(len(self.requests))
        text = " ".join(f"{chance.choice(WORDS)}-{chance.randrange(1000)}" for _ in range(130))
        self.told.append(f"{text} END{len(self.told) + 1}.")
        return say(self.told[-1], piece=400, usage=Usage(size, self.tokens.count(self.told[-1])))

    def size(self, body: dict[str, Any]) -> int:
        """Tokens of a request, with a few for each message."""
        messages = body["messages"]
        texts = [message.get("content") or "" for message in messages]
        calls = [json.dumps(message["tool_calls"]) for message in messages if message.get("tool_calls")]
        tools = json.dumps(body["tools"]) if "tools" in body else ""
        return sum(self.tokens.count(text) for text in (*texts, *calls, tools)) + 4 * len(messages)


def questions(body: dict[str, Any]) -> list[str]:
    """What the person asked, as far as a request shows it word for word."""
    said = "\n".join(message["content"] for message in body["messages"] if message["role"] == "user")
    return re.findall(r"^ask \d+ .*$", said, re.MULTILINE)


class Talk:
    """A person at the terminal: asks and waits for the end of the answer."""

    def __init__(self, program: Program, model: Model, *options: str) -> None:
        self.model = model
        self.asked: list[str] = []
        self._program = program
        self.start(*options)

    def start(self, *options: str) -> None:
        arguments = ("-P", "-m", "mycode", "--yolo", "--context-window", str(WINDOW), *options)
        self.terminal = Terminal.python(
            *arguments, cwd=self._program.cwd, env=self._program.environment(), columns=100, rows=50
        )
        self.terminal.wait_for("openai/scripted")

    def ask(self, text: str) -> str:
        """What stands on the screen below the question when its answer is there."""
        number = len(self.model.told) + 1
        question = self.put(text)
        self.terminal.wait_for(f"END{number}.")
        self.idle()
        return self.terminal.everything.rpartition(question)[2]

    def put(self, text: str) -> str:
        question = f"ask {len(self.asked) + 1} {text}"
        self.asked.append(question)
        self.model.current = question
        self.terminal.send(question + "\r")
        return question

    def command(self, line: str, shows: str) -> str:
        """What the command shows, from its own line on."""
        echo = f"> {line}\n"
        before = self.terminal.everything.count(echo)
        self.terminal.send(line + "\r")

        def shown(seen: Terminal) -> bool:
            _, *parts = seen.everything.split(echo)
            return len(parts) > before and shows in parts[-1]

        self.terminal.wait(shown, f"{shows!r} of {line}")
        self.idle()
        return self.terminal.everything.rpartition(echo)[2]

    def idle(self) -> None:
        """Until the program waits for a line again."""
        self.terminal.wait_gone("Esc interrupts")


@pytest.fixture
def model() -> Model:
    return Model()


def test_six_summaries_in_one_terminal_lose_nothing(workspace: Path, tmp_path: Path, model: Model) -> None:
    chance = random.Random(4711)
    dense = ["".join(chr(chance.randrange(0xAC00, 0xD7A3)) for _ in range(60)) for _ in range(400)]
    (workspace / HUGE).write_text("\n".join(dense), encoding="utf-8")
    with serving(model) as server:
        program = Program(workspace, tmp_path / "home", server.url)
        talk = Talk(program, model)

        # By hand.
        for _ in range(8):
            talk.ask("about the parser")
        panel = talk.command("/summarize", "╰")
        assert_panel(
            panel, "Summarizing 8 messages …", "Messages: 16 → 8 (50 % reduction)", "Stands for: m1-m11, as s1"
        )
        assert_numbers_agree(talk, panel)

        # By hand with a focus, and taken back.
        for _ in range(4):
            talk.ask("about auth")
        unfolded = model.requests[-1]["messages"]
        panel = talk.command("/summarize auth", "╰")
        assert_panel(panel, "as s2", "Focus: auth")
        assert_numbers_agree(talk, panel)
        assert "Undone: the last summary; the view is as it was before it." in talk.command(
            "/summarize --undo", "Undone"
        )
        talk.ask("go on")
        again = model.requests[-1]["messages"]
        assert json.dumps(again[: len(unfolded)]) == json.dumps(unfolded)
        assert [message["role"] for message in again[len(unfolded) :]] == ["assistant", "user"]
        assert [message["content"] for message in again[len(unfolded) :]] == [f"{model.told[-2]}", talk.asked[-1]]

        # By itself, at the ratio.
        shown = ""
        while "(ratio)" not in shown:
            assert len(talk.asked) < 40
            shown = talk.ask("more and more")
        assert_line(shown, "ratio")
        assert_numbers_agree(talk)

        # By itself, as a tool result fills more than the window.
        assert_line(talk.ask("read the huge file"), "emergency")

        # By itself, as the provider finds the request too long.
        for _ in range(9):
            talk.ask("and more")
        shown = talk.ask("overflow now")
        assert "! The request was longer than the model takes" in shown
        assert_line(shown, "overflow")
        assert_numbers_agree(talk)

        # After a sudden end.
        talk.put("hang there")
        talk.terminal.wait_for("begun")
        os.kill(talk.terminal.child.pid, signal.SIGKILL)
        talk.terminal.wait_end()
        talk.start("-c")
        talk.terminal.wait_for("Going on with “ask 1 about the parser”")
        for _ in range(8):
            talk.ask("after the end")
        panel = talk.command("/summarize", "╰")
        assert_panel(panel, "as s6")
        assert_numbers_agree(talk, panel)
        talk.ask("the last one")
        talk.terminal.send("\x04")
        assert talk.terminal.wait_end() == 0

    assert [record["trigger"] for record in summaries(program)] == [
        "manual",
        "manual",
        "ratio",
        "emergency",
        "overflow",
        "manual",
    ]
    assert_sound(model)
    assert_nothing_lost(program, talk, dense)
    assert_expanded(program, model)


def assert_panel(shown: str, *texts: str) -> None:
    """One whole panel, which says this."""
    assert shown.count("Session Summary") == 1
    assert shown.index("Summarizing") < shown.index("╭─ Session Summary") < shown.index("╰")
    assert [text for text in (*texts, "Tokens saved: ~", "By hybrid", "Verified: ") if text not in shown] == []


def assert_line(shown: str, reason: str) -> None:
    """It is told before and after, once, and the answer comes behind."""
    before, after = shown.index(f"({reason}) …"), shown.index("are summarized now")
    assert before < after < shown.index(" END")
    assert shown.count("are summarized now") == 1
    assert "There is nothing to summarize" not in shown


def assert_numbers_agree(talk: Talk, panel: str = "") -> None:
    """Toolbar, `/context` and the panel of the summary tell one size."""
    shown = talk.command("/context", "╰")
    headline = re.search(r"(≈?)([\d.]+k) of [\d.]+k(?: \(a guess\))? tokens, ≈?(\d+) %", shown)
    assert headline is not None
    toolbar = re.findall(r"context ≈?(\d+) %", shown)[-1]
    assert headline[3] == toolbar
    if panel:
        saved = re.search(r"\(([\d.]+k?) → ([\d.]+k?)\)", panel)
        assert saved is not None
        assert saved[2] == headline[2]


def assert_sound(model: Model) -> None:
    """Every request was one that a provider takes, and fitted."""
    for body, asked in zip(model.requests, model.asked, strict=True):
        roles = [message["role"] for message in body["messages"]]
        assert (roles[0], roles.count("system")) == ("system", 1)
        assert orphans(body["messages"]) == []
        assert questions(body)[-1] == asked
        assert model.size(body) + (body.get("max_completion_tokens") or body.get("max_tokens") or 0) <= WINDOW


def assert_nothing_lost(program: Program, talk: Talk, dense: Sequence[str]) -> None:
    bodies = [line["body"] for line in json_lines(program.run("history", "--full", "--json").stdout)]
    said = {kind: [body["text"] for body in bodies if body["kind"] == kind] for kind in ("user", "assistant", "tool")}
    assert said["user"] == talk.asked
    assert [text for text in said["assistant"] if text.endswith(".") and "END" in text] == talk.model.told
    results = "\n".join(said["tool"])
    read = [line for line in dense if line in results]
    assert len(read) >= 50  # as many as one result may hold when it is read
    assert read == list(dense[: len(read)])
    verified = program.run("sessions", "verify", "ask 1 about the parser")
    assert (verified.returncode, verified.stderr) == (0, "Whole and unaltered.\n")


def assert_expanded(program: Program, model: Model) -> None:
    """A handle gives the original, byte for byte; on the screen a tab is as wide as it is."""
    lines = json_lines(program.run("history", "--full", "--json").stdout)
    originals = {f"m{line['seq']}": line["body"]["text"] for line in lines if len(line["body"]["text"]) > 500}
    chosen = [*list(originals)[:2], max(originals, key=lambda handle: len(originals[handle]))]
    terminal = Terminal.python(
        "-P", "-m", "mycode", "--plain", "-c", cwd=program.cwd, env=program.environment(), columns=200, rows=50
    )
    for handle in chosen:
        terminal.send(f"/expand {handle}\n")
        text = originals[handle].expandtabs(8).replace("\n", "\r\n").encode()
        terminal.wait(lambda seen, text=text: text in seen.raw, f"the original of {handle}")  # type: ignore[misc]
    terminal.send("/exit\n")
    assert terminal.wait_end() == 0
    terminal.close()
    store = Store(program.home / "mycode" / "sessions")
    archive = SessionArchive(store, json.loads(program.run("sessions", "list", "--json").stdout)[0]["id"])
    assert [archive.expand(handle) for handle in originals] == list(originals.values())
    store.close()


def summaries(program: Program) -> list[dict[str, Any]]:
    """Every record of a summary, oldest first."""
    store = Store(program.home / "mycode" / "sessions")
    latest = store.latest()
    assert latest is not None
    bodies = [entry.body for entry in store.log(latest.id).read(1) if isinstance(entry.body, SummaryRecord)]
    store.close()
    return [msgspec.to_builtins(body) for body in bodies]
