"""Which old tool results become one line each: in epochs, the least needed first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from mycode.context import digests
from mycode.context.budget import MESSAGE_OVERHEAD, Count
from mycode.context.digests.calls import CallFacts, read_call
from mycode.context.policy import Masking, ToolResults
from mycode.context.projection import Laid, Row
from mycode.core.messages import AssistantMessage, ToolCall, ToolResult

NAMES = "Last named here: "
NAMES_TOKENS = 40
"""Tokens that the names under a line may take."""
LIKELY = 0.05
"""How likely a name must be needed again to stand under a line: about the average of all."""
_NEVER = frozenset({"todo", "plan", "ask", "task"})


class Plan(Struct, frozen=True):
    """An epoch that could be: the line and the metadata of each result by seq, and the tokens that it would free."""

    stubs: dict[int, str] = {}
    freed: int = 0
    metadata: dict[int, dict[str, str | int | bool]] = {}


class _Candidate(Struct):
    row: Row
    call: ToolCall
    facts: CallFacts
    rank: int = 2


def plan(
    rows: Sequence[Row],
    laid: Laid,
    settings: Masking,
    style: ToolResults,
    *,
    wanted: int,
    protected_tokens: int,
    spared: frozenset[int],
    count: Count,
    redact: Callable[[str], str],
) -> Plan:
    """The results to mask so that at least `wanted` tokens are freed, as far as there are any.

    Superseded results first (the file was read again or changed, the command or search run again), then duplicates,
    then the largest. Never the newest `protected_tokens` worth of results, nor those in `spared` (open errors, pins),
    nor todo lists, plans and questions, nor what the newest answer called for.
    """
    candidates = _candidates(rows, laid, settings, protected_tokens, spared)
    candidates.sort(key=lambda found: (found.rank, -found.row.tokens, found.row.seq))
    stubs: dict[int, str] = {}
    metadata: dict[int, dict[str, str | int | bool]] = {}
    freed = 0
    for found in candidates:
        if freed >= wanted:
            break
        summary = _summary(found.row, found.call, style)
        line = _line(found.row, summary, style, redact)
        saving = found.row.tokens - count(line) - MESSAGE_OVERHEAD - 6
        if saving > 0:
            stubs[found.row.seq] = line
            freed += saving
            if style.include_metadata:
                metadata[found.row.seq] = _masked(summary.metadata, style.max_summary_length, redact)
    return Plan(stubs, freed, metadata)


def with_names(plan: Plan, names: Mapping[int, Sequence[str]], count: Count, redact: Callable[[str], str]) -> Plan:
    """The plan with the names under each line that this result is the last to show, as many as `NAMES_TOKENS` hold."""
    stubs, freed = dict(plan.stubs), plan.freed
    for seq, line in plan.stubs.items():
        told: list[str] = []
        for name in names.get(seq, ()):
            if name in line:
                continue
            longer = [*told, f'"{name}"' if " " in name else name]
            if count(" ".join(longer)) > NAMES_TOKENS:
                break
            told = longer
        if told:
            below = redact(f"{NAMES}{' '.join(told)}")
            stubs[seq] = f"{line}\n{below}"
            freed -= count(stubs[seq]) - count(line)
    return Plan(stubs, freed, plan.metadata)


def stub(row: Row, call: ToolCall | None, style: ToolResults, redact: Callable[[str], str]) -> str:
    """The line that stands for a tool result, with the handle under which the whole of it is found (R12)."""
    return _line(row, _summary(row, call, style), style, redact)


def _summary(row: Row, call: ToolCall | None, style: ToolResults) -> digests.ToolSummary:
    assert isinstance(row.message, ToolResult)
    return digests.tool_summary(call, row.message, command_limit=style.command_chars)


def _line(row: Row, summary: digests.ToolSummary, style: ToolResults, redact: Callable[[str], str]) -> str:
    line = digests.line(
        summary, style="compact" if style.style == "compact" else "bracket", limit=style.max_summary_length
    )
    return redact(f"{line[:600]} (m{row.seq})")


def _masked(
    metadata: dict[str, str | int | bool], limit: int, redact: Callable[[str], str]
) -> dict[str, str | int | bool]:
    """The same without secrets, each text cut at `limit` characters."""
    return {name: redact(value)[:limit] if isinstance(value, str) else value for name, value in metadata.items()}


def _candidates(
    rows: Sequence[Row], laid: Laid, settings: Masking, protected_tokens: int, spared: frozenset[int]
) -> list[_Candidate]:
    found: list[_Candidate] = []
    calls: dict[str, ToolCall] = {}
    for row in rows:
        if isinstance(row.message, AssistantMessage):
            calls = {call.id: call for call in row.message.tool_calls}
        elif isinstance(row.message, ToolResult) and row.message.call_id in calls:
            call = calls[row.message.call_id]
            found.append(_Candidate(row, call, read_call(call)))
    _rank(found)
    newest_answer = max((row.seq for row in rows if isinstance(row.message, AssistantMessage)), default=0)
    held = 0
    kept: list[_Candidate] = []
    for candidate in reversed(found):
        row = candidate.row
        held += row.tokens
        if held <= protected_tokens or row.seq > newest_answer or row.tokens < settings.min_tokens:
            continue
        if row.seq in spared or row.seq in laid.stubs or row.seq in laid.dropped or row.seq in laid.shrunk:
            continue
        if candidate.facts.family in _NEVER or candidate.call.name in settings.never:
            continue
        kept.append(candidate)
    return kept


def _rank(found: Sequence[_Candidate]) -> None:
    """0: superseded by something later; 1: the same text again later; 2: neither."""
    touched: set[str] = set()
    repeated: set[str] = set()
    texts: set[str] = set()
    for candidate in reversed(found):
        facts, text = candidate.facts, candidate.row.message.text
        again = f"{facts.family}:{facts.command or facts.pattern}:{facts.path}"
        if (facts.family == "read" and facts.path and facts.path in touched) or (
            facts.family in {"bash", "search", "list"} and again in repeated
        ):
            candidate.rank = 0
        elif text in texts:
            candidate.rank = 1
        if facts.family in {"read", "write", "edit"}:
            touched.update(facts.paths)
        repeated.add(again)
        texts.add(text)
