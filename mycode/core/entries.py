"""One row of the log: immutable, numbered without gaps, never rewritten by anything the context engine does."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Literal, Protocol

from msgspec import Struct

from mycode.core.messages import AssistantMessage, Message, ToolResult, UserMessage
from mycode.core.summaries import Drop, MaskEpoch, Pin, SummaryRecord, Undo


class Grant(Struct, frozen=True, tag_field="kind", tag="grant"):
    """An approval that was given or refused; kept beside the conversation, never shown to a model."""

    tool: str
    title: str
    answer: Literal["once", "always", "no"]
    by: str
    rule: str | None = None


class Checkpoint(Struct, frozen=True, tag_field="kind", tag="checkpoint"):
    """The state of the workspace before a turn changed it, by the checkpointer's own id."""

    ref: str
    turn: int


class Note(Struct, frozen=True, tag_field="kind", tag="log_note"):
    """Something worth keeping that is no message: `title_set`, `model_set`, `turn_ended`, `cleared`, ..."""

    name: str
    data: dict[str, Any] = {}


class Unknown(Struct, frozen=True, tag_field="kind", tag="unknown"):
    """A kind that this version does not know: kept as it came (JSON text), skipped by every reader."""

    raw: str


Body = (
    UserMessage
    | AssistantMessage
    | ToolResult
    | SummaryRecord
    | MaskEpoch
    | Undo
    | Drop
    | Pin
    | Grant
    | Checkpoint
    | Note
    | Unknown
)


class Entry(Struct, frozen=True):
    """A row: `seq` counts from 1 within a session; `at` is Unix seconds; `tokens` counts the body (0 if none).

    `sha256` (hex) is over the body's JSON as stored.
    """

    seq: int
    id: str
    at: float
    body: Body
    tokens: int = 0
    sha256: str = ""

    @property
    def message(self) -> Message | None:
        """The body if it is something that was said, else None."""
        body = self.body
        return body if isinstance(body, UserMessage | AssistantMessage | ToolResult) else None


class Log(Protocol):
    """A session's rows, readable in parts: whoever resumes a session of 100,000 messages does not read them all."""

    def read(self, start: int, stop: int | None = None) -> Iterable[Entry]:
        """Entries with start <= seq < stop, ascending."""
        ...

    def overlays(self, undone: Collection[int] = ()) -> Iterable[Entry]:
        """Every entry that may change the view, ascending; those with the seqs `undone` are about to be taken back.

        What comes with every turn may be left out, and so may whatever shows nothing because a newer summary covers it.
        """
        ...

    def last_seq(self) -> int:
        """0 when empty."""
        ...

    def tokens(self, start: int, stop: int | None = None) -> int:
        """Sum of `Entry.tokens` over messages in the range, without reading them."""
        ...

    def messages(self, start: int, stop: int | None = None) -> int:
        """How many messages are in the range, without reading them."""
        ...
