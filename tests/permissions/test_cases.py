"""Attacks and everyday work: each case of `cases.jsonl` gets the verdict it names.

`allow` must need no question; `ask` is met by a refusal too; `deny` only by a refusal. `$W` is the project, `$OUT` a
folder beside it. `show` cases are texts for the terminal.

`stories.jsonl` lists the attacks that are more than a command, each with the tests that show what becomes of it.
"""

import ast
import json
import os
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from mycode.core.tools import Action
from mycode.core.visible import plain
from mycode.permissions.gate import PermissionGate
from mycode.permissions.paths import find_places
from mycode.permissions.places import absolute
from mycode.permissions.rules import make_rules

Case = dict[str, Any]


def _cases() -> list[Case]:
    return [json.loads(line) for line in Path(__file__).with_name("cases.jsonl").read_text("utf-8").splitlines()]


def _name(case: Case) -> str:
    kind = next(key for key in ("run", "write", "read", "fetch", "show") if key in case)
    return ascii(f"{kind} {case[kind]} {case.get('mode', '')}")[:70]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    for folder in ("home/.ssh", "home/.mycode/sessions", "outside", "project/lib"):
        (tmp_path / folder).mkdir(parents=True)
    (home / ".ssh/id_rsa").write_text("key")
    (tmp_path / "outside/real.txt").write_text("real")
    (tmp_path / "project/lib/app.py").write_text("app = 1\n")
    monkeypatch.setenv("HOME", str(home))
    return tmp_path


def _judged(case: Case, world: Path) -> str:
    project = world / "project"
    places = find_places(project, private=[world / "home/.mycode"])

    def put(text: str) -> str:
        for sign, path in (("$W", project), ("$OUT", world / "outside"), ("$HOME", world / "home")):
            text = text.replace(sign, str(path))
        return text

    for name, text in case.get("files", {}).items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(put(text))
    for name, target in case.get("links", {}).items():
        (project / name).symlink_to(put(target))
    for name, target in case.get("hardlinks", {}).items():
        (project / name).hardlink_to(put(target))
    for name in case.get("pipes", []):
        os.mkfifo(project / name)
    rules = make_rules(
        deny=case.get("deny", []), ask=case.get("ask", []), allow=case.get("allow", []), base=places.root
    )
    gate = PermissionGate(case.get("mode", "default"), rules, places, sandbox_active=case.get("boxed", False))
    if "run" in case:
        action = Action("execute_bash", "execute", case["run"], command=case["run"])
    elif "fetch" in case:
        action = Action("fetch", "network", case["fetch"], url=case["fetch"])
    elif "write" in case:
        path = absolute(put(case["write"]), places.root, places.home)
        action = Action("edit_file", "write", path, writes=(path,))
    else:
        path = absolute(put(case["read"]), places.root, places.home)
        action = Action("read_file", "read", path, reads=(path,))
    return gate.judge(action).decision


@pytest.mark.parametrize("case", [case for case in _cases() if "show" not in case], ids=_name)
def test_the_verdict_is_the_expected_one(case: Case, world: Path):
    decision = _judged(case, world)

    accepted = {"ask": {"ask", "deny"}}.get(case["verdict"], {case["verdict"]})
    assert decision in accepted


@pytest.mark.parametrize("case", [case for case in _cases() if "show" in case], ids=_name)
def test_foreign_text_reaches_the_terminal_tamed(case: Case):
    shown = plain(case["show"])

    assert not [char for char in shown if unicodedata.category(char) in {"Cc", "Cf", "Cs"} and char not in "\n\t"]
    assert case["verdict"] == "harmless" or "red" in shown


def _tests_in(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8")) if file.exists() else ast.Module([], [])
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_each_attack_that_is_no_command_has_a_test_that_shows_what_becomes_of_it():
    text = Path(__file__).with_name("stories.jsonl").read_text("utf-8")
    named = [(story["attack"], test) for story in map(json.loads, text.splitlines()) for test in story["shown_by"]]
    root = Path(__file__).parents[2]
    missing = [
        (attack, test)
        for attack, test in named
        if test.partition("::")[2] not in _tests_in(root / test.partition("::")[0])
    ]
    assert missing == []
    assert len({attack for attack, _ in named}) == len(text.splitlines()) >= 48
