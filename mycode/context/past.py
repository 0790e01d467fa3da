"""The messages held in memory and the log behind them: what is folded is let go, and read again when asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from mycode.context.projection import Row
from mycode.core.entries import Entry, Log, Purged
from mycode.core.messages import AssistantMessage, ToolCall, ToolResult


class Past:
    """Owns the rows from `start` on, and before them what a summary carries on: the first prompt and the newest.

    Only what the log holds is ever let go: without a log, or while the disk refuses, everything stays.
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.start = 1
        self._log: Log | None = None

    def open(self, log: Log) -> None:
        """Another conversation, of which nothing is read yet."""
        self._log = log
        self.rows = []
        self.start = self.stored() + 1

    def append(self, row: Row) -> None:
        self.rows.append(row)

    def stored(self) -> int:
        """The newest seq that the log holds (0: none)."""
        return self._log.last_seq() if self._log is not None else 0

    def hold(self, start: int, carried: int = 0, aim: int = 0) -> None:
        """From now on the rows from `start` on are held, and those with seq `carried` and `aim` (0: none)."""
        wanted = sorted({seq for seq in (carried, aim) if 0 < seq < start})
        extras = [row for seq in wanted if (row := self.original(seq)) is not None]
        if start < self.start:
            self.rows = [*self._read(start, self.start), *self.rows[self.after(self.start - 1) :]]
        else:
            start = min(start, self.stored() + 1)
            self.rows = self.rows[self.after(start - 1) :]
        self.start = start
        self.rows[:0] = [row for row in extras if row.seq < start]

    def after(self, seq: int) -> int:
        """Index of the first row after that seq."""
        return bisect_right(self.rows, seq, key=_seq)

    def row(self, seq: int) -> Row | None:
        """The message with that seq, if it is held."""
        index = self.after(seq) - 1
        return self.rows[index] if index >= 0 and self.rows[index].seq == seq else None

    def original(self, seq: int) -> Row | None:
        """The message with that seq, read from the log if it is not held."""
        return self.row(seq) or next(iter(self._read(seq, seq + 1)), None)

    def call_of(self, row: Row) -> ToolCall | None:
        """The call that a result answers."""
        assert isinstance(row.message, ToolResult)
        for index in range(self.after(row.seq) - 2, -1, -1):
            message = self.rows[index].message
            if isinstance(message, AssistantMessage):
                return next((call for call in message.tool_calls if call.id == row.message.call_id), None)
        return None

    def originals(self, end: int, tokens: int) -> tuple[list[Row], bool]:
        """The newest messages up to `end` that hold about so many tokens, and whether these are all there are."""
        first, stop = self.after(self.start - 1), self.after(end)
        index, held = stop, 0
        while index > first and held < tokens:
            index -= 1
            held += self.rows[index].tokens
        rows, start = self.rows[index:stop], self.start if index == first else end
        if held < tokens and self.start > 1:
            start = self.begin(min(end, self.start - 1), tokens - held)
            rows = [*self._read(start, min(end + 1, self.start)), *rows]
        # What was purged is not among the rows.
        return rows, start <= 1 and (self._log is None or len(rows) >= self._log.messages(1, end + 1))

    def begin(self, end: int, tokens: int) -> int:
        """The newest seq from which on the messages up to `end` hold so many tokens; 1 if all together hold fewer."""
        low, high = 1, end
        while self._log is not None and low < high:
            middle = (low + high + 1) // 2
            if self._log.tokens(middle, end + 1) >= tokens:
                low = middle
            else:
                high = middle - 1
        return low

    def _read(self, start: int, stop: int) -> Iterator[Row]:
        if self._log is not None and start < stop:
            yield from _rows(self._log.read(start, stop))


def _rows(entries: Iterable[Entry]) -> Iterator[Row]:
    for entry in entries:
        if (message := entry.message) is not None and not isinstance(entry.body, Purged):
            yield Row(entry.seq, message, entry.tokens, entry.id, entry.at, entry.sha256)


def _seq(row: Row) -> int:
    return row.seq
