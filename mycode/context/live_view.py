"""The view kept up as messages come in: what is settled is not looked at again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from mycode.context.budget import Count, message_tokens
from mycode.context.projection import Laid, Row, Shown, extend
from mycode.core.messages import AssistantMessage, ContextNote, ToolResult, UserMessage, ViewMessage

Sums = dict[str, tuple[int, int]]
"""Tokens and number of messages by category."""


class LiveView:
    """Owns the projection of a list of rows that only grows; `lay` starts it anew.

    Everything before the newest answer is settled: later rows cannot change it, so that each turn costs only what it
    adds. Equal to `projection.project` at every moment.
    """

    def __init__(self, count: Count) -> None:
        self._count = count
        self._rows: Sequence[Row] = ()
        self._laid = Laid()
        self._shown: list[Shown] = []
        self._messages: list[ViewMessage] = []
        self._settled = 0
        self._settled_row = 0
        self._sums: Sums = {}

    def lay(self, rows: Sequence[Row], start: int, laid: Laid, head: Sequence[Shown]) -> None:
        """From now on: `head`, then the rows from index `start` under these overlays."""
        self._rows, self._laid = rows, laid
        self._shown = [self.counted(item) for item in head]
        self._settled, self._settled_row = len(self._shown), start
        self._sums = added({}, self._shown)
        self._messages = [item.message for item in self._shown]

    def shown(self, footer: Sequence[Shown] = ()) -> list[Shown]:
        """The whole view; the list is the live one, to be read at once and left as it is."""
        del self._shown[self._settled :]
        self._settle(self._newest_answer())
        extend(self._shown, self._rows, self._settled_row, len(self._rows), self._laid)
        self._shown.extend(footer)
        self._count_from(self._settled)
        return self._shown

    def messages(self, footer: Sequence[Shown] = ()) -> tuple[ViewMessage, ...]:
        """The messages of the whole view."""
        shown = self.shown(footer)
        return (*self._messages, *(item.message for item in shown[self._settled :]))

    def sums(self, footer: Sequence[Shown] = ()) -> Sums:
        """Tokens and items of the view by category."""
        shown = self.shown(footer)
        return added(dict(self._sums), shown[self._settled :])

    def counted(self, item: Shown) -> Shown:
        return item if item.tokens >= 0 else replace(item, tokens=message_tokens(item.message, self._count))

    def _settle(self, stop: int) -> None:
        if stop <= self._settled_row:
            return
        extend(self._shown, self._rows, self._settled_row, stop, self._laid)
        self._count_from(self._settled)
        self._sums = added(self._sums, self._shown[self._settled :])
        self._messages.extend(item.message for item in self._shown[self._settled :])
        self._settled, self._settled_row = len(self._shown), stop

    def _newest_answer(self) -> int:
        """Index of the newest answer: what follows it may still be joined by results of its calls."""
        index = len(self._rows) - 1
        while index >= self._settled_row and not isinstance(self._rows[index].message, AssistantMessage):
            index -= 1
        if index < self._settled_row:
            return self._settled_row
        seq = self._rows[index].seq
        region = next((r for r in self._laid.regions if r.start > 1 and r.start <= seq <= r.end), None)
        if region is not None:
            # Inside a folded stretch there is nothing to join: it is shown as one note, which must not come twice.
            while index < len(self._rows) and self._rows[index].seq <= region.end:
                index += 1
        return index

    def _count_from(self, start: int) -> None:
        for i in range(start, len(self._shown)):
            if self._shown[i].tokens < 0:
                self._shown[i] = self.counted(self._shown[i])


def category(message: ViewMessage) -> str:
    """The part of `/context` under which a message is counted."""
    match message:
        case UserMessage():
            return "user"
        case AssistantMessage():
            return "assistant"
        case ToolResult():
            return "tool results"
        case ContextNote(source="memory" | "pins" | "summary" as source):
            return source
        case _:
            return "other"


def added(sums: Sums, shown: Iterable[Shown]) -> Sums:
    """`sums` with these messages put in, which are counted."""
    for item in shown:
        name = category(item.message)
        tokens, items = sums.get(name, (0, 0))
        sums[name] = (tokens + item.tokens, items + 1)
    return sums
