"""The names that a conversation uses and the lines they stand on, kept up message by message.

What a fold must know of the whole conversation is gathered as it is said, so that the fold does not read it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mycode.context.passages import Line, Mention, Passage
from mycode.context.references import Kind

PER_PASSAGE = 32
"""A line is placed by an integer that is less for newer messages: its place in its own, minus `number << this`."""


class Use(Struct, gc=False):
    """What is known of a name: its first mention, the numbers of the messages that have it, how many lines they give.

    `company` is the least number of names in one of its messages; `own` counts the messages of the agent, `last_own` is
    the newest of them; `said` (not called) and `ticked` (in backticks) whether it ever was; `parent` what it lies in.
    """

    mention: Mention
    messages: list[int]
    lines: int
    company: int
    own: int
    last_own: int
    said: bool
    ticked: bool
    parent: str


class Names(Struct):
    """Owns the passages of a conversation in order, and what they come to by name and by line; it only grows.

    Messages are numbered from 0. What an earlier fold kept lies before them, from `-earlier` on, and stands behind them
    in `passages`, so that each number is an index. `siblings` counts the names that lie in a parent; `lines` holds each
    line once, where it came last, with its place.
    """

    passages: list[Passage] = []
    uses: dict[str, Use] = {}
    siblings: dict[str, int] = {}
    lines: dict[str, tuple[int, Line]] = {}
    earlier: int = 0

    @classmethod
    def of(cls, passages: Iterable[Passage], first: int = 0) -> Names:
        """The names of these passages, the first of which has that number."""
        names = cls()
        for number, passage in enumerate(passages, first):
            names.passages.append(passage)
            names._note(number, passage)
        return names

    def add(self, passage: Passage) -> None:
        """Takes in one more message."""
        self.passages.append(passage)
        self._note(len(self.passages) - 1, passage)

    def after(self, kept: Sequence[Passage]) -> Names:
        """The same conversation behind what an earlier fold kept of its beginning; this one stays as it is."""
        if not kept:
            return self
        before = Names.of(kept, -len(kept))
        uses = before.uses | self.uses
        siblings = dict(self.siblings)
        for text, use in before.uses.items():
            if use.parent:
                siblings[use.parent] = siblings.get(use.parent, 0) + 1
            later = self.uses.get(text)
            if later is not None:
                uses[text] = _joined(use, later)
                if later.parent:
                    siblings[later.parent] -= 1
        return Names([*self.passages, *kept], uses, siblings, before.lines | self.lines, len(kept))

    def _note(self, number: int, passage: Passage) -> None:
        uses, lines = self.uses, self.lines
        company = len(passage.mentions)
        own = passage.role == "assistant"
        for mention in passage.mentions:
            text = mention.name.text
            use = uses.get(text)
            if use is None:
                said, parent = own and mention.said, _parent(text, mention.name.kind)
                uses[text] = Use(mention, [number], mention.lines, company, +own, number, said, mention.ticked, parent)
                if parent:
                    self.siblings[parent] = self.siblings.get(parent, 0) + 1
                continue
            use.messages.append(number)
            use.lines += mention.lines
            use.company = min(use.company, company)
            if own:
                use.own += 1
                use.last_own = number
                use.said = use.said or mention.said
            use.ticked = use.ticked or mention.ticked
        first = -number << PER_PASSAGE
        beyond = first + (1 << PER_PASSAGE)
        for place, line in enumerate(passage.lines, first):
            known = lines.get(line.text)
            if known is None or known[0] >= beyond:
                lines[line.text] = (place, line)


def _joined(before: Use, later: Use) -> Use:
    return replace(
        before,
        messages=[*before.messages, *later.messages],
        lines=before.lines + later.lines,
        company=min(before.company, later.company),
        own=before.own + later.own,
        last_own=later.last_own if later.own else before.last_own,
        said=before.said or later.said,
        ticked=before.ticked or later.ticked,
    )


def _parent(text: str, kind: Kind) -> str:
    if kind == "dotted":
        return text.partition(".")[0]
    return text.rpartition("/")[0] + "/" if kind == "path" else ""
