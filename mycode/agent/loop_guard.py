"""Notices when the model repeats itself (pure): the same call again and again, or a short cycle of calls."""

from __future__ import annotations

import json

from msgspec import Struct

from mycode.core.messages import ToolCall

TELL_AT = 3
TELL_CYCLE_AT = 2
ASK_AT = 5
_CYCLES = (2, 3, 4)
# Looking again whether something has ended is what these are for: a round with one of them counts as a tenth.
_POLLS = frozenset({"shell_job"})
_POLLS_A_ROUND = 10
_KEPT = ASK_AT * max(_CYCLES) * _POLLS_A_ROUND


class LoopGuard(Struct, frozen=True):
    """The newest calls of a turn, normalised; `add` gives the next guard, `repeats` how often the last came round."""

    seen: tuple[str, ...] = ()

    def add(self, call: ToolCall) -> LoopGuard:
        return LoopGuard((*self.seen, _normal(call))[-_KEPT:])

    @property
    def repeats(self) -> int:
        """1 for a call never made before; 3 when it, or the cycle that it closes, has been made three times running."""
        return max((_rounds(self.seen, length) for length in (1, *_CYCLES)), default=0)

    @property
    def advice(self) -> str:
        """What the model is told with the result, empty while there is nothing to say."""
        cycles = max(_rounds(self.seen, length) for length in _CYCLES)
        if self.repeats < TELL_AT and cycles < TELL_CYCLE_AT:
            return ""
        return (
            f"\n\n[This call, or the cycle of calls it closes, has now been made {self.repeats} times with the same "
            "arguments. Its result will not change: use what you have, try another way, or ask the user.]"
        )

    @property
    def must_ask(self) -> bool:
        return self.repeats >= ASK_AT


def _rounds(seen: tuple[str, ...], length: int) -> int:
    cycle = seen[-length:]
    if len(cycle) < length or (length > 1 and len(set(cycle)) == 1):
        return 0
    rounds = 1
    while seen[-length * (rounds + 1) : -length * rounds] == cycle:
        rounds += 1
    polls = any(call.partition(" ")[0] in _POLLS for call in cycle)
    return min(rounds, 1 + rounds // _POLLS_A_ROUND) if polls else rounds


def _normal(call: ToolCall) -> str:
    try:
        arguments = json.dumps(json.loads(call.arguments or "{}"), sort_keys=True)
    except ValueError:
        arguments = call.arguments
    return f"{call.name} {arguments}"
