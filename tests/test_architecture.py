"""Who may import whom, and what may be loaded before it is needed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.script import say
from tests.support.scripted_server import serving
from tests.support.terminal import Terminal

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ("litellm", "tiktoken", "openai", "pydantic", "httpx", "prompt_toolkit", "rich", "tree_sitter", "typer")
LOOK = """\
import atexit, json, sys
listing = sys.argv[1]
@atexit.register
def tell():
    with open(listing, "w") as file:
        json.dump(sorted(sys.modules), file)
sys.argv = ["mycode", *sys.argv[2:]]
from mycode.__main__ import main
main()
"""


def _loaded_by(folder: Path, *arguments: str, expect: int = 0, **env: str) -> set[str]:
    """Names of all modules that one run of the program had loaded when it ended."""
    listing = folder / "modules.json"
    world = {"PATH": os.environ["PATH"], "HOME": str(folder), "MYCODE_HOME": str(folder / "home"), **env}
    done = subprocess.run(
        [sys.executable, "-P", "-c", LOOK, str(listing), *arguments],
        cwd=folder,
        env=world,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == expect, done.stderr
    return set(json.loads(listing.read_text(encoding="utf-8")))


def _heavy(loaded: set[str]) -> set[str]:
    return {name for name in HEAVY if name in loaded}


def test_the_import_contracts_hold() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [str(program), "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


def test_the_version_loads_nothing_but_the_package(workspace: Path) -> None:
    ours = {name for name in _loaded_by(workspace, "--version") if name.split(".")[0] == "mycode"}
    assert ours == {"mycode", "mycode.__main__"}


def test_help_loads_the_parser_and_no_room(workspace: Path) -> None:
    loaded = _loaded_by(workspace, "--help")
    assert _heavy(loaded) == {"typer"}
    rooms = {name.split(".")[1] for name in loaded if name.startswith("mycode.")}
    assert rooms <= {"__main__", "cli", "core"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("sessions", "list"),
        ("context", "inspect", "talk.json"),
        ("permissions", "check", "git status && ls"),
        ("tools", "list"),
        ("config", "keys"),
    ],
    ids=" ".join,
)
def test_what_needs_no_model_loads_none(workspace: Path, arguments: tuple[str, ...]) -> None:
    (workspace / "talk.json").write_text('[{"role": "user", "content": "hello"}]', encoding="utf-8")
    assert not _heavy(_loaded_by(workspace, *arguments)) & {"litellm", "openai", "pydantic", "httpx", "prompt_toolkit"}


def test_a_one_shot_prompt_over_the_fast_lane_loads_nothing_heavy(workspace: Path) -> None:
    with serving([say("hi")]) as server:
        loaded = _loaded_by(
            workspace, "-p", "hi", "--model", "openai/scripted", "--api-base", server.url, OPENAI_API_KEY="any"
        )
    assert _heavy(loaded) == {"typer"}


def test_a_chat_is_drawn_before_anything_heavy_is_loaded(workspace: Path) -> None:
    listing = workspace / "modules.json"
    at_first_draw = f"""\
import json, os, sys
from mycode.repl import prompt
from prompt_toolkit.application import Application
drawn = Application._redraw
def note(self, *arguments, **options):
    drawn(self, *arguments, **options)
    if self._is_running and not note.told:
        note.told = True
        with open("half", "w") as file:
            json.dump(sorted(sys.modules), file)
        os.replace("half", {str(listing)!r})
note.told = False
Application._redraw = note
sys.argv = ["mycode", "--model", "anthropic/claude-opus-5"]
from mycode.__main__ import main
main()
"""
    world = {"HOME": str(workspace), "MYCODE_HOME": str(workspace / "home"), "ANTHROPIC_API_KEY": "any"}
    terminal = Terminal.python("-P", "-c", at_first_draw, cwd=workspace, env=world)
    terminal.wait(lambda _: listing.exists(), "the first draw")
    terminal.wait_for("anthropic/claude-opus-5")
    terminal.close()
    loaded = set(json.loads(listing.read_text(encoding="utf-8")))
    assert _heavy(loaded) & {"litellm", "tiktoken", "openai", "pydantic", "httpx", "tree_sitter"} == set()
