"""One row of the log: immutable, numbered without gaps, never rewritten by anything the context engine does."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Literal, Protocol

from msgspec import Struct

from mycode.core.messages import AssistantMessage, Message, ToolResult, UserMessage
from mycode.core.summaries import Drop, MaskEpoch, Pin, SummaryRecord, Undo
from mycode.core.usage import Usage


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


class Purged(Struct, frozen=True, tag_field="kind", tag="purged"):
    """What is left of a message whose text was removed (R116), in its place: who spoke, how much, its hash.

    `at` is when it was removed, `chars` counts the text with its calls, `sha256` (hex) is that of the body as it was
    stored, `summary` the id of the record that stands for it. A `pin` is the copy that an earlier pin had kept of it.
    """

    role: Literal["user", "assistant", "tool", "pin"]
    at: float
    chars: int
    sha256: str
    summary: str = ""
    model: str = ""
    usage: Usage | None = None

    @property
    def text(self) -> str:
        """The sentence that is shown where the text was."""
        return f"purged on {_day(self.at)}; {self.chars:,} characters, sha256 {self.sha256}"


class PurgedText(Struct, frozen=True):
    """A kept text (`t<number>`) that was removed: its characters and the sha256 (hex) of its bytes."""

    number: int
    chars: int
    sha256: str


class Purge(Struct, frozen=True, tag_field="kind", tag="purge"):
    """Texts of messages were removed for good: every message within `ranges` (seq, inclusive), and kept texts.

    `why` is one clause for the person; `pins` are the entries of lifted pins that held a copy.
    """

    at: float
    why: str
    ranges: tuple[tuple[int, int], ...]
    messages: int
    chars: int
    texts: tuple[PurgedText, ...] = ()
    pins: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """What was removed, when and why, as one line."""
        places = ", ".join(f"m{first}-m{last}" if last > first else f"m{first}" for first, last in self.ranges)
        kept = ", ".join(f"t{text.number}" for text in self.texts)
        return (
            f"purged on {_day(self.at)}, {self.why}: {places}{f' and {kept}' if kept else ''} "
            f"({self.messages:,} {'message' if self.messages == 1 else 'messages'}, {self.chars:,} characters)"
        )


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
    | Purged
    | Purge
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
        """The body if it is something that was said, else None; for one that was purged, a sentence that says so."""
        body = self.body
        if isinstance(body, UserMessage | AssistantMessage | ToolResult):
            return body
        return _stand_in(body) if isinstance(body, Purged) else None


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


def _stand_in(body: Purged) -> Message | None:
    match body.role:
        case "user":
            return UserMessage(body.text)
        case "assistant":
            return AssistantMessage(body.text, model=body.model, usage=body.usage)
        case "tool":
            return ToolResult("", body.text)
        case _:
            return None


def _day(at: float) -> str:
    """The date of a moment as a person here reads it."""
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(at, UTC).astimezone().date().isoformat()
    except (ValueError, OverflowError, OSError):
        return "an unknown day"
