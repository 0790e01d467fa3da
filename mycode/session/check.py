"""Whether a stored session is whole: numbers, hashes, calls and results, and what summaries point at."""

from collections.abc import Iterator

from mycode.core.entries import Entry, Purge, Purged
from mycode.core.messages import AssistantMessage, ToolResult, UserMessage
from mycode.core.summaries import SummaryRecord, Undo
from mycode.session.entries import encode_body, sha256_of
from mycode.session.log import SessionLog


def verify(log: SessionLog) -> list[str]:
    """Every fault found, one sentence each; empty for a sound session. Reads all of it.

    A call without a result is no fault where a turn was cut off there: views answer it as interrupted.
    """
    return list(_faults(log))


def _faults(log: SessionLog) -> Iterator[str]:
    expected, tokens, messages = 1, 0, 0
    open_calls: dict[str, int] = {}
    purges = [entry.body for entry in log.marked("purge") if isinstance(entry.body, Purge)]
    told = [places for body in purges for places in body.ranges]
    pins = {seq for body in purges for seq in body.pins}
    for entry in log.read(1):
        if entry.seq != expected:
            yield f"Entries {expected} to {entry.seq - 1} are missing."
        expected = entry.seq + 1
        if sha256_of(encode_body(entry.body)) != entry.sha256:
            yield f"Entry {entry.seq} is not what was written: its hash differs."
        if entry.message is not None:
            tokens, messages = tokens + entry.tokens, messages + 1
        was_told = entry.seq in pins or any(first <= entry.seq <= last for first, last in told)
        if isinstance(entry.body, Purged) and not was_told:
            yield f"The text of entry {entry.seq} is gone, and no purge tells of it."
        elif was_told and not isinstance(entry.body, Purged) and (entry.message is not None or entry.seq in pins):
            yield f"Entry {entry.seq} is told to be purged and is not."
        yield from _calls(entry, open_calls)
        yield from _pointers(entry)
    if log.last_seq() != expected - 1:
        yield f"The session should have {log.last_seq()} entries and has {expected - 1}."
    if (log.tokens(1), log.messages(1)) != (tokens, messages):
        yield "The sums kept beside the entries are wrong."


def _calls(entry: Entry, open_calls: dict[str, int]) -> Iterator[str]:
    match entry.body:
        case UserMessage() | Purged(role="user"):
            open_calls.clear()
        case Purged(role="assistant"):
            # It went together with the results of its calls.
            yield from _unanswered(open_calls)
        case AssistantMessage(tool_calls=calls):
            yield from _unanswered(open_calls)
            open_calls.update((call.id, entry.seq) for call in calls)
        case ToolResult(call_id=call_id):
            if open_calls.pop(call_id, None) is None:
                yield f"The result in entry {entry.seq} answers no open call ({call_id})."
        case _:
            pass


def _unanswered(open_calls: dict[str, int]) -> Iterator[str]:
    for call_id, seq in open_calls.items():
        yield f"Call {call_id} of entry {seq} has no result."
    open_calls.clear()


def _pointers(entry: Entry) -> Iterator[str]:
    match entry.body:
        case SummaryRecord(covers=(first, last)) if not 1 <= first <= last < entry.seq:
            yield f"The summary in entry {entry.seq} covers entries {first} to {last}, which are not all before it."
        case Purge(ranges=ranges) if any(not 1 <= first <= last < entry.seq for first, last in ranges):
            yield f"The purge in entry {entry.seq} names entries that are not all before it."
        case Undo(target=target) if not 1 <= target < entry.seq:
            yield f"Entry {entry.seq} undoes entry {target}, which is not before it."
        case _:
            pass
