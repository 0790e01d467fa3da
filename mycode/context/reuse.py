"""How likely each name of a conversation is to be needed again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul

from msgspec import Struct

from mycode.context.passages import Passage
from mycode.context.references import Kind

# A logistic regression over the features below, fitted by `tests/benchmarks/fit_reuse.py` on recorded sessions of four
# coding agents (label: the agent used the name later without having been shown it again); the features kept are those
# that still helped on sessions of a source left out of the fit. The last value is the intercept.
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

    `passages` and then `recent` are the conversation in order, from its beginning. It is the logistic function of
    `WEIGHTS` times `features`, without building them: this is done for every name at every fold.
    """
    past = _past([*passages, *recent])
    kinds = {kind: sum(map(mul, WEIGHTS, one_hot)) for kind, one_hot in _ONE_HOT.items()}
    w = dict(zip(FEATURES, WEIGHTS[:-1], strict=True))
    intercept = WEIGHTS[-1]
    w_lines, w_messages, w_own, w_company = w["log_lines"], w["log_messages"], w["log_own"], w["log_company"]
    w_first, w_last, w_once, w_never = w["in_first_prompt"], w["in_last_prompt"], w["seen_once"], w["never_own"]
    w_own_age, w_said, w_ticked, w_length = w["log_own_age"], w["said"], w["ticked"], w["log_length"]
    w_siblings, never_lines, never_company = w["log_siblings"], w["never_own*log_lines"], w["never_own*log_company"]
    never_ticked = w["never_own*ticked"]
    # What depends on the last message alone is worked out once for each message.
    placed = [
        w["position"] * place + w["log_age"] * age + w["since_last_prompt"] * new
        for place, age, new in zip(past.positions, past.ages, past.new, strict=True)
    ]
    placed_never = [
        w["never_own*position"] * place + w["never_own*log_age"] * age + w["never_own*since_last_prompt"] * new
        for place, age, new in zip(past.positions, past.ages, past.new, strict=True)
    ]
    logs = [0.0, *(math.log(number) for number in range(1, 1 + _MOST_LOGS))]
    log, exp = math.log, math.exp
    out: dict[str, float] = {}
    for text, (kind, lines, messages, last, company, own, last_own, said, ticked, parent) in past.names.items():
        log_lines = logs[1 + lines] if lines < _MOST_LOGS else log(1 + lines)
        log_company = logs[company] if company <= _MOST_LOGS else log(company)
        z = (
            intercept
            + kinds[kind]
            + placed[last]
            + w_lines * log_lines
            + w_messages * (logs[1 + messages] if messages < _MOST_LOGS else log(1 + messages))
            + w_company * log_company
            + w_length * log(len(text))
        )
        if own:
            z += w_own * log(1 + own) + w_own_age * past.ages[last_own]
        else:
            z += w_own_age * _NEVER_OWN_AGE + w_never + placed_never[last]
            z += never_lines * log_lines + never_company * log_company
            if messages == 1:
                z += w_once
            if ticked:
                z += never_ticked
        if said:
            z += w_said
        if ticked:
            z += w_ticked
        if parent and (siblings := past.siblings[parent]):
            z += w_siblings * log(1 + siblings)
        if text in past.prompted:
            z += w_first * (text in past.first) + w_last * (text in past.last)
        out[text] = 1 / (1 + exp(-z))
    return out


def features(passages: Sequence[Passage]) -> dict[str, tuple[float, ...]]:
    """What is known of each name, in the order of `FEATURES`: its kind, who used it, how often and how lately."""
    past = _past(passages)
    log = math.log
    out: dict[str, tuple[float, ...]] = {}
    for text, (kind, lines, messages, last, company, own, last_own, said, ticked, parent) in past.names.items():
        log_lines, log_company = log(1 + lines), log(company)
        place, age, new = past.positions[last], past.ages[last], past.new[last]
        own_age = past.ages[last_own] if own else _NEVER_OWN_AGE
        never = float(not own)
        once = float(messages == 1 and not own)
        siblings = log(1 + past.siblings[parent]) if parent else 0.0
        first, prompt = float(text in past.first), float(text in past.last)
        out[text] = (
            *_ONE_HOT[kind],
            *(log_lines, log(1 + messages), new, first, prompt, own_age, log_company),
            *(place, age, once, never, log(1 + own), float(said), siblings, float(ticked), log(len(text))),
            *(never * place, never * log_company, never * log_lines, never * new, never * age, never * ticked),
        )
    return out


_MOST_LOGS = 256
_NEVER_OWN_AGE = 5.0

_Seen = tuple[Kind, int, int, int, int, int, int, bool, bool, str]
"""Of a name: kind, lines, messages, last message, least company, own uses, last own use, said, ticked, its parent."""


class _Past(Struct):
    """A conversation as its names, and for each of its messages where it stands."""

    names: dict[str, _Seen]
    siblings: dict[str, int]
    first: frozenset[str]
    last: frozenset[str]
    prompted: frozenset[str]
    positions: list[float]
    ages: list[float]
    new: list[float]


def _past(passages: Sequence[Passage]) -> _Past:
    ends: list[int] = []
    end = 0
    for passage in passages:
        end += passage.size + 20
        ends.append(end)
    whole = max(1, end)
    prompts = [i for i, passage in enumerate(passages) if passage.role == "user" and not passage.title]
    names: dict[str, _Seen] = {}
    siblings: dict[str, int] = {}
    for i, passage in enumerate(passages):
        company = len(passage.mentions)
        own = passage.role == "assistant"
        for mention in passage.mentions:
            text = mention.name.text
            known = names.get(text)
            if known is None:
                kind = mention.name.kind
                parent = _parent(text, kind)
                if parent:
                    siblings[parent] = siblings.get(parent, 0) + 1
                said = own and mention.said
                names[text] = (kind, mention.lines, 1, i, company, +own, i, said, mention.ticked, parent)
                continue
            kind, lines, messages, _, least, times, last_own, said, ticked, parent = known
            least = min(least, company)
            if own:
                times, last_own, said = times + 1, i, said or mention.said
            lines, ticked = lines + mention.lines, ticked or mention.ticked
            names[text] = (kind, lines, messages + 1, i, least, times, last_own, said, ticked, parent)
    first = frozenset(each.name.text for each in passages[prompts[0]].mentions) if prompts else frozenset()
    last = frozenset(each.name.text for each in passages[prompts[-1]].mentions) if prompts else frozenset()
    return _Past(
        names,
        siblings,
        first,
        last,
        first | last,
        [end / whole for end in ends],
        [math.log(1 + (whole - end) / _PAGE) for end in ends],
        [float(not prompts or i > prompts[-1]) for i in range(len(ends))],
    )


def _parent(text: str, kind: Kind) -> str:
    if kind == "dotted":
        return text.partition(".")[0]
    return text.rpartition("/")[0] + "/" if kind == "path" else ""
