"""A fold told by rules alone: no model, no cost, the same text every time."""

from __future__ import annotations

from msgspec.structs import replace

from mycode.context.facts import ErrorFact, FactLedger
from mycode.context.selection import fold_text
from mycode.context.summarizers import Draft, Fold, lines
from mycode.core.messages import UserMessage
from mycode.core.summaries import ActionItem, SummaryContext

MOST_POINTS = 30
"""A summary lists at most this many highlights (R84)."""


class Rules:
    """The summary that always works (R3, R27)."""

    async def summarize(self, fold: Fold) -> Draft:
        return tell(fold)


def tell(fold: Fold) -> Draft:
    """The draft for a fold; pure. Facts that must be kept come first, the rest of the room goes to the selection."""
    if fold.form == "lines":
        draft = lines.tell(fold)
        return replace(draft, key_points=key_points(fold), context=context_of(fold.ledger, fold))
    facts = facts_text(fold.ledger, fold.budget_tokens // 2, fold)
    digest = selected(fold, fold.budget_tokens - fold.count(facts) - 40)
    return Draft("rules", facts, key_points(fold), context_of(fold.ledger, fold), digest)


def selected(fold: Fold, room: int) -> str:
    """The lines and names of the fold that are most likely to be needed again, within `room` tokens."""
    text = fold_text(
        fold.messages,
        previous=fold.previous,
        ledger=fold.ledger,
        budget_tokens=max(0, room),
        count=fold.count,
        recent=fold.recent,
    )
    return fold.redact(text)


def facts_text(ledger: FactLedger, room: int, fold: Fold) -> str:
    """The facts that must survive every fold, as short lists; the least pressing ones go if there is no room."""
    sections = (
        ("Files changed", ledger.files_modified, ", "),
        ("Open errors", tuple(error_line(error) for error in ledger.open_errors), "\n- "),
        ("Failing tests", failing_tests(ledger), ", "),
        ("To do", tuple(item.text for item in ledger.open_todo), "\n- "),
        ("Decisions", tuple(said.text for said in ledger.decisions[-5:]), "\n- "),
        ("Commands", tuple(_command(c.command, c.exit_code) for c in ledger.commands[-5:]), "\n- "),
    )
    parts: list[str] = []
    for title, items, joint in sections:
        kept = fold.redact_each(dict.fromkeys(" ".join(item.split())[:300] for item in items))
        while kept:
            head = f"{title}:\n- " if joint.startswith("\n") else f"{title}: "
            part = head + joint.join(kept)
            if fold.count("\n".join([*parts, part])) <= room:
                parts.append(part)
                break
            kept = kept[max(1, len(kept) // 8) :]
    return "\n".join(parts)


def error_line(error: ErrorFact, limit: int = 300) -> str:
    """An error and what it came from, the latter short: a whole script may have caused it."""
    source = " ".join(error.source.split())
    source = source if len(source) <= 80 else source[:78] + " …"
    return f"{source}: {' '.join(error.text.split())}"[:limit]


def failing_tests(ledger: FactLedger) -> tuple[str, ...]:
    """Tests that failed and have not passed since, neither by name nor because the command that ran them passed."""
    solved = {error.seq for error in ledger.errors if not error.open}
    return tuple(test.name for test in ledger.tests.values() if not test.passed and test.seq not in solved)


def key_points(fold: Fold) -> tuple[str, ...]:
    """What the person asked for, one line each: the topics of a summary that no model wrote."""
    earlier = list(fold.previous.key_points) if fold.previous else []
    said = [message.text for _, message in fold.messages if isinstance(message, UserMessage) and message.text.strip()]
    earlier += fold.redact_each(" ".join(text.split())[:100] for text in said)
    return tuple(list(dict.fromkeys(earlier))[-MOST_POINTS:])


def context_of(ledger: FactLedger, fold: Fold) -> SummaryContext:
    """The structured facets, as far as rules can tell them (R73)."""
    return SummaryContext(
        participants=("user", "assistant"),
        decisions=tuple(fold.redact_each(said.text for said in ledger.decisions[-MOST_POINTS:])),
        action_items=tuple(map(ActionItem, fold.redact_each(item.text for item in ledger.open_todo[:MOST_POINTS]))),
        unresolved=tuple(fold.redact_each(error.text[:300] for error in ledger.open_errors[-MOST_POINTS:])),
        entities=ledger.files_modified[-MOST_POINTS:],
    )


def _command(command: str, exit_code: int | None) -> str:
    short = " ".join(command.split())[:120]
    return short if exit_code is None else f"{short} (exit {exit_code})"
