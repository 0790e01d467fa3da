"""Which originals under a summary may go, and what is left of them (R116, C22): decided here, done by `deletion`."""

from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from mycode.context.conversation import carried_by
from mycode.context.policy import Policy
from mycode.context.projection import lay, shows_purged
from mycode.core.entries import Body, Entry, Purge, Purged, PurgedText
from mycode.core.errors import SessionError
from mycode.core.messages import AssistantMessage, Message, ToolResult, UserMessage
from mycode.core.patterns import pattern
from mycode.core.summaries import Pin, SummaryRecord, Undo
from mycode.session.database import Database
from mycode.session.entries import encode_body, role_of, sha256_of, text_of
from mycode.session.locks import Holder
from mycode.session.log import SessionLog
from mycode.session.texts import Texts

Ranges = tuple[tuple[int, int], ...]
_DAY = 86_400.0
# All sessions of one origin, those too that only forks of them still need.
_TREE = """up(n, base) AS (SELECT n, base FROM sessions WHERE n = ?1
        UNION SELECT s.n, s.base FROM sessions s JOIN up ON s.n = up.base),
    tree(n) AS (SELECT n FROM up UNION SELECT s.n FROM sessions s JOIN tree ON s.base = tree.n)"""
_HANDLE = pattern(r"history_expand t(\d+)")


class Rule(Struct, frozen=True):
    """What may go: messages said more than `days` days ago, never the newest `keep`.

    With `undoable` also nothing that lifting the newest summary would show again.
    """

    days: float = 0.0
    keep: int = 10
    undoable: bool = False


class Row(Struct, frozen=True):
    """A message that goes, and what is left of it."""

    seq: int
    left: Purged
    texts: tuple[int, ...] = ()


class Told(Struct, frozen=True):
    """A session whose log has to tell of a purge, by its number, and the entry."""

    number: int
    session_id: str
    body: Purge


class Plan(Struct, frozen=True):
    """What a purge of one session removes, without any of its words.

    `summaries` are those (`s<number>`) that cannot be lifted afterwards; `shown_by` names the sessions for whose sake
    `held` more messages stay: forks that still show them, or that are open elsewhere.
    """

    session_id: str
    number: int
    rows: tuple[Row, ...] = ()
    texts: tuple[PurgedText, ...] = ()
    summaries: tuple[int, ...] = ()
    held: int = 0
    shown_by: tuple[str, ...] = ()
    told: tuple[Told, ...] = ()

    @property
    def messages(self) -> int:
        return len(self.rows)

    @property
    def chars(self) -> int:
        return sum(row.left.chars for row in self.rows)


def rule_of(policy: Policy) -> Rule | None:
    """What the settings say; None where originals are kept."""
    if policy.originals.policy == "keep":
        return None
    days = policy.originals.days if policy.originals.policy == "purge_after_days" else 0
    return Rule(days, policy.keep.recent_messages)


def plan(database: Database, number: int, session_id: str, rule: Rule, *, now: float, why: str, token: str) -> Plan:
    """What may go of a session now. Reads only what lies under its summaries and was not purged yet.

    `token` is that of the store that asks: what other living processes have open counts as shown.
    """
    log = SessionLog(database, number)
    own = _Own(log, rule, now)
    family = _family(database, number, token)
    shares = [(other, spans) for other in family if (spans := _shared(log, SessionLog(database, other.number)))]
    groups: list[list[Row]] = []
    held, shown_by = 0, set[str]()
    known: dict[int, tuple[_Own, set[int]]] = {}
    for group in own.groups():
        in_the_way = set[str]()
        for other, spans in shares:
            touched = [row.seq for row in group if any(first <= row.seq <= last for first, last in spans)]
            if touched and other.number not in known:
                theirs = _Own(SessionLog(database, other.number), rule, now)
                allowed = set[int]() if other.busy else {row.seq for one in theirs.groups() for row in one}
                known[other.number] = theirs, allowed
            if any(seq not in known[other.number][1] for seq in touched):
                in_the_way.add(other.session_id)
        if in_the_way:
            held += len(group)
            shown_by |= in_the_way
        else:
            groups.append(group)
    rows = tuple(row for group in groups for row in group)
    if not rows:
        return Plan(session_id, number, held=held, shown_by=tuple(sorted(shown_by)))
    stays = tuple(own.stays(rows))
    texts = _texts(database, log, number, rows)

    def told(own: _Own, spans: Sequence[tuple[int, int]]) -> Purge:
        theirs = [row for row in rows if any(first <= row.seq <= last for first, last in spans)]
        gone = {row.seq: row.left.chars for row in theirs}
        return Purge(
            now, why, ranges_of(gone, stays), len(gone), sum(gone.values()), texts, own.lifted_pins(gone.keys())
        )

    tellings = [Told(number, session_id, told(own, [(1, log.last_seq())]))]
    tellings += [
        Told(other.number, other.session_id, told(known[other.number][0], spans))
        for other, spans in shares
        if other.number in known
    ]
    return Plan(
        session_id,
        number,
        tuple(replace(row, left=replace(row.left, at=now)) for row in rows),
        texts,
        own.bound(rows),
        held,
        tuple(sorted(shown_by)),
        tuple(telling for telling in tellings if telling.body.messages),
    )


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
            f"The conversation cannot go back to m{at_seq}: what was said before is {later[-1].text}. "
            f"The earliest place to go back to is m{reach}."
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


def _texts(database: Database, log: SessionLog, number: int, rows: Sequence[Row]) -> tuple[PurgedText, ...]:
    """Kept texts that only messages named which go, and those before them that nobody names any more."""
    newest = max((text for row in rows for text in row.texts), default=0)
    if not newest:
        return ()
    gone = {(log.owner(row.seq), row.seq) for row in rows}
    naming = database.rows(
        f"WITH RECURSIVE {_TREE} SELECT session, seq, body FROM entries WHERE session IN (SELECT n FROM tree) "  # noqa: S608
        "AND sort = 1 AND role = 'tool' AND body LIKE '%history_expand t%'",
        (number,),
    )
    named: set[int] = set()
    for session, seq, body in naming:
        if (session, seq) not in gone:
            named.update(int(found) for found in _HANDLE.findall(cast("str", body)))
    return tuple(text for text in Texts(database).described(number, newest) if text.number not in named)


def ranges_of(gone: Iterable[int], stays: Iterable[int]) -> Ranges:
    """Ascending seqs as ranges, joined where no seq that stays lies between them."""
    found: list[tuple[int, int]] = []
    left = sorted(stays)
    for seq in gone:
        place = bisect_right(left, found[-1][1]) if found else 0
        if found and not (place < len(left) and left[place] < seq):
            found[-1] = (found[-1][0], seq)
        else:
            found.append((seq, seq))
    return tuple(found)


def clipped(ranges: Ranges, last: int) -> Ranges:
    """The ranges as far as they go up to and with `last`."""
    return tuple((start, min(end, last)) for start, end in ranges if start <= last)


class _Own:
    """What one session allows, forks aside."""

    def __init__(self, log: SessionLog, rule: Rule, now: float) -> None:
        self._log = log
        self._before = now - rule.days * _DAY if rule.days else None
        self._overlays = log.every_overlay()
        self._now_laid = lay(self._overlays)
        self._laid = lay(_without_newest_summary(self._overlays)) if rule.undoable else self._now_laid
        self._spared = self._never(rule.keep)

    def groups(self) -> Iterator[list[Row]]:
        """Messages that may go, an answer always together with the results of its calls.

        Only those under the summary that the view opens with: it carries their facts on. One in the middle does not.
        """
        head = self._laid.head
        for first, last in _minus((head.start, head.end), self._laid.purged) if head is not None else ():
            previous: list[Entry] = []
            for group in _grouped(self._log.read(first, last + 1)):
                if head is not None and self._may_go(previous):
                    yield [_row(entry, head.record.id) for entry in previous]
                previous = group
            if head is not None and self._may_go(previous) and not self._answers_follow(last):
                yield [_row(entry, head.record.id) for entry in previous]

    def _may_go(self, group: Sequence[Entry]) -> bool:
        spared = any(entry.seq in self._spared for entry in group)
        return bool(group) and not spared and (self._before is None or all(e.at <= self._before for e in group))

    def _answers_follow(self, last: int) -> bool:
        """Whether a cut after `last` parts an answer from results of its calls."""
        after = (entry.body for entry in self._log.read(last + 1) if entry.message is not None)
        return isinstance(next(after, None), ToolResult)

    def stays(self, rows: Sequence[Row]) -> Iterator[int]:
        """Messages between the first and the last of the rows that are not among them."""
        if not rows:
            return
        gone = {row.seq for row in rows}
        for entry in self._log.read(rows[0].seq, rows[-1].seq + 1):
            if entry.message is not None and entry.seq not in gone:
                yield entry.seq

    def lifted_pins(self, gone: Container[int]) -> tuple[int, ...]:
        """Pins no longer in force that hold a copy of a message that goes."""
        return tuple(
            entry.seq
            for entry in self._overlays
            if isinstance(entry.body, Pin) and entry.body.message_seq in gone and entry.seq not in dict(self._laid.pins)
        )

    def bound(self, rows: Sequence[Row]) -> tuple[int, ...]:
        """Numbers of the summaries in force that could not be lifted any more."""
        found = []
        numbers = [entry for entry in self._overlays if isinstance(entry.body, SummaryRecord)]
        undone = {entry.body.target for entry in self._overlays if isinstance(entry.body, Undo)}
        for number, entry in enumerate(numbers, 1):
            record = entry.body
            assert isinstance(record, SummaryRecord)
            first, last = record.covers
            if entry.seq not in undone and any(first <= row.seq <= last for row in rows):
                found.append(number)
        return tuple(found)

    def _never(self, keep: int) -> set[int]:
        """Messages that always stay: pinned ones, what summaries carry on, the newest."""
        spared = {pin.message_seq for _, pin in self._laid.pins if pin.message_seq is not None}
        spared |= {carried_by(laid.head.record) for laid in (self._laid, self._now_laid) if laid.head is not None}
        asked = False
        for count, entry in enumerate(self._log.newest()):
            user = isinstance(entry.body, UserMessage) and bool(entry.body.text.strip() or entry.body.images)
            if count < keep or (user and not asked):
                spared.add(entry.seq)
            asked = asked or user
            if asked and count + 1 >= keep:
                break
        return spared


class _Relative(Struct, frozen=True):
    """Another living session of the same origin; `busy` while a living process has it open."""

    number: int
    session_id: str
    busy: bool


def _family(database: Database, number: int, token: str) -> list[_Relative]:
    rows = database.rows(
        f"WITH RECURSIVE {_TREE} "  # noqa: S608
        "SELECT s.n, s.id, l.token, l.host, l.boot, l.pid, l.started FROM tree JOIN sessions s ON s.n = tree.n "
        "LEFT JOIN locks l ON l.session = s.n WHERE s.deleted = 0 AND s.n <> ?1 ORDER BY s.n",
        (number,),
    )
    found = []
    for row in rows:
        other, session_id, holder = cast("tuple[int, str, str | None]", row[:3])
        busy = holder is not None and holder != token and Holder(*row[3:]).alive  # type: ignore[arg-type]
        found.append(_Relative(other, session_id, busy))
    return found


def _shared(log: SessionLog, other: SessionLog) -> list[tuple[int, int]]:
    """Ranges of seq whose rows both see."""
    mine = {session: (first, last) for session, first, last in log.spans()}
    found = []
    for session, first, last in other.spans():
        if session in mine:
            low, high = max(first, mine[session][0]), min(last, mine[session][1])
            if low <= high:
                found.append((low, high))
    return found


def _without_newest_summary(overlays: list[Entry]) -> list[Entry]:
    undone = {entry.body.target for entry in overlays if isinstance(entry.body, Undo)}
    standing = [entry.seq for entry in overlays if isinstance(entry.body, SummaryRecord) and entry.seq not in undone]
    return [entry for entry in overlays if not standing or entry.seq != standing[-1]]


def _grouped(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    group: list[Entry] = []
    waiting: set[str] = set()
    for entry in entries:
        body = entry.body
        starts = isinstance(body, AssistantMessage) or (isinstance(body, UserMessage) and not waiting)
        if starts and group:
            yield group
            group = []
        if isinstance(body, AssistantMessage):
            waiting = {call.id for call in body.tool_calls}
        elif isinstance(body, ToolResult):
            waiting.discard(body.call_id)
        elif not isinstance(body, UserMessage):
            continue
        group.append(entry)
    if group:
        yield group


def _row(entry: Entry, summary: str) -> Row:
    body = cast("Message", entry.body)
    text = text_of(body)
    role = cast("Literal['user', 'assistant', 'tool']", role_of(body))
    left = Purged(role, 0.0, len(text), sha256_of(encode_body(body)), summary)
    if isinstance(body, AssistantMessage):
        left = replace(left, model=body.model, usage=body.usage)
    texts = tuple(int(number) for number in _HANDLE.findall(text)) if isinstance(body, ToolResult) else ()
    return Row(entry.seq, left, texts)


def _minus(whole: tuple[int, int], ranges: Ranges) -> Iterator[tuple[int, int]]:
    start, end = whole
    for first, last in sorted(ranges):
        if last < start or first > end:
            continue
        if start < first:
            yield start, first - 1
        start = last + 1
    if start <= end:
        yield start, end
