"""Every setting there is, with its default; the names are those of the tables in settings.toml."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from mycode.context.policy import Policy
from mycode.core.tools import Mode

Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]
Dollars = Annotated[float, Meta(ge=0)]


class ModelSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`[model]`: which model answers, and through which door."""

    name: str | None = None
    """The model by litellm's name, `provider/model`; unset: the first with a key, else a local server."""
    api_base: str | None = None
    """Base URL of the provider's API, when it is not the provider's own."""
    transport: Literal["auto", "direct", "litellm"] = "auto"
    """`direct` is the fast lane for OpenAI-compatible servers, `litellm` goes through litellm, `auto` chooses."""
    context_window: Positive | None = None
    """Context window in tokens, when the catalog does not know the model or is wrong."""
    output_limit: Positive | None = None
    """Most tokens of one answer."""
    effort: Literal["minimal", "low", "medium", "high"] | None = None
    """Reasoning effort, for models that have it."""
    input_price: Dollars | None = None
    """US dollars per million input tokens, when the catalog does not know the model."""
    output_price: Dollars | None = None
    """US dollars per million output tokens, when the catalog does not know the model."""
    first_byte_timeout: Seconds = 300.0
    """Seconds to wait for the first byte of an answer."""
    idle_timeout: Seconds = 120.0
    """Seconds of silence after which a started answer counts as cut."""
    retry_seconds: Annotated[float, Meta(ge=0)] = 600.0
    """Seconds to go on retrying one request that fails for passing reasons."""


class ToolSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`[tools]`: how tools behave."""

    output_limit: Annotated[int, Meta(ge=1000)] = 30_000
    """Most characters of one tool result that the model is shown; the whole is kept behind a handle."""
    bash_timeout: Seconds = 120.0
    """Seconds a shell command may take when the model names no timeout."""
    allowed: tuple[str, ...] = ()
    """When not empty, only these tools are offered to the model."""
    disallowed: tuple[str, ...] = ()
    """Tools that are not offered to the model."""


class PermissionSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`[permissions]`: what may run without asking."""

    mode: Mode = "default"
    """default, acceptEdits, plan, auto, dontAsk or bypassPermissions."""
    allow: tuple[str, ...] = ()
    """Rules such as `Bash(git commit *)` that need no question."""
    ask: tuple[str, ...] = ()
    """Rules that always ask."""
    deny: tuple[str, ...] = ()
    """Rules that are always refused; nothing overrides them."""
    sandbox: Literal["auto", "read-only", "workspace-write", "off"] = "off"
    """The box for shell commands; `auto` uses one where the system has it."""
    network: bool = False
    """Whether sandboxed commands may use the network."""


class ReplTable(Struct, frozen=True, forbid_unknown_fields=True):
    """`[repl]`: the interactive screen."""

    vi: bool = False
    """Vi keys in the input line."""
    plain: bool = False
    """Labelled lines instead of a drawn screen: for screen readers, logs and simple terminals."""
    theme: Literal["auto", "dark", "light", "mono"] = "auto"
    """Colours; NO_COLOR turns them off altogether."""
    editor: str | None = None
    """External editor for the prompt; unset: $VISUAL, then $EDITOR."""


class SessionSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`[session]`: how conversations are kept."""

    persist: bool = True
    """Whether sessions are written to disk."""
    store_secrets: bool = True
    """Whether the log keeps what looks like a secret as it came (files are 0600), or masked."""
    debug_log: bool = False
    """Whether each summary, masking and warning leaves a line in debug.log, in the data folder."""
    max_steps: Positive | None = None
    """Most model calls in one turn."""
    max_budget_usd: Annotated[float, Meta(gt=0)] | None = None
    """Most US dollars for one run of the program."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """All tables; `context` is the policy of the context engine."""

    model: ModelSettings = ModelSettings()
    tools: ToolSettings = ToolSettings()
    permissions: PermissionSettings = PermissionSettings()
    repl: ReplTable = ReplTable()
    session: SessionSettings = SessionSettings()
    context: Policy = Policy()
