"""A fold told by both: files, commands and errors by rules, the story by a model (R53)."""

from __future__ import annotations

from msgspec.structs import replace

from mycode.context.summarizers import Draft, Fold
from mycode.context.summarizers.llm import Llm
from mycode.context.summarizers.rules import error_line, selected

_MOST = 40


class Hybrid:
    """Four headed sections, and beside them the selection that rules would keep."""

    def __init__(self, llm: Llm) -> None:
        self._llm = llm

    async def summarize(self, fold: Fold) -> Draft:
        draft = await self._llm.summarize(fold)
        if draft.strategy == "rules":
            return draft
        narrative = "\n\n".join(
            part
            for part in (
                _section("Files Referenced", files(fold)),
                _section("Commands Executed", commands(fold)),
                _section("Errors Encountered", errors(fold)),
                f"## Conversation Summary\n{draft.narrative}",
            )
            if part
        )
        context = draft.context
        listed = [*draft.key_points, *context.decisions, *context.unresolved, *(i.task for i in context.action_items)]
        taken = fold.count(narrative) + fold.count("\n".join(listed))
        digest = selected(fold, fold.budget_tokens - taken - 40)
        return replace(draft, strategy="hybrid", narrative=narrative, digest=digest)


def files(fold: Fold) -> list[str]:
    """Paths that the conversation read or changed, changed ones first."""
    ledger = fold.ledger
    changed = list(ledger.files_modified)
    return [f"{path} (changed)" for path in changed[-_MOST:]] + [
        path for path in list(ledger.files)[-_MOST:] if path not in changed
    ]


def commands(fold: Fold) -> list[str]:
    """Commands with their exit codes, the newest of each."""
    newest = {run.command: run.exit_code for run in fold.ledger.commands}
    return [
        fold.redact(" ".join(command.split())[:160] + ("" if code is None else f" (exit {code})"))
        for command, code in list(newest.items())[-20:]
    ]


def errors(fold: Fold) -> list[str]:
    """Errors that are still open, and how many were solved."""
    ledger = fold.ledger
    lines = [fold.redact(error_line(error)) for error in ledger.open_errors[-20:]]
    solved = len(ledger.errors) - len(ledger.open_errors)
    return [*lines, f"({solved} more, resolved)"] if solved else lines


def _section(title: str, lines: list[str]) -> str:
    return "\n".join([f"## {title}", *(f"- {line}" for line in lines)]) if lines else f"## {title}\n(none)"
