"""Sessions that share a past: who still shows what, and how a fork begins when some of that past was purged."""

from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from mycode.context.projection import lay, shows_purged
from mycode.core.entries import Body, Entry, Purge, Purged
from mycode.core.errors import SessionError
from mycode.core.summaries import SummaryRecord, Undo
from mycode.session.database import Database
from mycode.session.locks import Holder
from mycode.session.log import SessionLog

Ranges = tuple[tuple[int, int], ...]
# All sessions of one origin, those too that only forks of them still need.
TREE = """up(n, base) AS (SELECT n, base FROM sessions WHERE n = ?1
        UNION SELECT s.n, s.base FROM sessions s JOIN up ON s.n = up.base),
    tree(n) AS (SELECT n FROM up UNION SELECT s.n FROM sessions s JOIN tree ON s.base = tree.n)"""


class Relative(Struct, frozen=True):
    """Another living session of the same origin; `busy` while a living process (this one too) has it open."""

    number: int
    session_id: str
    busy: bool


def family_of(database: Database, number: int) -> list[Relative]:
    """The other living sessions of the origin of session `number`."""
    rows = database.rows(
        f"WITH RECURSIVE {TREE} "  # noqa: S608  # TREE is a constant
        "SELECT s.n, s.id, l.token, l.host, l.boot, l.pid, l.started FROM tree JOIN sessions s ON s.n = tree.n "
        "LEFT JOIN locks l ON l.session = s.n WHERE s.deleted = 0 AND s.n <> ?1 ORDER BY s.n",
        (number,),
    )
    found = []
    for row in rows:
        other, session_id, holder = cast("tuple[int, str, str | None]", row[:3])
        busy = holder is not None and Holder(*row[3:]).alive  # type: ignore[arg-type]  # its columns are the fields
        found.append(Relative(other, session_id, busy))
    return found


def shared(log: SessionLog, other: SessionLog) -> list[tuple[int, int]]:
    """Ranges of seq whose rows both see."""
    mine = {session: (first, last) for session, first, last in log.spans()}
    found = []
    for session, first, last in other.spans():
        if session in mine:
            low, high = max(first, mine[session][0]), min(last, mine[session][1])
            if low <= high:
                found.append((low, high))
    return found


def bodies_at_fork(log: SessionLog, at_seq: int) -> list[Body]:
    """What a fork at `at_seq` of a whole log must begin with so that it shows nothing that was purged since.

    Raises `SessionError` where no summary stands for all of that.
    """
    overlays = log.every_overlay()
    later = [entry.body for entry in overlays if isinstance(entry.body, Purge) and entry.seq > at_seq]
    later = [body for body in later if clipped(body.ranges, at_seq)]
    if not later:
        return []
    undone = {entry.body.target for entry in overlays if isinstance(entry.body, Undo)}
    standing = [entry for entry in overlays if isinstance(entry.body, SummaryRecord) and entry.seq not in undone]
    again: list[Body] = [
        entry.body
        for entry in standing
        if entry.seq > at_seq and isinstance(entry.body, SummaryRecord) and entry.body.covers[1] <= at_seq
    ]
    purges = [_part(log, body, at_seq) for body in later]
    early = [entry for entry in overlays if entry.seq <= at_seq]
    laid = lay([*early, *(Entry(at_seq + place, "", 0.0, body) for place, body in enumerate([*again, *purges], 1))])
    if shows_purged(laid):
        ends = [entry.body.covers[1] for entry in standing if isinstance(entry.body, SummaryRecord)]
        reach = min((end for end in ends if end >= at_seq), default=log.last_seq())
        message = (
            f"The conversation cannot go back to just after m{at_seq}: what was said before was {later[-1].text}. "
            f"The earliest place is just after m{reach}."
        )
        raise SessionError(message)
    return [*again, *purges]


def _part(log: SessionLog, body: Purge, last: int) -> Purge:
    """A purge as far as it concerns the entries up to and with `last`."""
    ranges = clipped(body.ranges, last)
    left = [
        entry.body.chars
        for start, end in ranges
        for entry in log.read(start, end + 1)
        if isinstance(entry.body, Purged) and entry.message is not None
    ]
    pins = tuple(pin for pin in body.pins if pin <= last)
    return replace(body, ranges=ranges, messages=len(left), chars=sum(left), pins=pins)


def clipped(ranges: Ranges, last: int) -> Ranges:
    """The ranges as far as they go up to and with `last`."""
    return tuple((start, min(end, last)) for start, end in ranges if start <= last)
