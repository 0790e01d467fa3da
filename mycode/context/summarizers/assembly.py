"""A telling is put together within its limit: what must be kept comes first, the choice of lines and names last."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mycode.context import projection
from mycode.context.digests.calls import only_looks
from mycode.context.facts import ErrorFact, FactLedger, Statement, is_firm
from mycode.context.references import extract
from mycode.context.selection import fold_text
from mycode.context.summarizers import Draft, Fold
from mycode.context.summarizers.lines import OMITTED

Count = Callable[[str], int]
MUST_SHARE = 0.9
"""At most this part of the room goes to what must be kept: where there is more, the oldest of it goes."""
LEAST_SHARE, SETTLED_SHARE, LARGE_ROOM = 0.2, 0.75, 8_000
"""... and of what is then left, to settled facts that stand nowhere else: so much in a large room, less in a small."""
MODEL_SHARES = (0.5, 0.25, 0.1)
"""At most the first of these parts of the room goes to what a model wrote; less where more must be kept beside it."""
LLM_DIGEST_SHARE = 0.3
"""Beside a model's own account, the choice of lines and names takes at most this part of the room."""


FROM_LOG = "Also, from the log:"
_TITLE_TOKENS, _JOINT_TOKENS = 6, 2


class Item(Struct, frozen=True):
    """A fact as a line or a name, and its tokens; `mark` is what is looked for to see whether it is told elsewhere.

    Where there is no room for all, what has more `weight` stays.
    """

    text: str
    mark: str
    tokens: int
    weight: int = 0


class Section(Struct, frozen=True):
    """Facts of one kind, oldest first: names on one line, sentences (`listed`) on a line each."""

    title: str
    items: tuple[Item, ...]
    listed: bool = False

    def text(self) -> str:
        if not self.items:
            return ""
        texts = [item.text for item in self.items]
        return "\n- ".join([f"{self.title}:", *texts]) if self.listed else f"{self.title}: {', '.join(texts)}"

    def newest(self, room: int) -> Section:
        """The section with what weighs most, then is newest, in at most `room` tokens, the title included."""
        room -= _TITLE_TOKENS
        kept = []
        for place in sorted(range(len(self.items)), key=lambda place: (self.items[place].weight, place), reverse=True):
            room -= self.items[place].tokens
            if room < 0:
                break
            kept.append(place)
        return replace(self, items=tuple(self.items[place] for place in sorted(kept)))

    @property
    def tokens(self) -> int:
        """At most so many tokens."""
        return sum(item.tokens for item in self.items) + _TITLE_TOKENS if self.items else 0

    def untold(self, text: str) -> Section:
        """The section without what stands in `text` already."""
        return replace(self, items=tuple(item for item in self.items if item.mark not in text))


Layout = Callable[[Sequence[Section], Sequence[Section]], Draft]
"""Gives the draft for sections that must be kept and settled sections, without a digest."""


def assemble(fold: Fold, must: Sequence[Section], lay: Layout, digest_room: int) -> Draft:
    """The draft within the fold's room: what must be kept, what is settled, and a digest of what neither of them names.

    `lay` puts the parts together; with nothing to put in it, its draft must fit into a tenth of the room.
    """

    def size(draft: Draft) -> int:
        return fold.count(rendered(draft))

    kept = fitted(must, int(MUST_SHARE * fold.room) - size(lay((), ())))
    bare = lay(kept, ())
    left = fold.room - size(bare)
    told = _flat(f"{fold.aim.text}\n{rendered(bare)}")
    share = max(LEAST_SHARE, SETTLED_SHARE * min(1.0, fold.room / LARGE_ROOM))
    most = max(int(share * left), left - digest_room)
    settled = shared([section.untold(told) for section in settled_sections(fold)], most)
    facts = lay(kept, settled)
    while size(facts) > fold.room and (kept or settled):  # in a very small room the words around facts count, too
        kept, settled = (kept, settled[:-1]) if settled else (kept[:-1], settled)
        facts = lay(kept, settled)
    if size(facts) > fold.room:
        return replace(_listing(facts, 0), narrative=OMITTED)
    digest = fold.redact(
        fold_text(
            fold.messages,
            previous=fold.previous,
            ledger=fold.ledger,
            budget_tokens=min(digest_room, fold.room - size(replace(facts, digest=" "))),
            count=fold.count,
            recent=fold.recent,
            beside=f"{fold.aim.text}\n{rendered(facts)}",
        )
    )
    draft = replace(facts, digest=digest)
    while digest and size(draft) > fold.room:  # masking a secret may make it longer
        digest = digest.rpartition("\n")[0]
        draft = replace(facts, digest=digest)
    return draft


def with_facts(
    draft: Draft,
    fold: Fold,
    must: Callable[[Draft], Sequence[Section]],
    lay: Callable[[Draft, Sequence[Section], Sequence[Section]], Draft],
    digest_room: int,
) -> Draft:
    """What a model wrote, shortened until what must be kept has its place beside it, and assembled with it."""
    model, kept = draft, list(must(draft))
    for share in MODEL_SHARES:
        model = bounded(draft, int(share * fold.room), fold.count)
        kept = list(must(model))
        if fold.count(rendered(model)) + sum(section.tokens for section in kept) <= MUST_SHARE * fold.room:
            break
    return assemble(fold, kept, lambda *parts: lay(model, *parts), digest_room)


def bounded(draft: Draft, room: int, count: Count) -> Draft:
    """A model's draft in at most `room` tokens: its lists in half of it, then its account up to a sentence's end."""
    lists = replace(draft, narrative="", digest="")
    for most in (30, 20, 12, 8, 5, 3, 2, 1, 0):
        lists = _listing(draft, most)
        if count(rendered(lists)) <= room // 2:
            break
    narrative = shortened(draft.narrative, room - count(rendered(lists)) - _JOINT_TOKENS, count)
    return replace(lists, narrative=narrative)


def _listing(draft: Draft, most: int) -> Draft:
    """The draft's lists alone, each with its newest entries; key points come in the order of their weight."""
    context = draft.context
    start = -most or len(context.decisions) + len(context.unresolved)
    return replace(
        draft,
        narrative="",
        digest="",
        key_points=draft.key_points[:most],
        context=replace(
            context,
            decisions=context.decisions[start:],
            action_items=context.action_items[:most],
            unresolved=context.unresolved[start:],
        ),
    )


def rendered(draft: Draft) -> str:
    """The draft as the model will read it."""
    return "\n\n".join(projection.told(draft))


def fitted(sections: Sequence[Section], room: int) -> list[Section]:
    """As many of the newest items of each section, in order of the sections, as hold at most `room` tokens."""
    kept: list[Section] = []
    for section in sections:
        part = section if section.tokens <= room else section.newest(room)
        if part.items:
            kept.append(part)
            room -= part.tokens
    return kept


def shared(sections: Sequence[Section], room: int) -> list[Section]:
    """The newest items of each section in `room` tokens: all have the same share, what one leaves goes to others."""
    parts: dict[str, Section] = {}
    asking = sorted((section for section in sections if section.items), key=lambda section: section.tokens)
    for place, section in enumerate(asking):
        share = room // (len(asking) - place)
        part = section if section.tokens <= share else section.newest(share)
        room -= part.tokens
        parts[section.title] = part
    return [parts[section.title] for section in sections if section.title in parts and parts[section.title].items]


def must_sections(fold: Fold, wanted: Collection[str] | None = None) -> list[Section]:
    """What every summary has to tell: files changed, errors open, tests that fail, what is to be done.

    Only the `wanted` facts, if these are given.
    """
    ledger = fold.ledger

    def asked(text: str) -> bool:
        return wanted is None or text in wanted

    errors = [error_line(error) for error in ledger.open_errors if asked(error.text)]
    named = "\n".join(errors)
    return [
        names("Files changed", [path for path in ledger.files_modified if asked(path)], fold),
        lines("Open errors", errors, 300, fold),
        names("Failing tests", [name for name in failing_tests(ledger) if asked(name) and name not in named], fold),
        lines("To do", [item.text for item in ledger.open_todo if asked(item.text)], 200, fold),
        lines("Decided", [said.text for said in decisions_of(fold)[-5:] if asked(said.text)], 300, fold),
    ]


def settled_sections(fold: Fold) -> list[Section]:
    """What was settled, told as that: what passes now, what was decided, what was run, what the person named."""
    ledger = fold.ledger
    decided = [said.text for said in decisions_of(fold)]
    runs = dict.fromkeys(run.command for run in ledger.commands if not only_looks(run.command))
    failing = {error.source for error in ledger.open_errors}
    # Rules that the person laid down are pinned, with the names in them.
    pinned = "\n".join(said.text for said in ledger.constraints)
    named = [said.text for said in ledger.named if said.seq not in fold.dropped and said.text not in pinned]
    return [
        names("Passed later", ledger.passed_later, fold),
        lines("Decided before", decided, 300, fold, lambda text: len(extract(text))),
        names("Named by the person", named, fold),
        lines("Commands run", [run for run in runs if run not in failing], 120, fold, _weight_of_command),
    ]


def decisions_of(fold: Fold) -> list[Statement]:
    """What was decided in so many words, oldest first; without what the person left out."""
    return [said for said in fold.ledger.decisions if said.seq not in fold.dropped and is_firm(said.text)]


def error_line(error: ErrorFact, limit: int = 300) -> str:
    """An error and what it came from, the latter short: a whole script may have caused it."""
    source = short(error.source, 80)
    text = " ".join(error.text.split())
    return f"{source}: {text}"[:limit] if source else text[:limit]


def failing_tests(ledger: FactLedger) -> tuple[str, ...]:
    """Tests that failed and have not passed since, neither by name nor because the command that ran them passed."""
    solved = {error.seq for error in ledger.errors if not error.open}
    return tuple(test.name for test in ledger.tests.values() if not test.passed and test.seq not in solved)


def shortened(text: str, room: int, count: Count) -> str:
    """The beginning of a text within `room` tokens, up to the end of a line or sentence; the cut is marked."""
    if count(text) <= room:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count(text[:middle] + " …") <= room:
            low = middle
        else:
            high = middle - 1
    ends = [match.end() for match in _END.finditer(text[:low])]
    place = ends[-1] if ends and ends[-1] > low // 2 else low
    return f"{text[:place].rstrip()} …" if place else ""


def _weight_of_command(command: str) -> int:
    """Runs of tests go first: what they showed is told by the tests."""
    return not _TESTS_RUN.search(command)


_TESTS_RUN = re.compile(
    r"\b(?:pytest|unittest|jest|vitest|tox|rspec|(?:go|cargo|npm|pnpm|yarn|bun|make|mvn|gradle) (?:run )?test)\b"
)
_END = re.compile(r"[.!?](?=\s)|\n")


def names(title: str, texts: Sequence[str], fold: Fold) -> Section:
    """A section of names, masked."""
    masked = dict.fromkeys(fold.redact_each(texts))
    return Section(title, tuple(Item(text, text, fold.count(text) + _JOINT_TOKENS) for text in masked if text))


def lines(
    title: str, texts: Sequence[str], limit: int, fold: Fold, weight: Callable[[str], int] | None = None
) -> Section:
    """A section of sentences, masked, each cut to `limit` characters."""
    items = []
    for text in dict.fromkeys(short(text, limit) for text in fold.redact_each(texts)):
        tokens = fold.count(text) + _JOINT_TOKENS
        items.append(Item(text, text.removesuffix(" …"), tokens, weight(text) if weight else 0))
    return Section(title, tuple(items), listed=True)


def short(text: str, limit: int) -> str:
    """A text on one line, cut to `limit` characters; the cut is marked."""
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 2].rstrip() + " …"


def _flat(text: str) -> str:
    return " ".join(text.split())
