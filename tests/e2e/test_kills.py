"""Killed at any moment, with -9: nothing that was told is lost, nothing is left behind, and it goes on.

MYCODE_KILLS is how many times a running turn is killed; the other stories are told a quarter as often.
"""

import json
import os
import random
import re
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.aftermath import acknowledged, kept, left_over, orphans, start, wait_ended
from tests.support.program import Program
from tests.support.script import Answer, Call, call, say
from tests.support.scripted_server import serving
from tests.support.terminal import Terminal

KILLS = int(os.environ.get("MYCODE_KILLS", "24"))
FEWER = max(3, KILLS // 4)
BODY = "0123456789abcdef" * 20_000


@pytest.fixture
def program(workspace: Path, tmp_path: Path) -> Program:
    (workspace / "big.txt").write_text(f"state A\n{BODY}\n")
    return Program(workspace, tmp_path / "home", env={"GIT_CONFIG_GLOBAL": "/dev/null"})


class Busy:
    """Four steps for each prompt: a command with a child, a new file, a change of a big one, the answer."""

    def __init__(self, output: int = 1) -> None:
        self.requests: list[list[dict[str, Any]]] = []
        self.summaries = 0
        self._output = output

    def __call__(self, body: dict[str, Any]) -> Answer:
        messages = body["messages"]
        if "tools" not in body:
            self.summaries += 1
            return say(json.dumps({"summary": f"Summary {self.summaries} of the work."}), piece=2, pause=0.002)
        self.requests.append(messages)
        last = max(place for place, message in enumerate(messages) if message["role"] == "user")
        step = sum(1 for message in messages[last:] if message["role"] == "assistant")
        mark = f"said-{len(self.requests)}"
        if step == 0:
            command = f"setsid sleep 1000 & sleep 1000 & yes {mark} | head -n {self._output}; sleep 0.05"
            return call("execute_bash", {"command": command}, text=mark, pause=0.002)
        if step == 1:
            create = Call("create_file", {"path": f"{mark}.txt", "content": mark})
            return Answer(text=mark, calls=(create, Call("read_file", {"path": "big.txt"})), pause=0.002)
        if step == 2:
            seen = re.findall(r"state ([AB])", str(messages[-1]["content"]))
            old = seen[-1] if seen else "A"
            edit = {"old": f"state {old}", "new": f"state {'B' if old == 'A' else 'A'}"}
            return call("edit_file", {"path": "big.txt", "edits": [edit]}, text=mark, pause=0.002)
        return say(f"{mark} and done", pause=0.002)


def half_done(program: Program) -> list[str]:
    """What in the workspace is neither as it was nor as it should become, and what does not belong there."""
    wrong = []
    for path in sorted(program.cwd.iterdir()):
        text = path.read_text()
        whole = text[:7] in ("state A", "state B") and text[7:] == f"\n{BODY}\n" if path.name == "big.txt" else False
        if not whole and not (re.fullmatch(r"said-\d+\.txt", path.name) and text == path.stem):
            wrong.append(f"{path.name}: {text[:60]!r} ({len(text)} characters)")
    return wrong


def killed_again_and_again(program: Program, script: Busy, folder: Path, times: int, *options: str) -> None:
    """Each time another turn of the same session, killed at a moment of chance; then every promise is checked."""
    chance = random.Random(4711)
    with serving(script) as server:
        own = replace(program, model_url=server.url)
        began = time.monotonic()
        first = own.ask("the first", "--yolo", *options)
        assert first.returncode == 0, first.stderr
        whole = time.monotonic() - began
        for turn in range(times):
            out = folder / f"out-{turn}"
            with out.open("wb") as file:
                more = ("--yolo", "--output-format", "stream-json", *options)
                running = start(own, "-c", "-p", f"go on {turn}", *more, stdout=file)
                try:
                    running.wait(chance.uniform(0.1, 1.1) * whole)
                except subprocess.TimeoutExpired:
                    running.kill()
                _, said = running.communicate()
            assert running.returncode in (0, -signal.SIGKILL), said
            told = acknowledged(out.read_text())
            stored = kept(own)
            assert [one for one in told if one not in stored] == [], f"lost in turn {turn}"
            wait_ended(own)
            assert (half_done(own), left_over(own)) == ([], []), f"after turn {turn}"
        last = own.ask("the last", "-c", "--yolo", *options)
    assert (last.returncode, last.stdout.endswith("and done\n")) == (0, True), last.stderr
    assert [fault for request in script.requests for fault in orphans(request)] == []
    whole_session = own.run("sessions", "verify", "the first")
    assert (whole_session.returncode, whole_session.stderr) == (0, "Whole and unaltered.\n")


@pytest.mark.timeout(120 + 6 * KILLS)
def test_killed_at_any_moment_nothing_that_was_told_is_lost_and_it_goes_on(program: Program, tmp_path: Path) -> None:
    killed_again_and_again(program, Busy(), tmp_path, KILLS)


@pytest.mark.timeout(120 + 6 * KILLS)
@pytest.mark.parametrize("strategy", ["llm", "rules"])
def test_killed_while_the_past_is_folded(program: Program, tmp_path: Path, strategy: str) -> None:
    script = Busy(output=600)
    # Without masking, which might free enough by itself, so few turns fill the window for certain.
    settings = (f"context.summary.strategy={strategy}", "context.masking.enabled=false")
    options = ("--context-window", "9000", *(part for setting in settings for part in ("--set", setting)))
    killed_again_and_again(program, script, tmp_path, FEWER, *options)
    listed = program.run("history", "--full")
    assert "summary" in listed.stdout.lower()
    assert (script.summaries > 0) is (strategy == "llm")


@pytest.mark.timeout(120 + 6 * KILLS)
def test_killed_while_files_are_recorded_or_taken_back(program: Program) -> None:
    """The chat is killed at a moment of chance between a prompt that changes files and the end of going back."""
    chance = random.Random(4711)
    script = Busy()
    with serving(script) as server:
        own = replace(program, model_url=server.url)
        for turn in range(FEWER):
            terminal = Terminal.python(
                *("-P", "-m", "mycode", "--yolo", *(["-c"] if turn else [])), cwd=own.cwd, env=own.environment()
            )
            terminal.wait_for("openai/scripted")
            terminal.send(f"go on {turn}\r")
            if turn % 2:
                # While the first change of the turn is awaited, the files are recorded.
                terminal.wait_for(f"> go on {turn}")
            else:
                terminal.wait_for("and done")
                terminal.wait_gone("interrupts")
                terminal.send("/rewind 1 --files --conversation --force\r")
                terminal.wait_for("> /rewind")
            time.sleep(chance.uniform(0.0, 0.6))
            os.kill(terminal.child.pid, signal.SIGKILL)
            terminal.close()
            wait_ended(own)
            assert (half_done(own), left_over(own)) == ([], []), f"after turn {turn}"
        terminal = Terminal.python("-P", "-m", "mycode", "--yolo", "-c", cwd=own.cwd, env=own.environment())
        terminal.wait_for("openai/scripted")
        before = (own.cwd / "big.txt").read_text()
        terminal.send("the last\r")
        terminal.wait_for("> the last")
        terminal.wait(lambda seen: "and done" in seen.everything.rpartition("> the last")[2], "the answer")
        terminal.wait_gone("interrupts")
        assert (own.cwd / "big.txt").read_text() != before
        terminal.send("/rewind 1 --files\r")
        terminal.wait(lambda seen: "Files taken back" in seen.everything.rpartition("/rewind 1 --files")[2], "the end")
        assert (own.cwd / "big.txt").read_text() == before
        terminal.close()
    assert [fault for request in script.requests for fault in orphans(request)] == []
