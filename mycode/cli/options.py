"""What was asked for on the command line, as one value, and the part of it that is settings (pure)."""

from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from mycode.core.tools import Mode

OutputFormat = Literal["text", "json", "stream-json"]


class RunOptions(Struct, frozen=True):
    """The options of `mycode` and `mycode -p`; None or empty where nothing was said.

    In a chat, `prompt` is what is said first.
    """

    prompt: str | None = None
    output_format: OutputFormat = "text"
    output_file: Path | None = None
    partial: bool = False
    continue_last: bool = False
    resume: str | None = None
    fork: bool = False
    name: str | None = None
    persist: bool = True
    model: str | None = None
    api_base: str | None = None
    context_window: int | None = None
    transport: Literal["auto", "direct", "litellm"] | None = None
    effort: Literal["minimal", "low", "medium", "high"] | None = None
    record: Path | None = None
    replay: Path | None = None
    permission_mode: Mode | None = None
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    sandbox: Literal["auto", "read-only", "workspace-write", "off"] | None = None
    max_turns: int | None = None
    max_budget_usd: float | None = None
    append_system_prompt: str = ""
    plain: bool = False
    debug: bool = False
    settings: tuple[str, ...] = ()


def flags(options: RunOptions) -> dict[str, Any]:
    """The options that are settings, as a tree of tables; what was not said is not in it.

    `--allowed-tools` holds permission rules that need no question, `--disallowed-tools` rules that are refused; a bare
    tool name in the latter also takes the tool out of what the model is offered.
    """
    tree: dict[str, dict[str, Any]] = {
        "model": {
            "name": options.model,
            "api_base": options.api_base,
            "context_window": options.context_window,
            "transport": options.transport,
            "effort": options.effort,
        },
        "permissions": {
            "mode": options.permission_mode,
            "allow": list(options.allowed_tools) or None,
            "deny": list(options.disallowed_tools) or None,
            "sandbox": options.sandbox,
        },
        "tools": {"disallowed": [rule for rule in options.disallowed_tools if "(" not in rule] or None},
        "session": {
            "persist": False if not options.persist else None,
            "debug_log": True if options.debug else None,
            "max_steps": options.max_turns,
            "max_budget_usd": options.max_budget_usd,
        },
        "repl": {"plain": True if options.plain else None},
    }
    said = {table: {key: value for key, value in keys.items() if value is not None} for table, keys in tree.items()}
    return {table: keys for table, keys in said.items() if keys}


def split_rules(texts: list[str]) -> tuple[str, ...]:
    """Rules separated by commas or blanks, but not inside brackets: `Read,Bash(git log *) Edit` is three."""
    rules: list[str] = []
    depth, word = 0, ""
    for letter in " ".join(texts) + " ":
        depth += (letter == "(") - (letter == ")")
        if letter in ", " and depth <= 0:
            rules += [word] if word else []
            word = ""
        else:
            word += letter
    return (*rules, word.strip()) if word.strip() else tuple(rules)
