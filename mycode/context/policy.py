"""When and how the past is folded: every setting of the context engine, and the pure decisions made from them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from mycode.core.errors import ConfigError
from mycode.core.models import ModelInfo
from mycode.core.summaries import Trigger, TriggerReason

Choice = Literal["auto", "rules", "llm", "hybrid"]
"""Who writes a summary."""


class Auto(Struct, frozen=True, forbid_unknown_fields=True):
    """When a summary is made without being asked for (R67, R71, R99, C3, C4)."""

    enabled: bool = True
    """False: never by itself; at the limit the person is asked (R118)."""
    trigger_ratio: float = 0.8
    """Share of the window at which the past is folded (reached or passed)."""
    reset_ratio: float = 0.7
    """Share of the window below which the trigger is armed again; less than `trigger_ratio`."""
    emergency_ratio: float = 1.0
    """Share of the window at which cooldown and every other restraint is ignored."""
    message_threshold: int = 50
    """Fold when more messages than this are in view; 0: never for their number."""
    message_ratio: float = 0.5
    """... and only if this share of the window is used; 0: whatever it is."""
    max_tokens: int = 400_000
    """Fold at this many tokens however large the window; 0: no such cap."""
    min_messages: int = 12
    """Fewer messages than this in view are not folded, short of an emergency."""
    cooldown_messages: int = 4
    """This many new messages must follow a summary before the next, short of an emergency."""
    force_refresh_after_messages: int = 0
    """Fold whenever this many messages came since the last summary; 0: never for that."""
    max_depth: int = 3
    """Generations of summaries of summaries (R68)."""
    on_depth_limit: Literal["rebase", "halt", "rule_only"] = "rebase"
    """At that depth: rebuild from the originals, stop summarizing, or go on by rules alone (C7)."""
    min_saving: float = 0.1
    """A summary that would free less than this share of the view is refused."""
    passes_without_progress: int = 2
    """After this many refused or fruitless passes in a row it stops and explains."""
    notify: Literal["off", "line", "panel"] = "line"
    """How an automatic summary is told (C19)."""
    grace_seconds: float = 2.0
    """So long a person at a terminal may put an automatic summary off, unless it is an emergency; 0: not at all."""

    def __post_init__(self) -> None:
        _share("context.auto.trigger_ratio", self.trigger_ratio)
        _share("context.auto.reset_ratio", self.reset_ratio)
        _share("context.auto.message_ratio", self.message_ratio)
        _share("context.auto.min_saving", self.min_saving)
        if self.reset_ratio >= self.trigger_ratio:
            _refuse(
                "context.auto.reset_ratio", self.reset_ratio, f"must be less than trigger_ratio ({self.trigger_ratio})"
            )
        if not 0.5 <= self.emergency_ratio <= 1.0:
            _refuse("context.auto.emergency_ratio", self.emergency_ratio, "must lie between 0.5 and 1")
        for name in ("message_threshold", "max_tokens", "min_messages", "cooldown_messages"):
            _at_least(f"context.auto.{name}", getattr(self, name), 0)
        _at_least("context.auto.force_refresh_after_messages", self.force_refresh_after_messages, 0)
        _at_least("context.auto.max_depth", self.max_depth, 1)
        _at_least("context.auto.passes_without_progress", self.passes_without_progress, 1)
        if not 0 <= self.grace_seconds <= 60:
            _refuse("context.auto.grace_seconds", self.grace_seconds, "must lie between 0 and 60")


class Keep(Struct, frozen=True, forbid_unknown_fields=True):
    """What stays word for word after a fold (C5)."""

    recent_messages: int = 10
    """Newest messages kept as they are."""
    recent_share: float = 0.25
    """... as long as they hold at most this share of the room for input."""
    floor: int = 2
    """Never fewer than this many."""

    def __post_init__(self) -> None:
        _at_least("context.keep.floor", self.floor, 1)
        _at_least("context.keep.recent_messages", self.recent_messages, self.floor)
        _share("context.keep.recent_share", self.recent_share)


class Window(Struct, frozen=True, forbid_unknown_fields=True):
    """How much of the model's window is used (R47, R22)."""

    max_context_tokens: int = 0
    """Use at most this many tokens of the window; 0: all of it. Beats what is known of the model."""
    target_context_tokens: int = 0
    """A fold aims below this many tokens; 0: `reset_ratio` of the window."""
    reserved_output_tokens: int = 0
    """Kept free for the answer; 0: the model's output limit, at most 20,000 and a quarter of the window."""
    safety_margin: float = 0.02
    """Share of the room for input left unused, for counts that are a little wrong; doubled while estimating."""

    def __post_init__(self) -> None:
        for name in ("max_context_tokens", "target_context_tokens", "reserved_output_tokens"):
            _at_least(f"context.window.{name}", getattr(self, name), 0)
        if not 0 <= self.safety_margin <= 0.25:
            _refuse("context.window.safety_margin", self.safety_margin, "must lie between 0 and 0.25")
        if self.max_context_tokens and self.target_context_tokens >= self.max_context_tokens:
            _refuse(
                "context.window.target_context_tokens",
                self.target_context_tokens,
                "must be less than max_context_tokens",
            )


class Summary(Struct, frozen=True, forbid_unknown_fields=True):
    """How the past is told (R3, R4, C2, C6)."""

    strategy: Choice = "auto"
    """Who writes it; auto: hybrid if a model can be asked, else rules."""
    form: Literal["selection", "lines"] = "selection"
    """What rules write: the lines most likely to be needed again, or one line for each message."""
    max_summary_tokens: int = 8_000
    """The whole summary holds at most this many tokens."""
    max_share: float = 0.1
    """... and at most this share of the room for input (R23)."""
    target_compression: float = 0.3
    """... and at most this share of what it stands for (R99)."""
    title: str = ""
    """A line put above the summary; {messages} and {depth} are filled in."""
    pin_constraints: bool = True
    """Sentences with which the person laid something down stay word for word when they are folded."""
    footer: bool = True
    """After a fold, close the view with a short reminder of open errors and tasks."""

    def __post_init__(self) -> None:
        _at_least("context.summary.max_summary_tokens", self.max_summary_tokens, 50)
        _share("context.summary.max_share", self.max_share)
        _share("context.summary.target_compression", self.target_compression)


class Llm(Struct, frozen=True, forbid_unknown_fields=True):
    """How a model is asked for a summary (R14-R18, R82-R87, C9-C12)."""

    summarizer_model_preference: tuple[str, ...] = ()
    """Models to ask, in order; empty: the one that is talked to."""
    max_tokens: int = 2_500
    """A model's whole answer holds at most this many tokens (R17); three fifths of them are for its narrative."""
    input_cap: int = 32_000
    """The model reads at most this many tokens of transcript."""
    on_oversize: Literal["rule_based", "trim_oldest", "chunk"] = "chunk"
    """If there is more: go by rules, leave out the oldest, or read evenly from all parts."""
    message_chars: int = 2_000
    """Each message is cut to this many characters, head and tail."""
    summary_prompt: str = ""
    """Instructions that replace the product's own; may name {max_tokens} and {context}."""
    on_failure: Literal["rule_based", "keep", "raise"] = "rule_based"
    """If no summary could be had: rules, nothing at all, or an error."""
    retries: int = 1
    """Tries after a transport error; an unreadable answer is never retried."""
    backoff_seconds: float = 0.25
    """First wait before a retry; doubles each time."""
    deadline_seconds: float = 10.0
    """One limit over all tries while the person waits."""
    background_deadline_seconds: float = 120.0
    """The same while nobody waits."""
    max_calls_per_trigger: int = 1
    """Calls to a model that one trigger may cost; further passes go by rules."""
    breaker_failures: int = 3
    """After this many failures in a row, rules until a summary by hand succeeds."""
    max_key_points: int = 30
    """Most highlights a summary may list (R84)."""

    def __post_init__(self) -> None:
        for name in ("max_tokens", "input_cap", "message_chars", "max_calls_per_trigger", "breaker_failures"):
            _at_least(f"context.llm.{name}", getattr(self, name), 1)
        _at_least("context.llm.retries", self.retries, 0)
        _at_least("context.llm.max_key_points", self.max_key_points, 1)
        for name in ("deadline_seconds", "background_deadline_seconds"):
            if getattr(self, name) <= 0:
                _refuse(f"context.llm.{name}", getattr(self, name), "must be more than 0")
        if self.backoff_seconds < 0:
            _refuse("context.llm.backoff_seconds", self.backoff_seconds, "must not be negative")


class ToolResults(Struct, frozen=True, forbid_unknown_fields=True):
    """What stands in for a tool result that is trimmed or masked (R33, C1, C16, C18)."""

    summarize: bool = False
    """When a request must be trimmed: True puts a one-line digest in its place, False a bare mark with its age."""
    preserve_errors: bool = True
    """Keep error output whole, up to `max_error_chars`."""
    max_error_chars: int = 2_000
    """Longest error output that is kept, head and tail."""
    max_summary_length: int = 200
    """Longest digest line in characters."""
    include_metadata: bool = True
    """Keep what was counted and named in a masked result (path, lines, exit code ...) in the log, beside its line."""
    style: Literal["full", "compact"] = "full"
    """The shape of a digest line."""
    command_chars: int = 60
    """A command in a digest is cut to this many characters."""

    def __post_init__(self) -> None:
        _at_least("context.tool_results.max_error_chars", self.max_error_chars, 1)
        _at_least("context.tool_results.max_summary_length", self.max_summary_length, 20)
        _at_least("context.tool_results.command_chars", self.command_chars, 8)


class Masking(Struct, frozen=True, forbid_unknown_fields=True):
    """When old tool results become one line each (design, layer 4)."""

    enabled: bool = True
    """False: results stay whole until they are folded."""
    min_saving: float = 0.15
    """Only if this share of the view is freed, since it makes the provider read the rest anew."""
    target_ratio: float = 0.35
    """... and only if this brings the view down to this share of the window; otherwise the past is folded."""
    protect_share: float = 0.2
    """The newest tool results that make up this share of the room for input are left alone."""
    min_tokens: int = 150
    """Smaller results are not worth it."""
    never: tuple[str, ...] = ("todo", "todo_write", "plan", "ask", "ask_user", "skill", "task")
    """Tools whose results are never masked."""

    def __post_init__(self) -> None:
        _share("context.masking.min_saving", self.min_saving)
        _share("context.masking.target_ratio", self.target_ratio)
        _share("context.masking.protect_share", self.protect_share)
        _at_least("context.masking.min_tokens", self.min_tokens, 1)


class Precompute(Struct, frozen=True, forbid_unknown_fields=True):
    """The next summary, prepared while nobody waits."""

    enabled: bool = True
    """False: a summary is made when it is due."""
    ratio: float = 0.65
    """Share of the window from which it is prepared."""

    def __post_init__(self) -> None:
        _share("context.precompute.ratio", self.ratio)


class Originals(Struct, frozen=True, forbid_unknown_fields=True):
    """What becomes of folded messages in the log (R116, C22)."""

    policy: Literal["keep", "purge_after_days", "purge"] = "keep"
    """`keep` them; or remove their text once that is safe (docs/sessions.md), of all, or of those older than `days`.

    What stays is id, role, length, sha256 and the link to the summary.
    """
    days: int = 30
    """Age in days from which they are purged, under purge_after_days."""

    def __post_init__(self) -> None:
        _at_least("context.originals.days", self.days, 0)


class Policy(Struct, frozen=True, forbid_unknown_fields=True):
    """All settings of the context engine: the `[context]` table."""

    auto: Auto = field(default_factory=Auto)
    """When a summary is made by itself."""
    keep: Keep = field(default_factory=Keep)
    """What stays word for word."""
    window: Window = field(default_factory=Window)
    """How much of the window is used."""
    summary: Summary = field(default_factory=Summary)
    """How the past is told."""
    llm: Llm = field(default_factory=Llm)
    """How a model is asked for a summary."""
    tool_results: ToolResults = field(default_factory=ToolResults)
    """What stands in for a trimmed tool result."""
    masking: Masking = field(default_factory=Masking)
    """When old tool results become one line."""
    precompute: Precompute = field(default_factory=Precompute)
    """The next summary, ahead of time."""
    originals: Originals = field(default_factory=Originals)
    """What becomes of folded messages."""

    def __post_init__(self) -> None:
        if (
            self.precompute.enabled
            and self.precompute.ratio >= self.auto.trigger_ratio
            and self.auto.trigger_ratio > 0.65
        ):
            _refuse("context.precompute.ratio", self.precompute.ratio, "must be less than auto.trigger_ratio")


class Measure(Struct, frozen=True):
    """What a decision is made from: sizes in tokens of the next request, and what came since the last fold.

    `after_last_fold` is the ratio right after it (0 if there was none); `since_fold` counts messages.
    """

    tokens: int
    window: int
    budget: int
    messages: int
    folds: int = 0
    since_fold: int = 0
    after_last_fold: float = 0.0
    depth: int = 0

    @property
    def ratio(self) -> float:
        return self.tokens / self.window if self.window else 0.0


def window(policy: Policy, info: ModelInfo) -> int:
    """Tokens of the window in use: the person's own limit beats what is known of the model."""
    declared = policy.window.max_context_tokens
    if declared:
        return min(declared, info.window) if info.window_known and info.window else declared
    return max(1, info.window)


def reserve(policy: Policy, info: ModelInfo) -> int:
    """Tokens kept free for the answer."""
    size = window(policy, info)
    declared = policy.window.reserved_output_tokens
    if declared:
        return min(declared, size // 2)
    # At most a sixth, so that the trigger at 0.8 of the window always comes before the emergency.
    return min(info.output_limit or 20_000, 20_000, size // 6)


def fold_target(policy: Policy, info: ModelInfo) -> int:
    """Tokens of the whole request below which a fold should bring it."""
    size = window(policy, info)
    if policy.window.target_context_tokens:
        return min(policy.window.target_context_tokens, size - reserve(policy, info))
    return round(policy.auto.reset_ratio * min(size, size - reserve(policy, info)))


def summary_budget(policy: Policy, room: int, folded: int, previous: int = 0) -> int:
    """Tokens a summary may hold: the smallest of its limits (R23, R99, C6).

    `room` is the whole room for input, `folded` what is folded now, `previous` the summary that is continued: it was
    compressed before.
    """
    limits = policy.summary
    return int(
        min(limits.max_summary_tokens, limits.max_share * room, max(120, previous + limits.target_compression * folded))
    )


def due(policy: Policy, measure: Measure, reason: TriggerReason | None = None) -> Trigger | None:
    """The clause that holds, or None: caps with hysteresis and cooldown; an emergency knows neither (R78-R80).

    `reason` is why the question is put now (`resume`, `model_switch`); it names the trigger but forces nothing;
    only `manual` always holds.
    """
    auto = policy.auto
    if reason == "manual":
        return Trigger("manual", measure.ratio, measure.tokens)
    if measure.tokens >= auto.emergency_ratio * measure.window or measure.tokens > measure.budget:
        return Trigger(reason or "emergency", measure.ratio, measure.tokens, emergency=True)
    if not auto.enabled or halted(policy, measure.depth):
        return None
    if measure.messages < auto.min_messages or not armed(policy, measure):
        return None
    clause = _clause(auto, measure)
    return Trigger(reason or clause, measure.ratio, measure.tokens) if clause else None


def armed(policy: Policy, measure: Measure) -> bool:
    """Whether hysteresis and cooldown let a trigger pass: not right after a fold that left usage above reset."""
    if not measure.folds:
        return True
    if measure.since_fold < max(1, policy.auto.cooldown_messages):
        return False
    return measure.after_last_fold < policy.auto.reset_ratio or measure.since_fold >= policy.auto.min_messages


def halted(policy: Policy, depth: int) -> bool:
    """Whether the depth guard has stopped summarizing for good (`depth`: how deep the next record would be)."""
    return policy.auto.on_depth_limit == "halt" and depth >= policy.auto.max_depth


def _clause(auto: Auto, measure: Measure) -> TriggerReason | None:
    if measure.ratio >= auto.trigger_ratio:
        return "ratio"
    if auto.max_tokens and measure.tokens >= auto.max_tokens:
        return "tokens"
    if auto.message_threshold and measure.messages > auto.message_threshold and measure.ratio >= auto.message_ratio:
        return "messages"
    if auto.force_refresh_after_messages and measure.since_fold >= auto.force_refresh_after_messages:
        return "messages"
    return None


def _share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        _refuse(name, value, "must lie between 0 and 1")


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        _refuse(name, value, f"must be at least {least}")


def _refuse(name: str, value: float, why: str) -> None:
    message = f"The setting {name} = {value} is wrong: it {why}."
    raise ConfigError(message)
