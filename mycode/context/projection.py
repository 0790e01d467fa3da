"""The log and what is laid over it become the messages to send; what is not well formed is repaired on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from mycode.core.entries import Entry, Note, Purge
from mycode.core.messages import AssistantMessage, ContextNote, Message, ToolResult, UserMessage, ViewMessage
from mycode.core.summaries import Drop, MaskEpoch, Pin, SummaryContext, SummaryRecord, Undo

INTERRUPTED = "interrupted: no result was recorded; the call may have had effects. Check before repeating it."
RESTORED = "restored"
"""Name of the log note that shows messages again which were dropped, shrunk or masked."""
UNPINNED = "unpinned"
"""Name of the log note that lets go of a constraint which a summary pinned."""


BY_MESSAGE = "By message:"
"""Stands above the lines and names that were kept of each message."""


class Row(Struct, frozen=True):
    """A message of the log with what is known of it: its seq, tokens (counted once), entry id, time and sha256."""

    seq: int
    message: Message
    tokens: int
    id: str = ""
    at: float = 0.0
    sha256: str = ""


class Region(Struct, frozen=True):
    """Messages `start` to `end` (seq, inclusive) are shown as the summary `s<number>`."""

    start: int
    end: int
    number: int
    seq: int
    record: SummaryRecord


class Laid(Struct, frozen=True):
    """Everything that lies over the log now: disjoint regions in order, stubs and marks by seq, pins by entry seq.

    `epoch` is the seq of the newest overlay that changed what was already sent; `purged` are ranges of messages whose
    text is gone.
    """

    regions: tuple[Region, ...] = ()
    stubs: dict[int, str] = {}
    dropped: frozenset[int] = frozenset()
    shrunk: frozenset[int] = frozenset()
    pins: tuple[tuple[int, Pin], ...] = ()
    unpinned: frozenset[str] = frozenset()
    epoch: int = 0
    summaries: int = 0
    purged: tuple[tuple[int, int], ...] = ()

    @property
    def head(self) -> Region | None:
        """The region that the view opens with, if the beginning is folded."""
        return self.regions[0] if self.regions and self.regions[0].start <= 1 else None


class Shown(Struct, frozen=True):
    """One message of a view: the seq it comes from (0: laid in), its tokens (-1: to be counted), its tool's name."""

    message: ViewMessage
    seq: int = 0
    tokens: int = -1
    tool: str = ""


def lay(overlays: Iterable[Entry]) -> Laid:
    """What the overlays come to: each one applied in order, except those taken back."""
    entries = sorted(overlays, key=lambda entry: entry.seq)
    undone: set[int] = set()
    for entry in reversed(entries):
        if isinstance(entry.body, Undo) and entry.seq not in undone:
            undone.add(entry.body.target)
    regions: list[Region] = []
    stubs: dict[int, str] = {}
    dropped: set[int] = set()
    shrunk: set[int] = set()
    pins: list[tuple[int, Pin]] = []
    unpinned: set[str] = set()
    purged: list[tuple[int, int]] = []
    epoch = 0
    number = 0
    for entry in entries:
        body = entry.body
        if isinstance(body, SummaryRecord):
            number += 1
        if entry.seq in undone:
            continue
        match body:
            case SummaryRecord():
                regions = _absorb(regions, Region(body.covers[0], body.covers[1], number, entry.seq, body))
                epoch = entry.seq
            case MaskEpoch():
                stubs.update(body.stubs)
                epoch = entry.seq
            case Drop():
                (shrunk if body.shrink else dropped).update(body.seqs)
                epoch = entry.seq
            case Note() if body.name == RESTORED:
                for seq in body.data.get("seqs", ()):
                    stubs.pop(seq, None)
                    dropped.discard(seq)
                    shrunk.discard(seq)
                epoch = entry.seq
            case Note() if body.name == UNPINNED:
                unpinned.add(str(body.data.get("text", "")))
                epoch = entry.seq
            case Pin():
                pins.append((entry.seq, body))
            case Purge():
                purged += body.ranges
            case _:
                pass
    return Laid(
        tuple(regions),
        stubs,
        frozenset(dropped),
        frozenset(shrunk),
        tuple(pins),
        frozenset(unpinned),
        epoch,
        number,
        tuple(purged),
    )


def shows_purged(laid: Laid) -> bool:
    """Whether a view would have to show messages whose text is gone."""
    return any(
        not any(region.start <= first and last <= region.end for region in laid.regions) for first, last in laid.purged
    )


def _absorb(regions: Sequence[Region], new: Region) -> list[Region]:
    """The regions after one more record: it takes in its parent and every region it touches."""
    start, end = new.start, new.end
    kept: list[Region] = []
    for region in regions:
        touches = region.start <= end and region.end >= start
        if touches or region.record.id == new.record.parent_id:
            start, end = min(start, region.start), max(end, region.end)
        else:
            kept.append(region)
    kept.append(replace(new, start=start, end=end))
    return sorted(kept, key=lambda region: region.start)


def project(rows: Sequence[Row], laid: Laid, head: Sequence[Shown] = (), start: int = 0) -> list[Shown]:
    """The view of the rows from index `start` on, after `head` (what the view opens with; it is returned too).

    Each call is followed by exactly one result, each in the order of the calls; results without a call and messages
    without content are left out; two answers in a row are parted by a note.
    """
    return extend(list(head), rows, start, len(rows), laid)


def extend(out: list[Shown], rows: Sequence[Row], start: int, stop: int, laid: Laid) -> list[Shown]:
    """Appends the projection of `rows[start:stop]` to `out`; `start` must not lie inside a call's answers."""
    waiting = [region for region in laid.regions if region.start > 1]
    index = start
    while index < stop:
        row = rows[index]
        region = _region_of(waiting, row.seq) if waiting else None
        if region is not None:
            out.append(Shown(ContextNote(summary_text(region.record, region.number), "summary", region.record.id)))
            waiting.remove(region)
            while index < stop and rows[index].seq <= region.end:
                index += 1
            continue
        match row.message:
            case AssistantMessage():
                index = _group(out, rows, index, stop, laid)
                continue
            case UserMessage():
                _user(out, row, laid)
            case ToolResult():
                pass  # its call is not directly before it: nothing may be sent for it
        index += 1
    return out


def _region_of(regions: Sequence[Region], seq: int) -> Region | None:
    return next((region for region in regions if region.start <= seq <= region.end), None)


def _group(out: list[Shown], rows: Sequence[Row], index: int, stop: int, laid: Laid) -> int:
    """An answer with the results of its calls, then what the person said meanwhile; returns the index after them."""
    row = rows[index]
    message = row.message
    assert isinstance(message, AssistantMessage)
    results: dict[str, list[Row]] = {}
    said: list[Row] = []
    end = index + 1
    pending = len(message.tool_calls)
    while end < stop and pending:
        follower = rows[end]
        if isinstance(follower.message, AssistantMessage):
            break
        if any(region.start > 1 and region.start <= follower.seq <= region.end for region in laid.regions):
            break
        if isinstance(follower.message, ToolResult):
            results.setdefault(follower.message.call_id, []).append(follower)
        else:
            said.append(follower)
        end += 1
    if row.seq in laid.dropped or row.seq in laid.shrunk:
        out.append(Shown(ContextNote(_left_out(row, shrink=row.seq in laid.shrunk), "omitted"), row.seq))
    elif message.text.strip() or message.tool_calls:
        _part(out)
        out.append(Shown(message, row.seq, row.tokens))
        for call in message.tool_calls:
            found = results.get(call.id)
            if found:
                out.append(_result(found.pop(0), laid, call.name))
            else:
                out.append(Shown(ToolResult(call.id, INTERRUPTED, is_error=True), 0, -1, call.name))
    for user in said:
        _user(out, user, laid)
    return end


def _part(out: list[Shown]) -> None:
    """Keeps a legal order of roles: no view opens with an answer, and no answer follows another directly."""
    last = out[-1].message if out else None
    if last is None or (isinstance(last, AssistantMessage) and not last.tool_calls):
        out.append(
            Shown(ContextNote("(the conversation went on)" if last else "(earlier messages are left out)", "omitted"))
        )


def _user(out: list[Shown], row: Row, laid: Laid) -> None:
    message = row.message
    assert isinstance(message, UserMessage)
    if row.seq in laid.dropped or row.seq in laid.shrunk:
        out.append(Shown(ContextNote(_left_out(row, shrink=row.seq in laid.shrunk), "omitted"), row.seq))
    elif message.text.strip() or message.images:
        out.append(Shown(message, row.seq, row.tokens))


def _result(row: Row, laid: Laid, tool: str) -> Shown:
    message = row.message
    assert isinstance(message, ToolResult)
    if row.seq in laid.dropped or row.seq in laid.shrunk:
        return Shown(replace(message, text=_left_out(row, shrink=row.seq in laid.shrunk), images=()), row.seq, -1, tool)
    stub = laid.stubs.get(row.seq)
    if stub is not None:
        return Shown(replace(message, text=stub, images=()), row.seq, -1, tool)
    return Shown(message, row.seq, row.tokens, tool)


def _left_out(row: Row, *, shrink: bool) -> str:
    if not shrink:
        return f"[m{row.seq} was left out by the person; history_expand m{row.seq} shows it]"
    text = " ".join(row.message.text.split())
    if isinstance(row.message, AssistantMessage) and row.message.tool_calls:
        text = f"{text} (called {', '.join(call.name for call in row.message.tool_calls)})".strip()
    short = text if len(text) <= 160 else f"{text[:110]} … {text[-40:]}"
    return f"[m{row.seq} shortened: {short}; history_expand m{row.seq} shows it whole]"


class Telling(Protocol):
    """What a record and a draft of one have in common: who wrote it, and its parts."""

    @property
    def strategy(self) -> str: ...
    @property
    def narrative(self) -> str: ...
    @property
    def key_points(self) -> tuple[str, ...]: ...
    @property
    def context(self) -> SummaryContext: ...
    @property
    def digest(self) -> str: ...


_LONGEST_AIM = 16_000
"""Characters of the first request that are looked at: more than a summary shows."""


def aim_of(record: SummaryRecord) -> tuple[int, int]:
    """Seq of the first request of the conversation (0: none), and how many characters of it the record shows."""
    found = (record.context.raw or {}).get("aim")
    return (int(found[0]), int(found[1])) if isinstance(found, list) and len(found) == 2 else (0, 0)


def aim_line(row: Row, redact: Callable[[str], str]) -> str:
    """The first request on one line and masked, as far as a summary might show it."""
    return " ".join(redact(row.message.text[:_LONGEST_AIM]).split())


def aim_text(row: Row, size: int, redact: Callable[[str], str]) -> str:
    """The first request as it stands above a summary: so many characters of its line."""
    line = aim_line(row, redact)
    return f"Asked first (m{row.seq}): {line[:size]}{' …' if size < len(line) else ''}"


def summary_text(record: SummaryRecord, number: int, title: str = "", aim: str = "") -> str:
    """A record as the model reads it; `aim` is the first request, if it is shown above."""
    # Only these two names are filled in: whatever else stands in braces is the person's text.
    named = title.replace("{messages}", str(len(record.message_ids))).replace("{depth}", str(record.depth))
    top = [frame(record.covers, number, named, record.focus), *([aim] if aim else [])]
    return "\n\n".join([*top, *told(record)])


def frame(covers: tuple[int, int], number: int, title: str, focus: str) -> str:
    """What stands above a summary: the title if there is one, what it stands for, what it tells most about."""
    first, last = covers
    handle = f"m{first}-m{last}" if last > first else f"m{first}"
    line = (
        f"Summary s{number} of the conversation up to m{last} (newest part: {handle}; history_expand shows originals)."
    )
    return "\n\n".join(part for part in (title, line, f"Focus: {focus}" if focus else "") if part)


def told(telling: Telling) -> list[str]:
    """The parts of a summary below its frame, as the model reads them."""
    parts = [telling.narrative] if telling.narrative else []
    if telling.strategy != "rules":
        # Rules have told these facts in the narrative; a model lists them apart.
        parts.extend(_list("Key points", telling.key_points))
        parts.extend(_list("Decisions", telling.context.decisions))
        tasks = tuple(_task(item.task, item.owner, item.due) for item in telling.context.action_items)
        parts.extend(_list("To do", tasks))
        parts.extend(_list("Open", telling.context.unresolved))
    if telling.digest:
        parts.append(f"{BY_MESSAGE}\n{telling.digest}")
    return parts


def _list(title: str, lines: Sequence[str]) -> list[str]:
    return ["\n".join([f"{title}:", *(f"- {line}" for line in lines)])] if lines else []


def _task(task: str, owner: str, until: str) -> str:
    return task + (f" ({owner})" if owner else "") + (f" by {until}" if until else "")
