"""A telling becomes a record of the log: what it covers, the facts it carries on, what it cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from mycode.context.digests.calls import only_looks, read_call
from mycode.context.facts import CommandFact, FactLedger, Statement
from mycode.context.projection import Row
from mycode.context.summarizers import Draft, Fold, masked_each
from mycode.core.messages import AssistantMessage
from mycode.core.summaries import CommandRun, ErrorSeen, SummaryRecord, ToolUse, Trigger

_MOST_COMMANDS = 200
_MOST_RESOLVED = 30
_COMMANDS_CARRIED = 20
_LEAST_CARRIED = 100
_LONGEST_COMMAND = 300
_MOST_BYTES = 40_000
_DECISIONS_BYTES = 23_000
_COMMANDS_BYTES = 11_000
F = TypeVar("F", Statement, CommandFact)


def build(
    draft: Draft,
    fold: Fold,
    rows: Sequence[Row],
    trigger: Trigger,
    *,
    record_id: str,
    at: float,
    covers: tuple[int, int],
    depth: int,
    parent: SummaryRecord | None,
    carried: int,
    constraints: Sequence[str],
) -> SummaryRecord:
    """The record, without its sizes. `carried` is the user message that it carries on word for word."""
    ledger = fold.ledger
    commands, errors = ledger.commands[-_MOST_COMMANDS:], ledger.errors[-_MOST_COMMANDS:]
    raw: dict[str, Any] = {
        "carried": carried,
        "aim": [fold.aim.seq, fold.aim.size],
        "constraints": list(constraints),
        "facts": facts_to_keep(ledger, fold.redact),
    }
    return SummaryRecord(
        id=record_id,
        at=at,
        covers=covers,
        depth=depth,
        strategy=draft.strategy,
        trigger=trigger.reason,
        narrative=draft.narrative,
        parent_id=parent.id if parent else None,
        focus=fold.redact(fold.focus),
        key_points=draft.key_points,
        context=replace(draft.context, raw=raw),
        files_modified=ledger.files_modified,
        files_read=ledger.files_read[-_MOST_COMMANDS:],
        commands=tuple(
            CommandRun(_short(text), run.exit_code)
            for text, run in zip(fold.redact_each(run.command for run in commands), commands, strict=True)
        ),
        errors=tuple(
            ErrorSeen(text, resolved=not error.open)
            for text, error in zip(fold.redact_each(error.text for error in errors), errors, strict=True)
        ),
        tools_used=tools_used(rows, parent, fold.redact),
        model=draft.model,
        usage=draft.usage,
        message_ids=tuple(row.id for row in rows),
        sha256=tuple(row.sha256 for row in rows),
        version=parent.version + 1 if parent else 1,
        digest=draft.digest,
    )


def tools_used(rows: Sequence[Row], parent: SummaryRecord | None, redact: Callable[[str], str]) -> tuple[ToolUse, ...]:
    """How often each tool was used up to the end of the fold, with three notable uses each (R101)."""
    counts = {use.tool: use.count for use in parent.tools_used} if parent else {}
    notable = {use.tool: list(use.notable) for use in parent.tools_used} if parent else {}
    for row in rows:
        if not isinstance(row.message, AssistantMessage):
            continue
        for call in row.message.tool_calls:
            counts[call.name] = counts.get(call.name, 0) + 1
            uses = notable.setdefault(call.name, [])
            if len(uses) < 3:
                uses.append(redact(" ".join(read_call(call).target.split())[:80]))
    return tuple(
        ToolUse(tool, count, tuple(use for use in notable.get(tool, ()) if use)) for tool, count in counts.items()
    )


def facts_to_keep(ledger: FactLedger, redact: Callable[[str], str]) -> dict[str, Any]:
    """The ledger as plain values without secrets and without what the person said word for word (R88)."""
    # By way of JSON, so that the record is equal to what is read back from the log.
    masked = _masked(msgspec.json.decode(msgspec.json.encode(compacted(ledger))), redact)
    assert isinstance(masked, dict)
    return masked


def kept_facts(record: SummaryRecord | None) -> FactLedger:
    """The ledger that a record carries on; empty where it carries none or one that cannot be read."""
    raw = (record.context.raw or {}).get("facts") if record else None
    if not isinstance(raw, dict):
        return FactLedger()
    try:
        return msgspec.convert(raw, FactLedger, str_keys=True)
    except msgspec.ValidationError:
        return FactLedger()


def compacted(ledger: FactLedger) -> FactLedger:
    """The ledger without what grows with the length of a conversation: old commands, long solved errors, readings.

    Of lists that are still long the newest entries stay, fewer of them the longer they are, so that a record has a
    bounded size. Decisions have a size of their own, as nothing but their own words tells of them. Files changed,
    constraints, open errors, failed tests and what is to be done are not shortened.
    """
    most = 800
    smaller = _newest(ledger, most)
    while most > 50 and len(msgspec.json.encode(smaller)) > _MOST_BYTES:
        most //= 2
        smaller = _newest(ledger, most)
    return smaller


def _newest(ledger: FactLedger, most: int) -> FactLedger:
    solved = [error for error in ledger.errors if not error.open][-_MOST_RESOLVED:]
    kept = {id(error) for error in solved}
    passing = [test for test in ledger.tests.values() if test.passed]
    # Passing is news only of a test that had failed: of others a few will do.
    news = [test.name for test in passing if test.once_failed][-max(_LEAST_CARRIED, most // 2) :]
    passed = {*news, *(test.name for test in passing[-most // 16 :])}
    # Of a command that ran again its last run is known; looking around is worth little once it is done.
    runs = {run.command: run for run in ledger.commands if not only_looks(run.command)}
    newest = {run.command: run for run in ledger.commands[-_COMMANDS_CARRIED:]}
    ran = sorted({**runs, **newest}.values(), key=lambda run: run.seq)
    laid_down = "\n".join(said.text for said in ledger.constraints)
    only_named = [said for said in ledger.named if said.text not in ledger.files and said.text not in laid_down]
    read = {file.path for file in [file for file in ledger.files.values() if not file.modified][-most:]}
    return replace(
        ledger,
        files={
            path: replace(file, ranges=file.ranges[-max(1, most // 50) :])
            for path, file in ledger.files.items()
            if file.modified or path in read
        },
        commands=_within([replace(run, command=_short(run.command)) for run in ran], _COMMANDS_BYTES),
        errors=tuple(error for error in ledger.errors if error.open or id(error) in kept),
        tests={name: test for name, test in ledger.tests.items() if not test.passed or name in passed},
        decisions=_within(ledger.decisions, _DECISIONS_BYTES),
        versions=dict(list(ledger.versions.items())[-most:]),
        urls=ledger.urls[-most // 4 :],
        ports=ledger.ports[-most // 4 :],
        named=tuple(only_named)[-max(2 * _LEAST_CARRIED, most // 2) :],
        names=None,
        messages=0,
    )


def _within(facts: Sequence[F], size: int) -> tuple[F, ...]:
    """The newest facts that take at most `size` bytes of JSON."""
    kept: list[F] = []
    for fact in reversed(facts):
        size -= len(msgspec.json.encode(fact)) + 1
        if size < 0:
            break
        kept.append(fact)
    return tuple(reversed(kept))


def _short(command: str) -> str:
    return command if len(command) <= _LONGEST_COMMAND else command[: _LONGEST_COMMAND - 2] + " …"


def _masked(value: object, redact: Callable[[str], str]) -> object:
    """The value with every text in it masked."""
    texts: list[str] = []
    _collect(value, texts)
    masked = masked_each(texts, redact)
    return value if masked is texts else _replaced(value, iter(masked))


def _collect(value: object, texts: list[str]) -> None:
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            texts.append(str(key))
            _collect(item, texts)
    elif isinstance(value, list | tuple):
        for item in value:
            _collect(item, texts)


def _replaced(value: object, parts: Iterator[str]) -> object:
    if isinstance(value, str):
        return next(parts)
    if isinstance(value, dict):
        return {next(parts): _replaced(item, parts) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(item, parts) for item in value]
    return value
