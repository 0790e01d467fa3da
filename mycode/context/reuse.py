"""How likely each name of a conversation is to be needed again."""

from __future__ import annotations

import math
from itertools import accumulate
from operator import mul

from msgspec import Struct

from mycode.context.names import Names
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


def score(names: Names) -> dict[str, float]:
    """The estimated probability, by name, that it is needed after the last message. Pure and deterministic.

    It is the logistic function of `WEIGHTS` times `features`, without building them: this is done for every name at
    every fold.
    """
    places = _places(names)
    ages, siblings = places.ages, names.siblings
    w = dict(zip(FEATURES, WEIGHTS[:-1], strict=True))
    w_lines, w_messages, w_own, w_company = w["log_lines"], w["log_messages"], w["log_own"], w["log_company"]
    w_first, w_last, w_once = w["in_first_prompt"], w["in_last_prompt"], w["seen_once"]
    w_own_age, w_said, w_ticked, w_length = w["log_own_age"], w["said"], w["ticked"], w["log_length"]
    w_siblings, w_never_ticked = w["log_siblings"], w["ticked"] + w["never_own*ticked"]
    w_never_lines, w_never_company = w_lines + w["never_own*log_lines"], w_company + w["never_own*log_company"]
    # What depends on the kind, the length or the newest message alone is worked out once for each of them.
    kinds = {kind: sum(map(mul, WEIGHTS, one_hot)) for kind, one_hot in _ONE_HOT.items()}
    placed = [
        WEIGHTS[-1] + w["position"] * place + w["log_age"] * age + w["since_last_prompt"] * new
        for place, age, new in zip(places.positions, ages, places.new, strict=True)
    ]
    never = w_own_age * _NEVER_OWN_AGE + w["never_own"]
    placed_never = [
        each
        + never
        + w["never_own*position"] * place
        + w["never_own*log_age"] * age
        + w["never_own*since_last_prompt"] * new
        for each, place, age, new in zip(placed, places.positions, ages, places.new, strict=True)
    ]
    log, exp, prompted = math.log, math.exp, places.first | places.last
    logs = [0.0, *map(log, range(1, _MOST_LOGS))]
    lengths = [w_length * each for each in logs]
    out: dict[str, float] = {}
    for text, use in names.uses.items():
        lines, messages, company, length, own = use.lines, len(use.messages), use.company, len(text), use.own
        log_lines = logs[1 + lines] if lines < _MOST_LOGS - 1 else log(1 + lines)
        log_company = logs[company] if company < _MOST_LOGS else log(company)
        z = kinds[use.name.kind] + (lengths[length] if length < _MOST_LOGS else w_length * log(length))
        if own:
            z += placed[use.messages[-1]] + w_lines * log_lines + w_company * log_company
            z += w_own * log(1 + own) + w_own_age * ages[use.last_own]
            if use.ticked:
                z += w_ticked
            if use.said:
                z += w_said
        else:
            z += placed_never[use.messages[-1]] + w_never_lines * log_lines + w_never_company * log_company
            if use.ticked:
                z += w_never_ticked
            if messages == 1:
                z += w_once
        z += w_messages * (logs[1 + messages] if messages < _MOST_LOGS - 1 else log(1 + messages))
        if use.parent:
            number = siblings[use.parent]
            z += w_siblings * (logs[1 + number] if number < _MOST_LOGS - 1 else log(1 + number))
        out[text] = 1 / (1 + exp(-z)) if text not in prompted else z
    for text in prompted:
        z = out[text] + w_first * (text in places.first) + w_last * (text in places.last)
        out[text] = 1 / (1 + exp(-z))
    return out


def features(names: Names) -> dict[str, tuple[float, ...]]:
    """What is known of each name, in the order of `FEATURES`: its kind, who used it, how often and how lately."""
    places = _places(names)
    log = math.log
    out: dict[str, tuple[float, ...]] = {}
    for text, use in names.uses.items():
        log_lines, log_company = log(1 + use.lines), log(use.company)
        last = use.messages[-1]
        place, age, new = places.positions[last], places.ages[last], places.new[last]
        own_age = places.ages[use.last_own] if use.own else _NEVER_OWN_AGE
        never = float(not use.own)
        once = float(len(use.messages) == 1 and not use.own)
        siblings = log(1 + names.siblings[use.parent]) if use.parent else 0.0
        first, prompt, ticked = float(text in places.first), float(text in places.last), float(use.ticked)
        out[text] = (
            *_ONE_HOT[use.name.kind],
            *(log_lines, log(1 + len(use.messages)), new, first, prompt, own_age, log_company),
            *(place, age, once, never, log(1 + use.own), float(use.said), siblings, ticked, log(len(text))),
            *(never * place, never * log_company, never * log_lines, never * new, never * age, never * ticked),
        )
    return out


_MOST_LOGS = 256
_NEVER_OWN_AGE = 5.0


class _Places(Struct):
    """By number of a message: how far in it stands, its age, whether it came after the last prompt; prompts' names."""

    positions: list[float]
    ages: list[float]
    new: list[float]
    first: frozenset[str]
    last: frozenset[str]


def _places(names: Names) -> _Places:
    start = len(names.passages) - names.earlier
    passages = [*names.passages[start:], *names.passages[:start]]
    ends = list(accumulate(passage.size + 20 for passage in passages))
    whole = max(1, ends[-1]) if ends else 1
    prompts = [i for i, passage in enumerate(passages) if passage.role == "user" and not passage.title]
    order = [*range(names.earlier, len(passages)), *range(names.earlier)]
    return _Places(
        [ends[i] / whole for i in order],
        [math.log(1 + (whole - ends[i]) / _PAGE) for i in order],
        [float(not prompts or i > prompts[-1]) for i in order],
        frozenset(each.name.text for each in passages[prompts[0]].mentions) if prompts else frozenset(),
        frozenset(each.name.text for each in passages[prompts[-1]].mentions) if prompts else frozenset(),
    )
