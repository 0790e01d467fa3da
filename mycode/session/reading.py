"""Parts of a session's past as panels ask for them: a range, the newest few, those that hold a text."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, takewhile

from mycode.core.entries import Entry
from mycode.session.entries import text_of
from mycode.session.log import SessionLog


def history(
    log: SessionLog,
    waiting: Sequence[Entry],
    *,
    first: int | None = None,
    last: int | None = None,
    newest: int | None = None,
    grep: str = "",
    audit: bool = False,
) -> Iterator[Entry]:
    """Messages with first <= seq <= last, ascending, read as they are taken; `waiting` are not in the log yet.

    `newest` keeps only the last so many, `grep` those that hold the text in any case; `audit` gives every entry.
    """
    start, stop = first or 1, None if last is None else last + 1
    late = [entry for entry in waiting if start <= entry.seq and (stop is None or entry.seq < stop)]
    if newest is not None and not audit:
        backwards = chain((entry for entry in reversed(late) if entry.message), log.newest(stop))
        found = _holding(takewhile(lambda entry: entry.seq >= start, backwards), grep)
        return reversed(list(islice(found, newest)))
    entries = (entry for entry in chain(log.read(start, stop), late) if audit or entry.message)
    return _holding(entries, grep) if newest is None else iter(deque(_holding(entries, grep), newest))


def _holding(entries: Iterable[Entry], text: str) -> Iterator[Entry]:
    wanted = text.casefold()
    return (entry for entry in entries if not wanted or wanted in text_of(entry.body).casefold())
