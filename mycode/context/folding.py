"""A fold is told by the strategy that was asked for, checked and mended by code, and by rules if all else fails."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from mycode.context import verify
from mycode.context.facts import Fact
from mycode.context.policy import Choice, Policy
from mycode.context.references import extract
from mycode.context.summarizers import Draft, Fold, Summarizer, hybrid, llm
from mycode.context.summarizers.assembly import failing_tests, rendered
from mycode.context.summarizers.lines import LEAST, OMITTED
from mycode.context.summarizers.rules import tell as tell_by_rules
from mycode.core.errors import ModelError
from mycode.core.models import Model
from mycode.core.summaries import ActionItem, SummaryContext, Verification


class Told(Struct, frozen=True):
    """A checked telling; `draft` is None when none was wanted after a failure. `failed`: a model was asked in vain."""

    draft: Draft | None
    verification: Verification | None = None
    warnings: tuple[str, ...] = ()
    failed: bool = False


async def tell(
    fold: Fold, choice: Choice, models: Sequence[Model], policy: Policy, *, background: bool = False, must: bool = False
) -> Told:
    """Tells the fold. A failing model leads to what `llm.on_failure` says; with `must`, to rules whatever it says."""
    summarizer = pick(choice, models, policy, background=background)
    if summarizer is None:
        return Told(*checked(tell_by_rules(fold), fold))
    try:
        draft = await summarizer.summarize(fold)
    except ModelError as error:
        text = f"No summary by the model: {error}"
        if policy.llm.on_failure == "raise" and not must:
            raise
        if policy.llm.on_failure == "keep" and not must:
            return Told(None, None, (f"{text} Nothing was changed.",), failed=True)
        draft, verification = checked(tell_by_rules(fold), fold)
        return Told(draft, verification, (f"{text} It was done by rules.",), failed=True)
    draft, verification = checked(draft, fold)
    return Told(draft, verification, (draft.warning,) if draft.warning else ())


def pick(choice: Choice, models: Sequence[Model], policy: Policy, *, background: bool = False) -> Summarizer | None:
    """The summarizer for a choice; None: rules. `auto` is hybrid where there is a model (C2)."""
    if choice == "rules" or not models:
        return None
    deadline = policy.llm.background_deadline_seconds if background else policy.llm.deadline_seconds
    asked = llm.Llm(models, policy.llm, deadline=deadline)
    return asked if choice == "llm" else hybrid.Hybrid(asked)


def checked(draft: Draft, fold: Fold) -> tuple[Draft, Verification]:
    """The draft without what has no source or is done already, with the facts that it left out, and the findings.

    Rules tell nothing that is not in their source, so that only what they had no room for is looked for. Whoever wrote
    it, the whole of it holds at most `fold.room` tokens.
    """
    removed: tuple[str, ...] = ()
    grounding = 1.0
    failing = set(failing_tests(fold.ledger))
    facts = [
        fact
        for fact in fold.ledger.must_keep()
        # Constraints are pinned; a test that failed is news only until it passes.
        if fact.kind != "constraint" and (fact.kind != "failed_test" or fact.text in failing)
    ]
    lost: tuple[Fact, ...] = ()
    if draft.strategy != "rules":
        draft, removed, grounding = grounded(draft, fold)
        draft = _without_done(draft, fold)
        if fold.budget_tokens < LEAST:
            draft = Draft(draft.strategy, OMITTED, model=draft.model, usage=draft.usage)
        else:
            # What rules tell in a hybrid summary was never left to the model.
            lost = verify.missing(facts, rendered(draft)) if draft.strategy == "llm" else ()
            draft = _finished(draft, fold, facts)
    left_out = verify.missing(facts, rendered(draft))
    lost = lost or left_out
    return draft, Verification(
        recall=round(1 - len(lost) / len(facts), 4) if facts else 1.0,
        grounding=round(grounding, 4),
        added=tuple(fold.redact(fact.text[:200]) for fact in lost if fact not in left_out),
        removed=tuple(dict.fromkeys(removed)),
        left_out=tuple(fold.redact(fact.text[:200]) for fact in left_out),
    )


def _finished(draft: Draft, fold: Fold, facts: Sequence[Fact]) -> Draft:
    if draft.strategy == "hybrid" and fold.room >= hybrid.LEAST_ROOM:
        return hybrid.finish(draft, fold)
    return llm.finish(draft, fold, lambda text: {fact.text for fact in verify.missing(facts, text)})


def source_of(fold: Fold) -> verify.Source:
    """Everything that a summary of this fold may name."""
    parts = [message.text for _, message in fold.messages]
    parts += [call.arguments for _, m in fold.messages for call in getattr(m, "tool_calls", ())]
    parts += [call.name for _, m in fold.messages for call in getattr(m, "tool_calls", ())]
    parts += [message.text for _, message in fold.recent]
    parts += [f"m{seq}" for seq, _ in fold.messages]
    parts += list(fold.ledger.files)
    parts += [f"{run.command} {run.exit_code}" for run in fold.ledger.commands]
    parts += [f"{error.source} {error.text}" for error in fold.ledger.errors]
    parts += [said.text for said in (*fold.ledger.decisions, *fold.ledger.constraints)]
    parts += [item.text for item in fold.ledger.todo]
    if fold.previous is not None:
        previous = fold.previous
        parts += [previous.narrative, previous.digest, *previous.key_points, *previous.context.decisions]
        parts += [*previous.context.unresolved, *previous.context.entities]
        parts += [item.task for item in previous.context.action_items]
    return verify.Source("\n".join(parts))


def grounded(draft: Draft, fold: Fold) -> tuple[Draft, tuple[str, ...], float]:
    """The draft without what names something that its source does not have, those names, the share of the others."""
    source = source_of(fold)
    # JSON arguments hold their text escaped; both spellings count as a source.
    known = verify.Source(
        f"{source.text}\n{source.text.replace(chr(92) + 'n', chr(10)).replace(chr(92) + chr(34), chr(34))}"
    ).knows
    names = len(extract(rendered(draft)))
    narrative, bad = verify.ground(draft.narrative, known)
    points, bad_points = verify.grounded_items(draft.key_points, known)
    context = draft.context
    decisions, bad_decisions = verify.grounded_items(context.decisions, known)
    unresolved, bad_open = verify.grounded_items(context.unresolved, known)
    entities, bad_entities = verify.grounded_items(context.entities, known)
    tasks = [item for item in context.action_items if not verify.ungrounded(item.task, known)]
    bad_tasks = [name for item in context.action_items for name in verify.ungrounded(item.task, known)]
    removed = (*bad, *bad_points, *bad_decisions, *bad_open, *bad_entities, *bad_tasks)
    context = SummaryContext(context.participants, decisions, tuple(tasks), unresolved, entities, context.raw)
    grounding = 1 - min(1.0, len(set(removed)) / names) if names else 1.0
    return replace(draft, narrative=narrative, key_points=points, context=context), removed, grounding


def _without_done(draft: Draft, fold: Fold) -> Draft:
    """Finished work is never listed as open, whatever the model said."""
    ledger = fold.ledger
    done = [item.text for item in ledger.todo if item.status == "done"]
    done += [f"{error.source} {error.text}" for error in ledger.errors if not error.open]
    still = {error.text for error in ledger.open_errors}
    context = draft.context
    tasks = set(verify.not_done((item.task for item in context.action_items), done))
    items: list[ActionItem] = [item for item in context.action_items if item.task in tasks]
    unresolved = tuple(text for text in context.unresolved if text in still or text in verify.not_done((text,), done))
    return replace(draft, context=replace(context, action_items=tuple(items), unresolved=unresolved))
