"""`/history --audit`: every row of the log; of each change of the view who made it, of what, and what it brought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from mycode.core.entries import Checkpoint, Entry, Grant, Note, Purge, Purged, Unknown
from mycode.core.messages import AssistantMessage, ToolResult
from mycode.core.summaries import Drop, MaskEpoch, Pin, SummaryRecord, TriggerReason, Undo
from mycode.core.visible import display_width, one_line
from mycode.render.numbers import clock, plural, tokens

_WORDS = 80
_HANDLES = 12


def audit_panel(entries: Sequence[Entry], *, width: int, plain_text: bool = False) -> RenderableType:
    """A line for each row: its number, its time, what it is, the beginning of its sha256 (R117).

    Sizes of what was left out, restored or undone are read from the rows given; where these are not all, they may be
    missing.
    """
    known = {entry.seq: entry for entry in entries}
    rows: list[RenderableType] = [Text()]
    for entry in entries:
        head = f"{entry.seq:>6} {clock(entry.at, date=True)}"
        told = _told(entry, known) + (f", sha256 {entry.sha256[:12]}" if entry.sha256 else "")
        if plain_text or display_width(f"{head} {told}") <= width:
            rows.append(Text(f"{head} {told}"))
        else:
            rows += [Text(head), Padding(Text(told), (0, 0, 0, min(7, width // 4)), expand=False)]
    return Group(*rows)


def _told(entry: Entry, known: Mapping[int, Entry]) -> str:
    body = entry.body
    match body:
        case Purged(text=text):
            return f"message {_role(entry)}, {tokens(entry.tokens)} tokens, {text}"
        case Purge(text=text):
            return one_line(text, 400)
        case SummaryRecord() | MaskEpoch() | Drop() | Undo() | Pin():
            return f"{_change(body, known)}, {_who(body)}{_sizes(body, known)}"
        case Grant():
            rule = f" ({one_line(body.rule, _WORDS)})" if body.rule else ""
            return f"permission {body.answer}, by {body.by}{rule}: {one_line(body.title, _WORDS)}"
        case Checkpoint(turn=turn):
            return f"checkpoint of the files before turn {turn}"
        case Note():
            return _noted(body, known)
        case Unknown():
            return "of a kind that this version does not know"
        case _:
            return f"message {_role(entry)}, {tokens(entry.tokens)} tokens"


def _change(body: SummaryRecord | MaskEpoch | Drop | Undo | Pin, known: Mapping[int, Entry]) -> str:
    match body:
        case SummaryRecord(covers=(first, last)):
            rebuilt = ", rebuilt from the originals" if body.parent_id and not body.depth else ""
            ids = plural(len(body.message_ids), "message")
            return f"summary of m{first}-m{last} ({ids}), {body.strategy}, depth {body.depth}{rebuilt}"
        case MaskEpoch(stubs=stubs):
            return f"masked {_handles(stubs)}"
        case Drop(seqs=seqs, shrink=shrink):
            return f"{'shortened' if shrink else 'left out'} {_handles(seqs)}"
        case Pin(text=text, message_seq=seq):
            return f"pinned {f'm{seq}: ' if seq else ''}“{one_line(text, _WORDS)}”"
        case Undo(target=target):
            entry = known.get(target)
            what = _change(entry.body, known) if entry is not None and isinstance(entry.body, _CHANGES) else "a change"
            return f"undone: row {target}, {what}"


def _who(body: SummaryRecord | MaskEpoch | Drop | Undo | Pin) -> str:
    match body:
        case SummaryRecord(trigger=reason) | MaskEpoch(trigger=reason):
            return _by(reason)
        case Pin(source="constraint"):
            return "by itself (a constraint)"
        case _:
            return "by hand"


def _by(reason: TriggerReason | None) -> str:
    if reason is None:
        return "by itself"
    return "by hand" if reason == "manual" else f"by itself ({reason.replace('_', ' ')})"


def _sizes(body: SummaryRecord | MaskEpoch | Drop | Undo | Pin, known: Mapping[int, Entry]) -> str:
    match body:
        case SummaryRecord() | MaskEpoch():
            return f", {tokens(body.tokens_before)} → {tokens(body.tokens_after)} tokens"
        case Drop(seqs=seqs):
            return _size_of(seqs, known)
        case Undo(target=target):
            entry = known.get(target)
            if entry is not None and isinstance(entry.body, SummaryRecord | MaskEpoch):
                return f", {tokens(entry.body.tokens_after)} → {tokens(entry.body.tokens_before)} tokens as of then"
            return _size_of(entry.body.seqs, known) if entry is not None and isinstance(entry.body, Drop) else ""
        case _:
            return ""


def _noted(note: Note, known: Mapping[int, Entry]) -> str:
    data = note.data
    match note.name:
        case "restored":
            seqs = [seq for seq in data.get("seqs", ()) if isinstance(seq, int)]
            return f"restored {_handles(seqs)}, by hand{_size_of(seqs, known)}"
        case "unpinned":
            return f"unpinned “{one_line(str(data.get('text', '')), _WORDS)}”, by hand"
        case "turn_ended":
            return f"turn {data.get('turn')} ended: {one_line(str(data.get('reason')), 20)}"
        case "model_set":
            return f"model: {one_line(str(data.get('model')), _WORDS)}"
        case _:
            return f"note {one_line(note.name, 60)}"


def _size_of(seqs: Sequence[int], known: Mapping[int, Entry]) -> str:
    """What these messages hold, if all of them are known."""
    found = [known[seq].tokens for seq in seqs if seq in known]
    return f", {tokens(sum(found))} tokens" if found and len(found) == len(seqs) else ""


def _handles(seqs: Sequence[int] | Mapping[int, str]) -> str:
    numbers = sorted(seqs)
    shown = ", ".join(f"m{seq}" for seq in numbers[:_HANDLES])
    return shown if len(numbers) <= _HANDLES else f"{shown} and {len(numbers) - _HANDLES} more"


def _role(entry: Entry) -> str:
    match entry.message:
        case AssistantMessage():
            return "Agent"
        case ToolResult(is_error=failed):
            return "Tool (failed)" if failed else "Tool"
        case None:
            return "Note"
        case _:
            return "You"


_CHANGES = (SummaryRecord, MaskEpoch, Drop, Undo, Pin)
