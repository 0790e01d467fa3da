"""Which originals under a summary may go, and what is left of them (R116, C22): decided here, done by `deletion`."""

from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from mycode.context.conversation import carried_by
from mycode.context.policy import Policy
from mycode.context.projection import aim_of, lay
from mycode.core.entries import Entry, Purge, Purged, PurgedText
from mycode.core.messages import AssistantMessage, Message, ToolResult, UserMessage
from mycode.core.patterns import pattern
from mycode.core.summaries import Pin, SummaryRecord, Undo
from mycode.session.branches import TREE, Ranges, family_of, shared
from mycode.session.database import Database
from mycode.session.entries import encode_body, role_of, sha256_of, text_of
from mycode.session.log import SessionLog
from mycode.session.texts import Texts

_DAY = 86_400.0
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
    prompt: str = ""
    texts: tuple[int, ...] = ()


class Told(Struct, frozen=True):
    """A session whose log has to tell of a purge, by its number, and the entry."""

    number: int
    session_id: str
    body: Purge


class Plan(Struct, frozen=True):
    """What a purge of one session removes; `prompts` are the words of the person among that, nothing else is in it.

    `summaries` are those (`s<number>`) that cannot be lifted afterwards; `shown_by` names the sessions for whose sake
    `held` more messages stay: forks that still show them, or that are open elsewhere.
    """

    session_id: str
    number: int
    rows: tuple[Row, ...] = ()
    prompts: tuple[str, ...] = ()
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


def plan(database: Database, number: int, session_id: str, rule: Rule, *, now: float, why: str) -> Plan:
    """What may go of a session now. Reads only what lies under its summaries and was not purged yet.

    What another session has in view, or is open, stays.
    """
    log = SessionLog(database, number)
    own = _Own(log, rule, now)
    relatives = family_of(database, number)
    shares = [(other, spans) for other in relatives if (spans := shared(log, SessionLog(database, other.number)))]
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
        tuple(row.prompt for row in rows if row.prompt),
        texts,
        own.bound(rows),
        held,
        tuple(sorted(shown_by)),
        tuple(telling for telling in tellings if telling.body.messages),
    )


def _texts(database: Database, log: SessionLog, number: int, rows: Sequence[Row]) -> tuple[PurgedText, ...]:
    """Kept texts that only messages named which go, and those before them that nobody names any more."""
    newest = max((text for row in rows for text in row.texts), default=0)
    if not newest:
        return ()
    gone = {(log.owner(row.seq), row.seq) for row in rows}
    naming = database.rows(
        f"WITH RECURSIVE {TREE} SELECT session, seq, body FROM entries WHERE session IN (SELECT n FROM tree) "  # noqa: S608  # TREE is a constant
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
        for laid in (self._laid, self._now_laid):
            if laid.head is not None:
                spared |= {carried_by(laid.head.record), aim_of(laid.head.record)[0]}
        asked = False
        for count, entry in enumerate(self._log.newest()):
            user = isinstance(entry.body, UserMessage) and bool(entry.body.text.strip() or entry.body.images)
            if count < keep or (user and not asked):
                spared.add(entry.seq)
            asked = asked or user
            if asked and count + 1 >= keep:
                break
        return spared


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
    return Row(entry.seq, left, text if isinstance(body, UserMessage) else "", texts)


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
