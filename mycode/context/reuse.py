"""How likely each name of a conversation is to be needed again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul

from mycode.context.passages import Mention, Passage
from mycode.context.references import Kind

# A logistic regression over the features below, fitted by `benchmarks/fit_reuse.py` on recorded sessions of four coding
# agents (label: the agent used the name later without having been shown it again); the features kept are those that
# still helped on sessions of a source that was left out of the fit. The last value is the intercept.
WEIGHTS: tuple[float, ...] = (
    -0.1576,
    0.0118,
    -1.4183,
    0.1315,
    0.5098,
    -1.0153,
    -0.6165,
    -2.2297,
    0.2389,
    -0.9394,
    0.4906,
    1.0979,
    1.1523,
    -0.2075,
    -0.2173,
    -1.1407,
    -0.3574,
    -0.476,
    -0.014,
    1.2429,
    0.2962,
    -0.0524,
    -0.0489,
    0.2267,
    -0.6475,
    0.0041,
    0.5826,
    0.5225,
    -0.1315,
    0.8333,
    -0.4774,
)

FEATURES = (
    "path", "error", "url", "dotted", "flag", "number", "quoted", "hash",
    "log_lines", "log_messages", "since_last_prompt", "in_first_prompt", "in_last_prompt", "log_own_age", "log_company",
    "position", "log_age", "seen_once", "never_own", "log_own", "said", "log_siblings", "ticked", "log_length",
    "never_own*position", "never_own*log_company", "never_own*log_lines", "never_own*since_last_prompt",
    "never_own*log_age", "never_own*ticked",
)  # fmt: skip
_KINDS: tuple[Kind, ...] = ("path", "error", "url", "dotted", "flag", "number", "quoted", "hash")
_ONE_HOT = {kind: tuple(float(kind == each) for each in _KINDS) for kind in (*_KINDS, "symbol", "test_id")}
_PAGE = 3600
"""Characters that make about a thousand tokens: the unit of age."""


def score(passages: Sequence[Passage], recent: Sequence[Passage] = ()) -> dict[str, float]:
    """The estimated probability, by name, that it is needed after the last passage. Pure and deterministic.

    `passages` and then `recent` are the conversation in order, from its beginning.
    """
    *weights, intercept = WEIGHTS
    return {
        name: 1 / (1 + math.exp(-intercept - sum(map(mul, weights, values))))
        for name, values in features([*passages, *recent]).items()
    }


def features(passages: Sequence[Passage]) -> dict[str, tuple[float, ...]]:
    """What is known of each name, in the order of `FEATURES`: its kind, who used it, how often and how lately."""
    ends: list[int] = []
    end = 0
    for passage in passages:
        end += passage.size + 20
        ends.append(end)
    whole = max(1, end)
    prompts = [i for i, passage in enumerate(passages) if passage.role == "user" and not passage.title]
    first, last = (prompts[0], prompts[-1]) if prompts else (-1, -1)
    seen: dict[str, _Seen] = {}
    for i, passage in enumerate(passages):
        company = len(passage.mentions)
        own = passage.role == "assistant"
        for mention in passage.mentions:
            known = seen.get(mention.name.text)
            if known is None:
                known = seen[mention.name.text] = _Seen(mention)
            known.add(mention, ends[i], company, own=own)
            if i == first:
                known.first = 1.0
            if i == last:
                known.last_prompt = 1.0
            elif i > last:
                known.new = 1.0
    siblings: dict[str, int] = {}
    for text, known in seen.items():
        if parent := _parent(text, known.kind):
            siblings[parent] = siblings.get(parent, 0) + 1
    return {
        text: known.values(whole, siblings.get(_parent(text, known.kind), 0), len(text)) for text, known in seen.items()
    }


def _parent(text: str, kind: Kind) -> str:
    if kind == "dotted":
        return text.partition(".")[0]
    return text.rpartition("/")[0] + "/" if kind == "path" else ""


class _Seen:
    """What was gathered of one name so far."""

    __slots__ = (
        *("company", "first", "kind", "last", "last_own", "last_prompt"),
        *("lines", "messages", "new", "own", "said", "ticked"),
    )

    def __init__(self, mention: Mention):
        self.kind = mention.name.kind
        self.lines = self.messages = self.own = self.last = self.last_own = 0
        self.company = 1 << 30
        self.first = self.last_prompt = self.new = self.said = self.ticked = 0.0

    def add(self, mention: Mention, end: int, company: int, *, own: bool) -> None:
        self.lines += mention.lines
        self.messages += 1
        self.last = end
        self.company = min(self.company, company)
        if own:
            self.own += 1
            self.last_own = end
            if mention.said:
                self.said = 1.0
        if mention.ticked:
            self.ticked = 1.0

    def values(self, whole: int, siblings: int, length: int) -> tuple[float, ...]:
        log = math.log
        lines = log(1 + self.lines)
        company = log(self.company)
        position = self.last / whole
        age = log(1 + (whole - self.last) / _PAGE)
        own_age = log(1 + (whole - self.last_own) / _PAGE) if self.own else 5.0
        never = float(not self.own)
        once = float(self.messages == 1 and not self.own)
        return (
            *_ONE_HOT[self.kind],
            *(lines, log(1 + self.messages), self.new, self.first, self.last_prompt, own_age, company),
            *(position, age, once, never, log(1 + self.own), self.said, log(1 + siblings), self.ticked, log(length)),
            *(never * position, never * company, never * lines, never * self.new, never * age, never * self.ticked),
        )
