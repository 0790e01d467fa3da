"""The command line is read as its habits go: optional values, other agents' spellings, rules with blanks."""

from pathlib import Path

import pytest

from mycode.cli.arguments import normalise
from mycode.cli.options import RunOptions, flags, split_rules


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        (["-p"], ["-p", ""]),
        (["-p", "hi"], ["-p", "hi"]),
        (["-p", "--model", "x/y"], ["-p", "", "--model", "x/y"]),
        (["-p", "- a list item"], ["-p", "- a list item"]),
        (["-p", "-5 degrees"], ["-p", "-5 degrees"]),
        (["--resume"], ["--resume", ""]),
        (["-r", "abc", "-p", "go on"], ["-r", "abc", "-p", "go on"]),
        (["--print=hi", "--maxTurns=3"], ["--print=hi", "--max-turns=3"]),
        (["--dangerously-skip-permissions"], ["--yolo"]),
        (["tools", "run", "x", "--", "-p"], ["tools", "run", "x", "--", "-p"]),
    ],
)
def test_arguments_are_read_as_meant(typed: list[str], read: list[str]) -> None:
    assert normalise(typed) == read


def test_rules_are_split_outside_brackets_only() -> None:
    assert split_rules(["Read,Bash(git log *) Edit", "Bash(a, b)"]) == ("Read", "Bash(git log *)", "Edit", "Bash(a, b)")


def test_only_what_was_said_becomes_a_setting() -> None:
    assert flags(RunOptions(prompt="hi", output_file=Path("o"))) == {}
    assert flags(RunOptions(model="a/b", persist=False, disallowed_tools=("fetch", "Bash(rm *)"))) == {
        "model": {"name": "a/b"},
        "permissions": {"deny": ["fetch", "Bash(rm *)"]},
        "tools": {"disallowed": ["fetch"]},
        "session": {"persist": False},
    }
