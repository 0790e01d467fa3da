"""The status line: what is going on, the model, the context used, the cost, the permission mode, the queue."""

from __future__ import annotations

from msgspec import Struct

from mycode.core.visible import display_width, one_line
from mycode.render.numbers import duration, money
from mycode.render.panels.context import context_short
from mycode.repl.services import Conversation, Services

Fragments = list[tuple[str, str]]

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_SPINS_PER_SECOND = 10


class Work(Struct, frozen=True):
    """What is waited for, for how many seconds, and how much is queued behind it."""

    label: str = ""
    seconds: float = 0.0
    queued: int = 0
    hint: str = ""
    stop: str = "Esc interrupts"


class Facts(Struct, frozen=True):
    """What the right half of the line shows; gathered once per change, not once per frame."""

    model: str
    context: str
    cost: str
    mode: str


def facts(session: Conversation, services: Services) -> Facts:
    """The line's facts as they are now; the context is marked `≈` while it is an estimate."""
    cost = session.cost()
    return Facts(
        model=services.model_name,
        context=f"context {context_short(session.usage())}",
        cost=money(cost.cost_usd),
        mode=services.mode,
    )


def status(work: Work, known: Facts, width: int) -> Fragments:
    """The line, fitted to `width`: what matters less is left out first."""
    left: Fragments = []
    if work.label:
        spin = _SPINNER[int(work.seconds * _SPINS_PER_SECOND) % len(_SPINNER)]
        label = one_line(work.label, max(8, width // 3))
        left.append(("class:status.work", f"{spin} {label} {duration(int(work.seconds))}"))
        left.append(("class:status", f" · {work.stop}"))
    if work.queued:
        left.append(("class:status.alert", (" · " if left else "") + f"queued {work.queued}"))
    if work.hint:
        left.append(("class:status.alert", (" · " if left else "") + work.hint))
    right = [known.mode, known.context, known.cost, one_line(known.model, 40)]
    while right and _width(left) + _joined(right) + 3 > width:
        right.pop()
    if not right and _width(left) > width:
        left = [(style, text) for style, text in left if text != f" · {work.stop}"]
    gap = " · " if left and right else ""
    return _cut([*left, ("class:status", gap + " · ".join(right))], width)


def _width(fragments: Fragments) -> int:
    return sum(display_width(text) for _, text in fragments)


def _joined(parts: list[str]) -> int:
    return display_width(" · ".join(parts))


def _cut(fragments: Fragments, width: int) -> Fragments:
    shown: Fragments = []
    left = width
    for style, text in fragments:
        if left <= 0:
            break
        text = text if display_width(text) <= left else one_line(text, left)
        shown.append((style, text))
        left -= display_width(text)
    return shown
