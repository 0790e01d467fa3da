"""The names that a conversation uses and the lines they stand on, kept up message by message.

What a fold must know of the whole conversation is gathered as it is said, so that the fold does not read it again.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect
from collections.abc import Iterable, Sequence
from operator import neg

from msgspec import Struct
from msgspec.structs import replace

from mycode.context.passages import Name, Passage, Reader, Role, shown
from mycode.core.messages import Message, ToolCall

PLACES = 32
"""Bits of a line's number that tell its place in its message; those before them are the message's number."""
LONG_LINE = 60
"""The length of a line is told up to here."""
HEADER_SHARE = 0.15
"""How much of a header's cost a single candidate is charged with when candidates are ranked: several will share it."""
LINE_FEE = 2
"""Tokens that a line costs beside its own."""
LINE_VALUE = 0.01
"""What a whole line is worth beside its names (phrases, values and order that no list of names carries)."""
LINE_VALUE_BY_ROLE: dict[Role, float] = {"user": 2.0, "assistant": 1.0, "tool": 0.3}
LEVELS = (math.inf, *(0.008 / 2**n for n in range(7)))
"""Ranks: a line of the level below one can be chosen before its names are only when that rank is reached."""


class Use(Struct, gc=False):
    """What is known of a name: the numbers of the messages that have it, and on how many lines it stands.

    `company` is the least number of names in one of its messages; `own` counts the messages of the agent, `last_own`
    is the newest of them; `said` (not called) and `ticked` (in backticks) whether it ever was; it lies in `parent`.
    """

    name: Name
    messages: list[int]
    lines: int
    company: int
    own: int
    last_own: int
    said: bool
    ticked: bool
    parent: str


NEVER = (1 << 31) - 1


class Block(Struct, gc=False):
    """The lines of a message in numbers, one for each: its cost, its length, and where what it shows ends in `parts`.

    `again` is the number of the message in which the same line comes next (of its own, where it came before in it);
    `NEVER` if it does not.
    """

    costs: array[int]
    lengths: bytearray
    again: array[int]
    ends: array[int]
    parts: array[int]


class Names:
    """Owns the passages of a conversation in order, and what they come to by name and by line; it only grows.

    Messages are numbered from 0. What an earlier fold kept lies before them, from `-earlier` on, and stands behind them
    in `passages` and `blocks`, so that each number is an index. `siblings` counts the names that lie in a parent;
    `lines` tells of each line the message where it came first, the block where it came last, and its place there;
    `levels` has all lines by `LEVELS`, as the number of the message and the place in it, `number << PLACES | place`.
    """

    def __init__(self, reader: Reader | None = None) -> None:
        self.reader = reader or Reader()
        self.passages: list[Passage] = []
        self.blocks: list[Block] = []
        self.uses: dict[str, Use] = {}
        self.siblings: dict[str, int] = {}
        self.lines: dict[str, tuple[int, Block, int]] = {}
        self.levels = [array("q") for _ in LEVELS]
        self.earlier = 0

    @classmethod
    def of(cls, passages: Iterable[Passage], reader: Reader) -> Names:
        """The names of passages that this reader has read."""
        names = cls(reader)
        for passage in passages:
            names._add(len(names.passages), passage)
        return names

    def read(self, seq: int, message: Message, call: ToolCall | None = None) -> Passage:
        """Takes in one more message; `call` is the one that a tool result answers."""
        passage = self.reader.read(seq, message, call)
        self._add(len(self.passages), passage)
        return passage

    def after(self, kept: Sequence[Passage], reader: Reader) -> Names:
        """The same conversation behind what an earlier fold kept of its beginning; this one stays as it is.

        `reader` is a branch of this one's, and has read what was kept.
        """
        joined = Names(reader)
        for number, passage in enumerate(kept, -len(kept)):
            joined._add(number, passage)
        for text in joined.lines.keys() & self.lines.keys():
            _, block, place = joined.lines[text]
            block.again[place] = self.lines[text][0]
        siblings = dict(self.siblings)
        both: dict[str, Use] = {}
        for text, use in joined.uses.items():
            if use.parent:
                siblings[use.parent] = siblings.get(use.parent, 0) + 1
            later = self.uses.get(text)
            if later is not None:
                both[text] = _joined(use, later)
                if later.parent:
                    siblings[later.parent] -= 1
        joined.passages[:0], joined.blocks[:0] = self.passages, self.blocks
        joined.uses = {**joined.uses, **self.uses, **both}
        joined.lines |= self.lines
        joined.levels = [ours + theirs for ours, theirs in zip(self.levels, joined.levels, strict=True)]
        joined.siblings = siblings
        joined.earlier = len(kept)
        return joined

    def _add(self, number: int, passage: Passage) -> None:
        uses, own = self.uses, passage.role == "assistant"
        company = len(passage.mentions)
        for mention in passage.mentions:
            name = mention.name
            use = uses.get(name.text)
            if use is None:
                said, parent = own and mention.said, _parent(name)
                uses[name.text] = Use(
                    name, [number], mention.lines, company, +own, number, said, mention.ticked, parent
                )
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
        self.passages.append(passage)
        self.blocks.append(self._block(number, passage))

    def _block(self, number: int, passage: Passage) -> Block:
        lines = self.lines
        block = Block(array("I"), bytearray(), array("i"), array("I"), array("I"))
        shared = HEADER_SHARE * passage.title_cost
        most = LINE_VALUE * LINE_VALUE_BY_ROLE[passage.role] / LONG_LINE
        for place, line in enumerate(passage.lines):
            length = min(LONG_LINE, len(line.text))
            block.parts.extend(shown(line.names))
            block.ends.append(len(block.parts))
            block.lengths.append(length)
            block.costs.append(line.cost)
            known = lines.get(line.text)
            if known is not None and known[1] is block:
                block.again.append(number)
                continue
            block.again.append(NEVER)
            if known is not None:
                known[1].again[known[2]] = number
            lines[line.text] = (known[0] if known is not None else number, block, place)
            # All candidates on a line together are worth at most what it is worth itself, and its own value. So where
            # they cost less than it does, one of them ranks before it, unless the rank is as low as that own value.
            spare = line.cost + LINE_FEE + shared - sum([name.cost + shared for name in line.names])
            level = bisect(LEVELS, -most * length / spare, key=neg) - 1 if spare > 0 else 0
            self.levels[level].append(number << PLACES | place)
        return block


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


def _parent(name: Name) -> str:
    if name.kind == "dotted":
        return name.text.partition(".")[0]
    return name.text.rpartition("/")[0] + "/" if name.kind == "path" else ""
