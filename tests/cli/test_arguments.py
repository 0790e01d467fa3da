"""The command line is read as its habits go: optional values, other agents' spellings, rules with blanks."""

from pathlib import Path

import pytest

from mycode.cli.arguments import normalise, spoken
from mycode.cli.options import RunOptions, flags, split_rules
from mycode.core.errors import UsageError

COMMANDS = ["sessions", "context", "config", "trust", "doctor"]


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


@pytest.mark.parametrize(
    ("words", "said", "prompt"),
    [
        (["fix the tests"], None, "fix the tests"),
        (["fix", "the", "tests"], None, "fix the tests"),
        (["hello"], None, "hello"),
        (["test", "it"], None, "test it"),
        (["sessions are broken"], None, "sessions are broken"),
        (["/context"], None, "/context"),
        (["sesions"], "", "sesions"),
    ],
)
def test_words_without_an_option_are_a_prompt(words: list[str], said: str | None, prompt: str) -> None:
    assert spoken(words, said, COMMANDS, terminal=True) == prompt


@pytest.mark.parametrize(
    ("words", "said", "terminal", "sentence"),
    [
        (
            ["sesions"],
            None,
            True,
            "no command 'sesions'. Did you mean `mycode sessions`[?] To ask .*: mycode -p sesions$",
        ),
        (["docter", "now"], None, True, "Did you mean `mycode doctor`[?] To ask the model: mycode -p 'docter now'$"),
        (["fix it"], None, False, "^There is no command 'fix it'. To ask the model: mycode -p 'fix it'$"),
        (["the", "bug"], "fix", True, "^A prompt is one argument: mycode -p 'fix the bug'$"),
        ([""], None, True, "^The prompt is empty"),
        ([" "], "", False, "^The prompt is empty"),
    ],
)
def test_words_that_cannot_be_a_prompt_get_a_sentence(
    words: list[str], said: str | None, terminal: bool, sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        spoken(words, said, COMMANDS, terminal=terminal)


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
