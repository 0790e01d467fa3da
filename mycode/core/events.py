"""Everything a person or program can see happening: plain values that survive JSON. Nobody prints from below.

Promises: one `TurnStarted` first and one `TurnEnded` last unless the consumer cancels; each `ToolStarted` has its
`ToolFinished`; deltas may be dropped because `MessageAdded` is complete; an event that carries an `entry` is on disk
before a front end sees it. New kinds may be added at any time: consumers ignore what they do not know.
"""

from typing import Literal

from msgspec import Struct

from mycode.core.entries import Entry
from mycode.core.messages import ToolCall, ToolResult
from mycode.core.summaries import Trigger
from mycode.core.tools import Approval, ApprovalRequest, Display, Question
from mycode.core.usage import Usage

EndReason = Literal[
    "done",
    "turn_limit",
    "budget",
    "denied",
    "refused",
    "truncated",
    "cannot_ask",
    "context_full",
    "failed",
    "interrupted",
    "loop",
]


class TurnStarted(Struct, frozen=True, tag_field="type", tag="turn_started"):
    turn: int


class TextDelta(Struct, frozen=True, tag_field="type", tag="text_delta"):
    text: str


class ReasoningDelta(Struct, frozen=True, tag_field="type", tag="reasoning_delta"):
    text: str


class MessageAdded(Struct, frozen=True, tag_field="type", tag="message_added"):
    """A whole message has joined the history."""

    entry: Entry


class ToolStarted(Struct, frozen=True, tag_field="type", tag="tool_started"):
    call: ToolCall
    title: str


class ToolProgress(Struct, frozen=True, tag_field="type", tag="tool_progress"):
    call_id: str
    text: str


class ToolFinished(Struct, frozen=True, tag_field="type", tag="tool_finished"):
    """How a call ended.

    `denied` tells a refusal by permission or person, `malformed` a call that could not be understood (no JSON, cut off,
    wrong fields, no such tool), from a failure of the tool itself.
    """

    call: ToolCall
    result: ToolResult
    seconds: float
    display: Display | None = None
    denied: bool = False
    malformed: bool = False


class ApprovalAsked(Struct, frozen=True, tag_field="type", tag="approval_asked"):
    request: ApprovalRequest


class ApprovalGiven(Struct, frozen=True, tag_field="type", tag="approval_given"):
    """The answer to an approval; `entry` holds the grant."""

    call_id: str
    approval: Approval
    entry: Entry | None = None


class QuestionAsked(Struct, frozen=True, tag_field="type", tag="question_asked"):
    call_id: str
    question: Question


class ContextMasked(Struct, frozen=True, tag_field="type", tag="context_masked"):
    """Old tool results became one line each; `entry` holds the epoch, sizes are tokens of the view."""

    entry: Entry
    tokens_before: int
    tokens_after: int


class SummaryStarted(Struct, frozen=True, tag_field="type", tag="summary_started"):
    trigger: Trigger
    messages: int


class SummaryFinished(Struct, frozen=True, tag_field="type", tag="summary_finished"):
    """A summary now stands for a part of the history; `entry` holds the record."""

    entry: Entry
    seconds: float


class ContextChanged(Struct, frozen=True, tag_field="type", tag="context_changed"):
    """The view was changed by hand: undo, drop, restore, pin, unpin. `text` says it in one line."""

    entry: Entry
    text: str


class Retrying(Struct, frozen=True, tag_field="type", tag="retrying"):
    """The model will be asked again in `delay` seconds; with `discard`, the text shown so far does not count."""

    attempt: int
    attempts: int
    delay: float
    error: str
    status: int | None = None
    discard: bool = False


class Warned(Struct, frozen=True, tag_field="type", tag="warned"):
    text: str


class TurnEnded(Struct, frozen=True, tag_field="type", tag="turn_ended"):
    """The turn is over: why, its cost, its model calls (`steps`); `error` is a sentence, `exit_code` its code."""

    reason: EndReason
    usage: Usage
    steps: int
    seconds: float = 0.0
    error: str = ""
    exit_code: int = 0


Event = (
    TurnStarted
    | TextDelta
    | ReasoningDelta
    | MessageAdded
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | ApprovalAsked
    | ApprovalGiven
    | QuestionAsked
    | ContextMasked
    | SummaryStarted
    | SummaryFinished
    | ContextChanged
    | Retrying
    | Warned
    | TurnEnded
)
