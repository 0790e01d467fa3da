"""What the person laid down stays word for word, whatever is folded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from mycode.context.projection import Laid
from mycode.core.summaries import SummaryRecord


@cache
def _strict() -> re.Pattern[str]:
    return re.compile(r"\b(never|always|must|do not|don['’]t|forbidden|not allowed|no longer)\b", re.IGNORECASE)


def within(texts: Iterable[str], room: int, count: Callable[[str], int]) -> tuple[str, ...]:
    """The constraints that fit into `room` tokens, in order: where there are too many, the mildest and oldest go."""
    lines = list(dict.fromkeys(texts))
    total = sum(count(line) + 4 for line in lines)
    mild = [line for line in lines if not _strict().search(line)]
    for line in [*mild, *(line for line in lines if line not in set(mild))]:
        if total <= room:
            break
        lines.remove(line)
        total -= count(line) + 4
    return tuple(lines)


def kept_constraints(record: SummaryRecord | None) -> tuple[str, ...]:
    """The constraints a record carries on."""
    raw = record.context.raw if record is not None else None
    return tuple(str(line) for line in (raw or {}).get("constraints", ()))


def settled_pins(laid: Laid) -> tuple[str, ...]:
    """Pinned texts that stand in the pins passage: pinned before the newest epoch, or by a summary; no doubles."""
    texts = [pin.text for seq, pin in laid.pins if seq < laid.epoch]
    for region in laid.regions:
        texts.extend(line for line in kept_constraints(region.record) if line not in laid.unpinned)
    return _once(texts)


def fresh_pins(laid: Laid) -> tuple[str, ...]:
    """Pinned texts that wait in the footer for the next epoch, so that pinning does not change what was sent."""
    settled = set(settled_pins(laid))
    return _once(pin.text for seq, pin in laid.pins if seq >= laid.epoch and pin.text not in settled)


def all_pins(laid: Laid) -> tuple[str, ...]:
    """What is pinned: first what stands in the passage, then what waits for it."""
    return (*settled_pins(laid), *fresh_pins(laid))


def pins_text(texts: Sequence[str]) -> str:
    """The passage as the model reads it."""
    lines = [f"{number}. {text}" for number, text in enumerate(texts, 1)]
    return "\n".join(["Laid down by the person, word for word; it holds until they say otherwise:", *lines])


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
