"""A fold told by both: files, commands and errors by rules, the story by a model (R53)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mycode.context.facts import FactLedger
from mycode.context.summarizers import Draft, Fold
from mycode.context.summarizers.assembly import Section, lines, must_sections, rendered, with_facts
from mycode.context.summarizers.llm import Llm

LEAST_ROOM = 200
"""In fewer tokens than this the headings alone would take too much."""
_FILES_READ, _COMMANDS = 12, 8
_PLACES = {
    "Files changed": "## Files Referenced",
    "Files read": "## Files Referenced",
    "Commands": "## Commands Executed",
    "Commands run": "## Commands Executed",
    "Open errors": "## Errors Encountered",
    "Failing tests": "## Errors Encountered",
    "Passed later": "## Errors Encountered",
}
"""The heading under which a section stands; all others belong to the story."""
_STORY = "## Conversation Summary"


class Hybrid:
    """What a model tells, to be finished by rules."""

    def __init__(self, llm: Llm) -> None:
        self._llm = llm

    async def summarize(self, fold: Fold) -> Draft:
        draft = await self._llm.summarize(fold)
        return draft if draft.strategy == "rules" else replace(draft, strategy="hybrid")


def finish(draft: Draft, fold: Fold) -> Draft:
    """The checked draft in four headed sections, and below them the lines and names that rules would keep."""

    def must(model: Draft) -> list[Section]:
        told = rendered(model)
        changed, errors, tests, *others = must_sections(fold)
        return [_marked(changed), errors, tests, *(section.untold(told) for section in others), *_recent(fold)]

    return with_facts(draft, fold, must, _lay, fold.room)


def _lay(model: Draft, kept: Sequence[Section], settled: Sequence[Section]) -> Draft:
    parts: dict[str, list[str]] = {head: [] for head in dict.fromkeys(_PLACES.values())}
    story = [model.narrative] if model.narrative else []
    for section in (*kept, *settled):
        place = parts.get(_PLACES.get(section.title, ""), story)
        text = section.text()
        # Right under their own heading files and commands need no title.
        place.append(text.partition("\n")[2] if section.title.startswith(("Files", "Commands")) else text)
    blocks = ["\n".join([head, *(texts or ["(none)"])]) for head, texts in parts.items()]
    narrative = "\n\n".join([*blocks, "\n\n".join([_STORY, *story]).replace("\n\n", "\n", 1)])
    return replace(model, narrative=narrative)


def _marked(changed: Section) -> Section:
    """Files on a line each, marked as changed."""
    items = (replace(item, text=f"{item.text} (changed)", tokens=item.tokens + 3) for item in changed.items)
    return replace(changed, items=tuple(items), listed=True)


def _recent(fold: Fold) -> list[Section]:
    """The files that were read last, and the commands that were run last with their exit codes."""
    ledger: FactLedger = fold.ledger
    read = [path for path in ledger.files_read if not ledger.files[path].modified]
    runs = {run.command: run.exit_code for run in ledger.commands}
    newest = [
        " ".join(command.split())[:110] + ("" if code is None else f" (exit {code})")
        for command, code in list(runs.items())[-_COMMANDS:]
    ]
    return [lines("Files read", read[-_FILES_READ:], 300, fold), lines("Commands", newest, 130, fold)]
