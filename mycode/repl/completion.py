"""What Tab and typing offer: /commands and their arguments, and @files of the workspace."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from mycode.core.visible import one_line, revealed
from mycode.repl.commands.command import Command, Registry, Shell

_MOST = 30
_MOST_FILES = 50_000
_FRESH_SECONDS = 5.0
_MENTION = re.compile(r"(?:^|\s)@([^\s@]*)$")
ListFiles = Callable[[], Sequence[str]]


class ReplCompleter(Completer):
    """Runs in a thread (`ThreadedCompleter`), so a large folder never holds up a key."""

    def __init__(self, registry: Registry, shell: Shell, list_files: ListFiles) -> None:
        self._registry = registry
        self._shell = shell
        self._list_files = list_files
        self._files: Sequence[str] = ()
        self._listed_at = -_FRESH_SECONDS

    def get_completions(self, document: Document, _: CompleteEvent) -> Iterable[Completion]:
        line = document.text_before_cursor
        if mention := _MENTION.search(line):
            yield from self._mentions(mention[1])
        elif line.startswith("/") and "\n" not in line:
            yield from self._commands(line)

    def _commands(self, line: str) -> Iterable[Completion]:
        name, blank, rest = line[1:].partition(" ")
        if not blank:
            for command in self._registry.commands:
                hit = next((known for known in (command.name, *command.aliases) if known.startswith(name)), None)
                if hit is not None:
                    yield Completion(
                        f"/{hit}", start_position=-len(line), display=f"/{hit}", display_meta=one_line(command.help, 60)
                    )
            return
        if (chosen := self._registry.get(name)) is not None:
            yield from self._arguments(chosen, rest)

    def _arguments(self, command: Command, rest: str) -> Iterable[Completion]:
        word = rest.rpartition(" ")[2]
        if word.startswith("-"):
            for option in command.options:
                if option.name.startswith(word):
                    yield Completion(option.name, start_position=-len(word), display_meta=one_line(option.help, 60))
            return
        if command.values is not None and " " not in rest:
            for value in command.values(self._shell):
                if value.startswith(word):
                    yield Completion(value, start_position=-len(word))

    def _mentions(self, typed: str) -> Iterable[Completion]:
        now = time.monotonic()
        if now - self._listed_at > _FRESH_SECONDS:
            self._files, self._listed_at = self._list_files(), now
        for path in ranked(typed, self._files):
            if revealed(path) != path:
                continue  # a name that a terminal would obey, or that does not show what it is
            shown = f'"{path}"' if " " in path else path
            yield Completion(f"@{shown}", start_position=-len(typed) - 1, display=one_line(path, 70))


def ranked(typed: str, paths: Sequence[str], most: int = _MOST) -> list[str]:
    """The paths that fit what was typed, best first: beginnings, then parts, then letters in order."""
    if not typed:
        return list(paths[:most])
    low = typed.lower()
    close = [path for path in paths if low in path.lower()]
    close.sort(key=lambda path: (*_distance(low, path.rpartition("/")[2].lower()), len(path), path))
    if len(close) >= most:
        return close[:most]
    from rapidfuzz import fuzz, process

    known = set(close)
    rest = [path for path in paths if path not in known and _in_order(low, path.lower())]
    fuzzy = process.extract(typed, rest, scorer=fuzz.WRatio, limit=most - len(close))
    return close + [path for path, _, _ in fuzzy]


def _distance(typed: str, name: str) -> tuple[bool, bool]:
    return (not name.startswith(typed), typed not in name)


def _in_order(letters: str, path: str) -> bool:
    at = iter(path)
    return all(letter in at for letter in letters)


def workspace_files(folder: Path) -> ListFiles:
    """Lists the files of a workspace as paths relative to it, leaving out what git ignores."""

    def listed() -> Sequence[str]:
        from mycode.tools.walking import walk

        return list(walk(folder, limit=_MOST_FILES))

    return listed
