"""What is known about folded parts of a conversation, and about how full the context is."""

from typing import Any, Literal

from msgspec import Struct

from mycode.core.usage import Usage

Strategy = Literal["rules", "llm", "hybrid"]
TriggerReason = Literal[
    "ratio", "messages", "tokens", "trim", "emergency", "overflow", "manual", "resume", "model_switch"
]


def cause(reason: TriggerReason | None) -> str:
    """What happened that made a fold due, in a few words; empty where nothing did but that more was said."""
    match reason:
        case "resume":
            return "the session was resumed"
        case "model_switch":
            return "the new model's window is smaller"
        case _:
            return ""


class Trigger(Struct, frozen=True):
    """Why the past is folded now: the clause that held, the measured ratio of tokens to window, and the tokens."""

    reason: TriggerReason
    ratio: float
    tokens: int
    emergency: bool = False


class ActionItem(Struct, frozen=True):
    task: str
    owner: str = ""
    due: str = ""


class SummaryContext(Struct, frozen=True):
    """The structured facets of a summary (R73). Arrays are empty rather than invented."""

    participants: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    action_items: tuple[ActionItem, ...] = ()
    unresolved: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    raw: dict[str, Any] | None = None


class ToolUse(Struct, frozen=True):
    """How often a tool was used in the covered part, with at most three notable uses (R101)."""

    tool: str
    count: int
    notable: tuple[str, ...] = ()


class CommandRun(Struct, frozen=True):
    command: str
    exit_code: int | None = None


class ErrorSeen(Struct, frozen=True):
    text: str
    resolved: bool = False


class Verification(Struct, frozen=True):
    """What the code found when it checked a summary: shares between 0 and 1, and what it mended."""

    recall: float
    grounding: float
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        return round((self.recall + self.grounding) / 2, 3)


class SummaryRecord(Struct, frozen=True, tag_field="kind", tag="summary"):
    """A fold laid over the log (R74, R88, R100): it covers messages `covers[0]` to `covers[1]` by seq, inclusive.

    Ids, hashes and extracted data only: no raw message text is copied in. `depth` counts summaries of summaries;
    `parent_id` is the record that this one continues. Tokens are counts of the view before and after.
    """

    id: str
    at: float
    covers: tuple[int, int]
    depth: int
    strategy: Strategy
    trigger: TriggerReason
    narrative: str
    parent_id: str | None = None
    focus: str = ""
    key_points: tuple[str, ...] = ()
    context: SummaryContext = SummaryContext()
    files_modified: tuple[str, ...] = ()
    files_read: tuple[str, ...] = ()
    commands: tuple[CommandRun, ...] = ()
    errors: tuple[ErrorSeen, ...] = ()
    tools_used: tuple[ToolUse, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    verification: Verification | None = None
    model: str = ""
    usage: Usage | None = None
    message_ids: tuple[str, ...] = ()
    sha256: tuple[str, ...] = ()
    version: int = 1
    digest: str = ""

    def place(self) -> "SummaryRecord":
        """What must still be known of it once a newer one covers it: where it lies, not its words."""
        return SummaryRecord(
            self.id,
            self.at,
            self.covers,
            self.depth,
            self.strategy,
            self.trigger,
            "",
            parent_id=self.parent_id,
        )


class MaskEpoch(Struct, frozen=True, tag_field="kind", tag="mask"):
    """Old tool results shown as one line each from now on: seq of the result -> the line that stands in for it.

    `metadata` holds what was counted and named in each of them (R6), by the same seqs; secrets are masked. `trigger`
    is why it was done, unknown in logs of older versions.
    """

    stubs: dict[int, str]
    tokens_before: int = 0
    tokens_after: int = 0
    metadata: dict[int, dict[str, str | int | bool]] = {}
    trigger: TriggerReason | None = None


class Undo(Struct, frozen=True, tag_field="kind", tag="undo"):
    """Takes back one earlier overlay (summary, mask epoch, drop, pin): the view is again what it was before it."""

    target: int


class Drop(Struct, frozen=True, tag_field="kind", tag="drop"):
    """The person took messages out of the view by hand; `shrink` keeps their one-line digests, else a bare mark."""

    seqs: tuple[int, ...]
    shrink: bool = False


class Pin(Struct, frozen=True, tag_field="kind", tag="pin"):
    """Text kept word for word in every view, e.g. a constraint; `message_seq` when it is a pinned message."""

    text: str
    source: Literal["person", "message", "constraint"] = "person"
    message_seq: int | None = None


class Category(Struct, frozen=True):
    """A part of the context for `/context`: `name` is shown, `tokens` is its share of the next request."""

    name: Literal["system", "tools", "memory", "pins", "summary", "user", "assistant", "tool results", "other"]
    tokens: int
    items: int = 0


class TriggerDistance(Struct, frozen=True):
    """How far a trigger is: `used` of `limit` in `unit`; it is armed unless hysteresis or cooldown holds it back."""

    name: str
    used: float
    limit: float
    unit: Literal["tokens", "messages", "ratio"]
    armed: bool = True


class ContextUsage(Struct, frozen=True):
    """The one count that the toolbar, `/context`, the triggers and the reports all read. All sizes in tokens.

    `tokens` is what the next request will hold (last real usage + what came since, calibrated); `window` the model's;
    `cut` is what the view holds beyond that and would be left out of it, since it does not fit. `reserve` is kept for
    the answer; `exact` is False while an estimate stands in for the tokenizer.
    """

    model: str
    window: int
    reserve: int
    tokens: int
    categories: tuple[Category, ...] = ()
    triggers: tuple[TriggerDistance, ...] = ()
    messages: int = 0
    summaries: int = 0
    masked: int = 0
    exact: bool = True
    window_known: bool = True
    maskable: int = 0
    foldable: int = 0
    cut: int = 0
    calibration: float = 1.0

    @property
    def ratio(self) -> float:
        """Tokens of the next request over the whole window (R67)."""
        return self.tokens / self.window if self.window else 0.0

    @property
    def free(self) -> int:
        return max(0, self.window - self.reserve - self.tokens)
