"""A fold told by rules alone: no model, no cost, the same text every time."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mycode.context.facts import FactLedger
from mycode.context.summarizers import Draft, Fold, lines
from mycode.context.summarizers.assembly import (
    FROM_LOG,
    Section,
    assemble,
    decisions_of,
    error_line,
    fitted,
    must_sections,
    short,
)
from mycode.context.summarizers.assembly import lines as lines_of
from mycode.core.messages import UserMessage
from mycode.core.summaries import ActionItem, SummaryContext

ASKED_PART = 8
"""What the person asked for takes at most this part of the room."""
MOST_POINTS = 30
"""A summary lists at most this many highlights (R84)."""


class Rules:
    """The summary that always works (R3, R27)."""

    async def summarize(self, fold: Fold) -> Draft:
        return tell(fold)


def tell(fold: Fold) -> Draft:
    """The draft for a fold; pure. Facts that must be kept come first, the rest of the room goes to the selection."""
    points, context = key_points(fold), context_of(fold.ledger, fold)
    if fold.budget_tokens < lines.LEAST:
        return Draft("rules", lines.OMITTED, points, context)
    must = must_sections(fold)
    requests = [text for text in points if text.count(" ") >= 2]
    if requests and requests[0].removesuffix(" …") in fold.aim.text:
        del requests[0]  # it stands above, in more words
    asked = lines_of("Asked", requests, 120, fold).newest(fold.room // ASKED_PART)
    if fold.form == "lines":
        return replace(_in_lines(fold, must), key_points=points, context=context)

    def lay(kept: Sequence[Section], settled: Sequence[Section]) -> Draft:
        facts = "\n".join(section.text() for section in (*kept, *settled))
        return Draft("rules", facts, points, context)

    return assemble(fold, [asked, *must], lay, fold.room)


def _in_lines(fold: Fold, must: Sequence[Section]) -> Draft:
    """Lines, and below them the facts that must be kept: only the lines go when both are too long (C8)."""
    facts = "\n".join(section.text() for section in fitted(must, fold.room * 3 // 4 - lines.LEAST))
    below = f"\n\n{FROM_LOG}\n{facts}" if facts else ""
    previous = fold.previous
    if previous is not None:
        previous = replace(previous, narrative=previous.narrative.partition(f"\n\n{FROM_LOG}\n")[0])
    room = fold.room - fold.count(below)
    draft = lines.tell(replace(fold, budget_tokens=room, frame_tokens=0, previous=previous))
    return replace(draft, narrative=draft.narrative + below)


def key_points(fold: Fold) -> tuple[str, ...]:
    """What the person asked for, one line each: the topics of a summary that no model wrote."""
    earlier = list(fold.previous.key_points) if fold.previous else []
    texts = (message.text.strip() for _, message in fold.messages if isinstance(message, UserMessage))
    said = [text for text in texts if text and not text.startswith("<")]  # what a program says in their name is none
    earlier += [short(text, 100) for text in fold.redact_each(said)]
    return tuple(list(dict.fromkeys(earlier))[-MOST_POINTS:])


def context_of(ledger: FactLedger, fold: Fold) -> SummaryContext:
    """The structured facets, as far as rules can tell them (R73)."""
    return SummaryContext(
        participants=("user", "assistant"),
        decisions=tuple(fold.redact_each(said.text for said in decisions_of(fold)[-MOST_POINTS:])),
        action_items=tuple(map(ActionItem, fold.redact_each(item.text for item in ledger.open_todo[:MOST_POINTS]))),
        unresolved=tuple(fold.redact_each(error_line(error) for error in ledger.open_errors[-MOST_POINTS:])),
        entities=ledger.files_modified[-MOST_POINTS:],
    )
