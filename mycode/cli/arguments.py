"""Reads the habits of the command line that the parser cannot (pure): optional values and customary spellings."""

import re
from collections.abc import Iterable, Sequence

from mycode.core.errors import UsageError
from mycode.core.patterns import pattern

_OPTIONAL_VALUE = {"-p", "--print", "-r", "--resume"}
_SPELLINGS = {
    "--allowedTools": "--allowed-tools",
    "--disallowedTools": "--disallowed-tools",
    "--permissionMode": "--permission-mode",
    "--outputFormat": "--output-format",
    "--maxTurns": "--max-turns",
    "--dangerously-skip-permissions": "--yolo",
}
_OPTION = pattern(r"--?[A-Za-z][\w-]*(=.*)?", re.DOTALL)


def normalise(arguments: Sequence[str]) -> list[str]:
    """`-p` and `-r` get an empty value where none follows; other agents' spellings become ours; `--` ends it."""
    result: list[str] = []
    for position, argument in enumerate(arguments):
        if argument == "--":
            return [*result, *arguments[position:]]
        name, equals, value = argument.partition("=")
        result.append(_SPELLINGS.get(name, name) + equals + value if argument.startswith("--") else argument)
        follower = arguments[position + 1] if position + 1 < len(arguments) else None
        if argument in _OPTIONAL_VALUE and (follower is None or _OPTION.fullmatch(follower)):
            result.append("")
    return result


def spoken(words: Sequence[str], said: str | None, commands: Iterable[str], *, terminal: bool) -> str:
    """The prompt that words without an option before them are: for a chat, or for a `-p` that has no prompt yet.

    `said` is what `-p` was given, if it was. Raises `UsageError` for what is rather a mistyped command, for a second
    prompt, and where no `terminal` is there to chat on.
    """
    prompt = " ".join(words)
    if said:
        message = f"A prompt is one argument: mycode -p {_quoted([said, *words])}"
        raise UsageError(message)
    if said is None:
        near = _near(words, commands)
        if near or not terminal:
            hint = f"Did you mean `mycode {near}`? " if near else ""
            message = f"There is no command {words[0]!r}. {hint}To ask the model: mycode -p {_quoted(words)}"
            raise UsageError(message)
    if not prompt.strip():
        message = "The prompt is empty. `mycode` alone opens a chat."
        raise UsageError(message)
    return prompt


def _near(words: Sequence[str], commands: Iterable[str]) -> str:
    """The command that the first word was meant to be, as far as one can tell; where more words follow, it is surer."""
    if not words[0].isalpha():
        return ""
    import difflib

    near = difflib.get_close_matches(words[0], commands, n=1, cutoff=0.6 if len(words) == 1 else 0.8)
    return near[0] if near else ""


def _quoted(words: Sequence[str]) -> str:
    import shlex

    return shlex.quote(" ".join(words))
