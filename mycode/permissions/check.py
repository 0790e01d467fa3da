"""Explains a verdict without running anything, for `mycode permissions check`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mycode.core.errors import ConfigError, UsageError
from mycode.core.tools import Action, Mode, Verdict
from mycode.permissions.decide import decide
from mycode.permissions.paths import look
from mycode.permissions.places import Places, absolute
from mycode.permissions.rules import TOOLS, Rules, make_rules, parse_rule
from mycode.permissions.survey import on_disk

_WRITERS = frozenset({"edit_file", "create_file", "write_file", "apply_patch", "edit", "write"})
_FETCHERS = frozenset({"fetch", "web_fetch", "webfetch"})
_SHELLS = frozenset({"execute_bash", "bash", "shell"})


def check(
    subject: str,
    *,
    tool: str = "execute_bash",
    mode: Mode = "default",
    rules: Rules | None = None,
    allow: Iterable[str] = (),
    ask: Iterable[str] = (),
    deny: Iterable[str] = (),
    places: Places,
    boxed: bool = False,
    network: bool = False,
) -> Verdict:
    """What would be said of a command, or of a tool used on a path or an address.

    Rules given by hand may be short: `curl` is `Bash(curl *)`, `read ~/.ssh` is `Read(~/.ssh)`, and for an address
    `example.com` is `WebFetch(domain:example.com)`.
    """
    own = make_rules(
        deny=[spelled_out(text, tool) for text in deny],
        ask=[spelled_out(text, tool) for text in ask],
        allow=[spelled_out(text, tool) for text in allow],
    )
    action = _action(tool, subject, places)
    everything = (rules or Rules()) + own
    return decide(
        action,
        mode=mode,
        rules=everything,
        places=places,
        look=look,
        ground=on_disk(),
        boxed=boxed,
        network=network,
    )


def report(verdict: Verdict) -> dict[str, Any]:
    """The verdict as it is printed with `--json`."""
    parts = [
        {"text": part.text, "decision": part.decision, "reason": part.reason, "rule": part.rule}
        for part in verdict.parts
    ]
    return {
        "decision": verdict.decision,
        "reason": verdict.reason,
        "rule": verdict.rule,
        "parts": parts,
        "offer": verdict.offer,
    }


def spelled_out(text: str, tool: str) -> str:
    """A rule as it is written in settings, from a short one."""
    try:
        return parse_rule(text, "deny").text
    except ConfigError:
        if "(" in text:
            raise
    verb, _, rest = text.strip().partition(" ")
    if verb.lower() in {"read", "edit", "write", "fetch"} and rest:
        return f"WebFetch(domain:{rest})" if verb.lower() == "fetch" else f"{verb.capitalize()}({rest})"
    if tool.lower() in _FETCHERS:
        return f"WebFetch(domain:{text.strip()})"
    return f"Bash({text.strip()} *)"


def _action(tool: str, subject: str, places: Places) -> Action:
    name = tool.lower()
    if not subject and not name.startswith("mcp__"):
        raise UsageError("There is nothing to check. Name a command, or a path after --tool.")
    if name in _SHELLS:
        return Action(tool, "execute", f"{tool} {subject}", command=subject)
    if name in _FETCHERS:
        return Action(tool, "network", f"{tool} {subject}", url=subject)
    if name.startswith("mcp__"):
        return Action(tool, "execute", tool)
    if TOOLS.get(name) == "plain":
        return Action(tool, "none", tool)
    if name not in {*_WRITERS, *TOOLS, "read"}:
        raise UsageError(f"There is no tool {tool}. Name one such as execute_bash, read_file, edit_file or fetch.")
    path = subject if "\0" in subject else absolute(subject, places.start, places.home)
    if name in _WRITERS:
        return Action(tool, "write", f"{tool} {subject}", writes=(path,))
    return Action(tool, "read", f"{tool} {subject}", reads=(path,))
