"""What may stand behind a command's name, declared once and parsed with clear errors."""

from __future__ import annotations

import shlex
from difflib import get_close_matches

from msgspec import Struct

from mycode.core.errors import UsageError


class Option(Struct, frozen=True):
    """`--full`, or with a value `--grep TEXT`; a `number` must be one. `short` is e.g. `-n`."""

    name: str
    help: str
    value: str = ""
    number: bool = False
    short: str = ""
    choices: tuple[str, ...] = ()


class Positional(Struct, frozen=True):
    """What stands without a name; `rest` takes everything to the end of the line as it was typed."""

    name: str
    help: str
    required: bool = False
    rest: bool = False
    choices: tuple[str, ...] = ()


class Arguments:
    """Parsed arguments: `flag`, `text` and `number` by the names that were declared."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values

    def flag(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str, default: str = "") -> str:
        return self._values.get(name, default)

    def number(self, name: str) -> int | None:
        value = self._values.get(name)
        return int(value) if value is not None else None


def parse(line: str, positionals: tuple[Positional, ...], options: tuple[Option, ...]) -> Arguments:
    """The arguments in `line`. Raises `UsageError` with a sentence that names what is wrong."""
    words = _words(line)
    named = {option.name: option for option in options} | {option.short: option for option in options if option.short}
    values: dict[str, str] = {}
    free: list[str] = []
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            free += words
            break
        option = named.get(name)
        if option is None:
            if word.startswith("--"):
                raise UsageError(_unknown(name, named))
            free.append(word)
        elif not option.value:
            values[option.name] = ""
        else:
            if not equals:
                if not words:
                    message = f"{option.name} needs a value: {option.name} {option.value}."
                    raise UsageError(message)
                value = words.pop(0)
            values[option.name] = _checked(option, value)
    return Arguments(values | _placed(free, positionals))


def usage(name: str, positionals: tuple[Positional, ...], options: tuple[Option, ...]) -> str:
    """`/history [--full] [--grep TEXT]`."""
    parts = [f"/{name}"]
    for positional in positionals:
        shown = positional.name.upper()
        parts.append(shown if positional.required else f"[{shown}]")
    parts += [f"[{option.name}{' ' + option.value if option.value else ''}]" for option in options]
    return " ".join(parts)


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        # An apostrophe in ordinary words (`don't forget`) is no quote.
        return line.split()


def _unknown(name: str, named: dict[str, Option]) -> str:
    near = get_close_matches(name, list(named), n=1)
    hint = f" Did you mean {near[0]}?" if near else f" There is {', '.join(sorted(named))}." if named else ""
    return f"There is no option {name} here.{hint}"


def _checked(option: Option, value: str) -> str:
    if option.number and not value.removeprefix("m").isdecimal():
        message = f"{option.name} needs a number, not {value!r}."
        raise UsageError(message)
    if option.choices and value not in option.choices:
        message = f"{option.name} is one of {', '.join(option.choices)}, not {value!r}."
        raise UsageError(message)
    return value.removeprefix("m") if option.number else value


def _placed(free: list[str], positionals: tuple[Positional, ...]) -> dict[str, str]:
    values: dict[str, str] = {}
    for positional in positionals:
        if not free:
            if positional.required:
                message = f"{positional.name.upper()} is missing: {positional.help}."
                raise UsageError(message)
            break
        if positional.rest:
            values[positional.name] = " ".join(free)
            return values
        word = free.pop(0)
        if positional.choices and word not in positional.choices:
            message = f"{positional.name.upper()} is one of {', '.join(positional.choices)}, not {word!r}."
            raise UsageError(message)
        values[positional.name] = word
    if free:
        message = f"Nothing is expected at {free[0]!r}."
        raise UsageError(message)
    return values
