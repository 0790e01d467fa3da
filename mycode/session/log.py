"""A session's rows, read in parts: nobody who resumes a long session reads all of it."""

from collections.abc import Collection, Iterator, Sequence
from typing import cast

from msgspec import Struct

from mycode.core.entries import Entry
from mycode.core.summaries import Undo
from mycode.session.database import Database
from mycode.session.entries import decode_body

_PAGE = 256
_PAGE_BACK = 64
_ENDLESS = 2**62

_FORWARD = """SELECT seq, id, at, tokens, sha256, body FROM entries
    WHERE session = ? AND seq >= ? AND seq <= ? ORDER BY seq LIMIT ?"""
_BACKWARD = """SELECT seq, id, at, tokens, sha256, body FROM entries
    WHERE session = ? AND seq >= ? AND seq <= ? AND sort = 1 ORDER BY seq DESC LIMIT ?"""
_OVERLAYS = """SELECT seq, id, at, tokens, sha256, body FROM entries
    WHERE session = ? AND seq >= ? AND seq <= ? AND sort = 2 ORDER BY seq LIMIT ?"""
# A mask that lies under a summary shows nothing any more.
_COVERED = """SELECT seq, id, at, tokens, sha256, coalesce(brief, body) FROM entries
    WHERE session = ? AND seq >= ? AND seq <= ? AND sort = 2 AND role <> 'mask' ORDER BY seq LIMIT ?"""
_MARKED = """SELECT seq, id, at, tokens, sha256, body FROM entries
    WHERE session = ? AND role = ? AND sort <> 1 AND seq >= ? AND seq <= ? ORDER BY seq DESC LIMIT ?"""


class Segment(Struct, frozen=True):
    """A part of a forked session's past: the rows of session number `session` up to and with seq `last`."""

    session: int
    last: int


class SessionLog:
    """A session's rows, its own and those it shares with the session it was forked from. A `core.entries.Log`."""

    def __init__(self, database: Database, number: int) -> None:
        self._database = database
        self._number = number
        # The parts of the past, oldest first; the last one is the session's own and grows.
        self._segments = _segments(database, number)

    def read(self, start: int, stop: int | None = None) -> Iterator[Entry]:
        """Entries with start <= seq < stop, ascending, a page at a time."""
        return self._forward(_FORWARD, start, stop)

    def overlays(self, undone: Collection[int] = ()) -> list[Entry]:
        """Every entry that may change the view, ascending; those with the seqs `undone` are about to be taken back.

        What comes with every turn is left out. Of a past that a summary in force covers, only the places of older
        summaries are told, and no masks: enough for every view until that summary is taken back, too.
        """
        from mycode.context.projection import lay

        places = list(self._forward(_COVERED, 1, None))
        head = lay([*places, *(_taken_back(seq) for seq in undone)]).head
        end = head.end if head is not None else 0
        return [*(entry for entry in places if entry.seq <= end), *self._forward(_OVERLAYS, end + 1, None)]

    def every_overlay(self) -> list[Entry]:
        """All of them, whole, also those that no view needs."""
        return list(self._forward(_OVERLAYS, 1, None))

    def newest(self, stop: int | None = None) -> Iterator[Entry]:
        """Messages with seq < stop, newest first, a page at a time."""
        for session, low, high in reversed(list(self._spans(1, stop))):
            while low <= high:
                rows = self._database.rows(_BACKWARD, (session, low, high, _PAGE_BACK))
                for row in rows:
                    yield entry_of(row)
                if len(rows) < _PAGE_BACK:
                    break
                high = cast("int", rows[-1][0]) - 1

    def marked(self, role: str, *, newest: int | None = None) -> list[Entry]:
        """Entries of one role that is no message (`turn_ended`, ...), ascending; the newest only if asked."""
        found: list[Entry] = []
        for session, low, high in reversed(list(self._spans(1, None))):
            left = -1 if newest is None else newest - len(found)
            if left == 0:
                break
            rows = self._database.rows(_MARKED, (session, role, low, high, left))
            found.extend(map(entry_of, rows))
        return found[::-1]

    def entry(self, seq: int) -> Entry | None:
        return next(iter(self.read(seq, seq + 1)), None)

    def last_seq(self) -> int:
        """0 when empty."""
        return self._totals()[0]

    def tokens(self, start: int, stop: int | None = None) -> int:
        """Sum of `Entry.tokens` over messages in the range, without reading them."""
        return self._between(start, stop)[0]

    def messages(self, start: int, stop: int | None = None) -> int:
        """How many messages are in the range, without reading them."""
        return self._between(start, stop)[1]

    def sums(self, seq: int) -> tuple[int, int]:
        """Tokens and number of all messages up to and with `seq`."""
        last, tokens, messages = self._totals()
        if seq >= last:
            return tokens, messages
        row = self._database.row(
            "SELECT sum_tokens, sum_messages FROM entries WHERE session = ? AND seq = ?", (self.owner(seq), seq)
        )
        return (0, 0) if row is None else cast("tuple[int, int]", row)

    def owner(self, seq: int) -> int:
        """The number of the session that the row belongs to."""
        return next(segment.session for segment in self._segments if seq <= segment.last)

    def spans(self) -> list[tuple[int, int, int]]:
        """(session number, first seq, last seq) of each part, oldest first."""
        return list(self._spans(1, None))

    def _forward(self, query: str, start: int, stop: int | None) -> Iterator[Entry]:
        for session, low, high in self._spans(start, stop):
            while low <= high:
                rows = self._database.rows(query, (session, low, high, _PAGE))
                for row in rows:
                    yield entry_of(row)
                if len(rows) < _PAGE:
                    break
                low = cast("int", rows[-1][0]) + 1

    def _between(self, start: int, stop: int | None) -> tuple[int, int]:
        last, tokens, messages = self._totals()
        high = (tokens, messages) if stop is None or stop > last else self.sums(stop - 1)
        low = self.sums(start - 1) if start > 1 else (0, 0)
        return max(0, high[0] - low[0]), max(0, high[1] - low[1])

    def _totals(self) -> tuple[int, int, int]:
        row = self._database.row("SELECT last_seq, tokens, messages FROM sessions WHERE n = ?", (self._number,))
        return (0, 0, 0) if row is None else cast("tuple[int, int, int]", row)

    def _spans(self, start: int, stop: int | None) -> Iterator[tuple[int, int, int]]:
        low = max(1, start)
        for segment in self._segments:
            high = segment.last if stop is None else min(segment.last, stop - 1)
            if low <= high:
                yield segment.session, low, high
                low = high + 1


def entry_of(row: Sequence[object]) -> Entry:
    seq, entry_id, at, tokens, sha256, body = cast("tuple[int, str, float, int, str, str]", tuple(row))
    return Entry(seq, entry_id, at, decode_body(body.encode()), tokens, sha256)


def _taken_back(seq: int) -> Entry:
    return Entry(_ENDLESS, "", 0.0, Undo(seq))


def _segments(database: Database, number: int) -> list[Segment]:
    segments: list[Segment] = []
    session: int | None = number
    last = _ENDLESS
    while session is not None:
        segments.append(Segment(session, last))
        row = database.row("SELECT base, base_seq FROM sessions WHERE n = ?", (session,))
        if row is None:
            break
        session, base_seq = cast("tuple[int | None, int]", row)
        last = min(last, base_seq)
    return segments[::-1]
