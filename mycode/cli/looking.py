"""Looks at kept sessions without opening them: nothing is taken, nothing is written."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator

from mycode.core.entries import Entry
from mycode.core.summaries import Undo
from mycode.core.visible import one_line
from mycode.session.catalogue import SessionInfo
from mycode.session.entries import text_of
from mycode.session.store import Store


class Reader:
    """A session's entries as a shell command shows them."""

    def __init__(self, store: Store, info: SessionInfo) -> None:
        self._log = store.log(info.id)

    def summaries(self) -> list[Entry]:
        return self._log.marked("summary")

    def undone(self) -> frozenset[int]:
        """Seqs of the entries that were taken back."""
        return frozenset(entry.body.target for entry in self._log.marked("undo") if isinstance(entry.body, Undo))

    def entries(self, *, newest: int | None, grep: str = "") -> Iterable[Entry]:
        """Messages, ascending: the newest so many, or all; with `grep` those that hold the text in any case."""
        wanted = grep.casefold()
        if newest is None:
            return (entry for entry in self._messages() if wanted in text_of(entry.body).casefold())
        found: deque[Entry] = deque()
        for entry in self._log.newest():
            if wanted in text_of(entry.body).casefold():
                found.appendleft(entry)
            if len(found) == newest:
                break
        return found

    def _messages(self) -> Iterator[Entry]:
        return (entry for entry in self._log.read(1) if entry.message is not None)


def open_to_read(store: Store, info: SessionInfo) -> Reader:
    """A reader of that session."""
    return Reader(store, info)


def print_history(info: SessionInfo, reader: Reader, entries: Iterable[Entry], *, full: bool) -> None:
    """The panel of `/history` on standard output; boxes and colours only where a terminal can show them."""
    from mycode.cli.screen import canvas
    from mycode.render.panels.history import history_panel

    drawn = canvas()
    panel = history_panel(
        list(entries),
        reader.summaries(),
        total=info.messages,
        width=drawn.width,
        undone=reader.undone(),
        full=full,
        plain_text=drawn.plain,
    )
    sys.stdout.write(drawn.text(panel))


def line_of(info: SessionInfo) -> str:
    """One session as one line: id, time, size, title."""
    from datetime import datetime

    when = datetime.fromtimestamp(info.updated).astimezone().strftime("%Y-%m-%d %H:%M")
    size = f"{info.messages:5} {'message ' if info.messages == 1 else 'messages'}"
    return f"{info.id}  {when}  {size}  {one_line(info.title or 'untitled', 60)}"
