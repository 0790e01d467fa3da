"""Reads the habits of the command line that the parser cannot (pure): optional values and customary spellings."""

import re
from collections.abc import Sequence

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
