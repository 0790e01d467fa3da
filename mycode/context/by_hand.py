"""What a person changes in the view by hand: the entry that does it, and the sentence that tells of it."""

from __future__ import annotations

from collections.abc import Container, Sequence

from msgspec import Struct

from mycode.context import cutting, pins, projection
from mycode.context.conversation import Conversation
from mycode.core.entries import Body, Note
from mycode.core.errors import InputError
from mycode.core.summaries import Drop, MaskEpoch, Pin, SummaryRecord, Undo


class Change(Struct, frozen=True):
    """An overlay to be laid, and what it does in a sentence."""

    body: Body
    text: str


def undo(talk: Conversation) -> Change | None:
    """Takes back the newest change of the view, None if there is none; raises where its originals were purged."""
    entry = talk.newest_undoable()
    if entry is None:
        return None
    if not talk.can_lift(entry.seq):
        message = "This summary cannot be undone: originals under it were purged. /history --audit tells when and why."
        raise InputError(message)
    return Change(Undo(entry.seq), f"Undone: {_undone(entry.body)}; the view is as it was before it.")


def drop(talk: Conversation, seqs: Sequence[int]) -> Change:
    """Leaves messages out; those that are not in view, or the newest thing that was said, cannot be."""
    _check(talk, seqs)
    news = _others(seqs, talk.laid.dropped, "left out already")
    return Change(Drop(news), f"Left out: {_handles(news)}.")


def shrink(talk: Conversation, seqs: Sequence[int]) -> Change:
    """Shows messages as one line each."""
    _check(talk, seqs)
    seen = _others(seqs, talk.laid.dropped, "left out; /context restore shows what was left out")
    news = _others(seen, talk.laid.shrunk, "shortened already")
    return Change(Drop(news, shrink=True), f"Shortened: {_handles(news)}.")


def restore(talk: Conversation, seqs: Sequence[int]) -> Change:
    """Shows messages whole again that were left out, shortened or masked."""
    laid = talk.laid
    whole = {seq for seq in seqs if seq not in {*laid.dropped, *laid.shrunk, *laid.stubs}}
    for seq in whole:
        _held(talk, seq)
    news = _others(seqs, whole, "shown whole already")
    return Change(Note(projection.RESTORED, {"seqs": list(news)}), f"Restored: {_handles(news)}.")


def pin(talk: Conversation, what: str | int) -> Change:
    """Keeps a text, or the text of message `what` (folded or not), word for word."""
    if isinstance(what, str):
        body = Pin(what)
    else:
        row = talk.past.original(what)
        if row is None:
            message = f"There is no message m{what} to pin."
            raise InputError(message)
        body = Pin(row.message.text, "message", what)
    if not body.text.strip():
        message = "There is no text to pin."
        raise InputError(message)
    return Change(body, f"Pinned: {' '.join(body.text.split())[:80]}")


def unpin(talk: Conversation, number: int) -> Change:
    """Lets go of a pin, by its number from 1."""
    texts = pins.all_pins(talk.laid)
    if not 1 <= number <= len(texts):
        message = f"There is no pin {number}; there are {len(texts)}."
        raise InputError(message)
    text = texts[number - 1]
    seq = next((seq for seq, pin in talk.laid.pins if pin.text == text), None)
    body = Undo(seq) if seq is not None else Note(projection.UNPINNED, {"text": text})
    return Change(body, f"Unpinned: {' '.join(text.split())[:80]}")


def _check(talk: Conversation, seqs: Sequence[int]) -> None:
    newest = cutting.newest_user(talk.rows)
    for seq in seqs:
        _held(talk, seq)
        if newest is not None and talk.rows[newest].seq == seq:
            message = f"m{seq} is the newest thing you said; it stays."
            raise InputError(message)


def _held(talk: Conversation, seq: int) -> None:
    if talk.past.row(seq) is None:
        message = f"There is no message m{seq} in view."
        raise InputError(message)


def _others(seqs: Sequence[int], done: Container[int], how: str) -> tuple[int, ...]:
    """Those of the messages for which there is something to do, each once; raises if there are none."""
    news = tuple(seq for seq in dict.fromkeys(seqs) if seq not in done)
    if not news:
        message = f"{_handles(seqs)} {'is' if len(seqs) == 1 else 'are'} {how}."
        raise InputError(message)
    return news


def _undone(body: Body) -> str:
    """What an undo takes back, in words."""
    match body:
        case SummaryRecord():
            return "the last summary"
        case MaskEpoch():
            return "the last masking of old results"
        case Drop(seqs=seqs, shrink=shrink):
            return f"{'shortening' if shrink else 'leaving out'} {_handles(seqs)}"
        case Note(name=projection.RESTORED, data=data):
            return f"restoring {_handles(data['seqs'])}"
        case _:
            return "the last change by hand"


def _handles(seqs: Sequence[int]) -> str:
    return ", ".join(f"m{seq}" for seq in seqs)
