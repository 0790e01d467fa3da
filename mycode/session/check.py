"""Whether a stored session is whole: numbers, hashes, calls and results, and what summaries point at."""

from collections.abc import Iterator

from mycode.core.entries import Entry
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
    for entry in log.read(1):
        if entry.seq != expected:
            yield f"Entries {expected} to {entry.seq - 1} are missing."
        expected = entry.seq + 1
        if sha256_of(encode_body(entry.body)) != entry.sha256:
            yield f"Entry {entry.seq} is not what was written: its hash differs."
        if entry.message is not None:
            tokens, messages = tokens + entry.tokens, messages + 1
        yield from _calls(entry, open_calls)
        yield from _pointers(entry)
    if log.last_seq() != expected - 1:
        yield f"The session should have {log.last_seq()} entries and has {expected - 1}."
    if (log.tokens(1), log.messages(1)) != (tokens, messages):
        yield "The sums kept beside the entries are wrong."


def _calls(entry: Entry, open_calls: dict[str, int]) -> Iterator[str]:
    match entry.body:
        case UserMessage():
            open_calls.clear()
        case AssistantMessage(tool_calls=calls):
            for call_id, seq in open_calls.items():
                yield f"Call {call_id} of entry {seq} has no result."
            open_calls.clear()
            open_calls.update((call.id, entry.seq) for call in calls)
        case ToolResult(call_id=call_id):
            if open_calls.pop(call_id, None) is None:
                yield f"The result in entry {entry.seq} answers no open call ({call_id})."
        case _:
            pass


def _pointers(entry: Entry) -> Iterator[str]:
    match entry.body:
        case SummaryRecord(covers=(first, last)) if not 1 <= first <= last < entry.seq:
            yield f"The summary in entry {entry.seq} covers entries {first} to {last}, which are not all before it."
        case Undo(target=target) if not 1 <= target < entry.seq:
            yield f"Entry {entry.seq} undoes entry {target}, which is not before it."
        case _:
            pass
