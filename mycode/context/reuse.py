"""How likely each name of a conversation is to be needed again."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mycode.context.passages import Passage

_KIND_WEIGHT = {"path": 1.0, "test_id": 0.6, "error": 1.0, "url": 0.4, "hash": 0.2, "dotted": 1.4, "symbol": 1.5,
                "flag": 1.8, "number": 0.2, "quoted": 0.8}  # fmt: skip


def score(passages: Sequence[Passage], recent: Sequence[Passage] = ()) -> dict[str, float]:
    """The estimated probability, by name, that it is needed after the last passage. Pure and deterministic."""
    every = [*passages, *recent]
    whole = max(1, sum(passage.size for passage in every))
    weights: dict[str, float] = {}
    after = 0
    first_user = next((p.seq for p in every if p.role == "user"), -1)
    for passage in reversed(every):
        recency = 0.5 ** (after / whole / 0.25)
        after += passage.size
        who = (
            4.0
            if passage.seq == first_user
            else 2.0
            if passage.role == "assistant"
            else 1.3
            if passage.role == "user"
            else 1.0
        )
        for line in passage.lines:
            for ref in line.names:
                gain = recency * who * _KIND_WEIGHT[ref.kind]
                old = weights.get(ref.text, 0.0)
                weights[ref.text] = max(old, gain) + 0.3 * min(old, gain)
    return {name: 1 - math.exp(-0.1 * weight) for name, weight in weights.items()}
