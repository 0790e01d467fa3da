"""How many tokens a request holds: counted once per message, corrected by what the provider really charged."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from mycode.core.messages import AssistantMessage, ContextNote, ToolResult, ViewMessage
from mycode.core.models import ToolSpec

MESSAGE_OVERHEAD = 4
"""Tokens that a message costs beside its text (R45)."""
IMAGE_TOKENS = 1_100
"""What a picture costs, roughly, with the large providers."""

Count = Callable[[str], int]


def message_tokens(message: ViewMessage, count: Count) -> int:
    """Tokens of one message as it is sent: text, calls and pictures."""
    match message:
        case AssistantMessage():
            total = count(message.text) if message.text else 0
            for call in message.tool_calls:
                total += count(call.name) + count(call.arguments) + 8
        case ContextNote():
            total = count(message.text) + 4
        case ToolResult():
            total = count(message.text) + 6 + IMAGE_TOKENS * len(message.images)
        case _:
            total = count(message.text) + IMAGE_TOKENS * len(message.images)
    return total + MESSAGE_OVERHEAD


def estimate_response(prompt_tokens: int) -> int:
    """A rough guess of an answer's tokens before anything is known of the conversation: half of its prompt's (R46)."""
    return prompt_tokens // 2


def tools_tokens(tools: Sequence[ToolSpec], count: Count) -> int:
    """Tokens of the tool schemas as they are sent."""
    return sum(count(msgspec.json.encode(tool).decode()) + MESSAGE_OVERHEAD for tool in tools)


class Learned(Struct, frozen=True, omit_defaults=True):
    """What requests taught about one model: real tokens per counted token, and the window that a refusal showed.

    `window` is 0 unless a refusal showed it to be smaller than `of`, the window known of it then; `guessed` when the
    refusal named no limit.
    """

    multiplier: float = 1.0
    window: int = 0
    of: int = 0
    guessed: bool = False


class Anchor(Struct, frozen=True):
    """The last request whose real size is known: our count of it and the provider's, valid within one epoch."""

    epoch: int
    counted: int
    real: int


def calibrated(counted: int, multiplier: float, anchor: Anchor | None, epoch: int) -> int:
    """The best guess of the real size: the last real size plus what came since, else the corrected count."""
    if anchor is not None and anchor.epoch == epoch and counted >= anchor.counted:
        return anchor.real + round((counted - anchor.counted) * multiplier)
    return round(counted * multiplier)


def learn(multiplier: float, counted: int, real: int) -> float:
    """The multiplier after one more real size: a moving average that takes small steps and stays within 0.5 and 2."""
    if counted <= 0 or real <= 0:
        return multiplier
    step = 0.2 * (real / counted - multiplier)
    return min(2.0, max(0.5, multiplier + min(0.15, max(-0.15, step))))
