"""Whether an action may happen: one pure function over rules, mode and places.

The order: what never happens, deny rules, what always needs a person, ask rules, allow rules, what only looks, the
mode. A later step never softens an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from mycode.core.addresses import Address, read_address
from mycode.core.tools import Action, Decision, Mode, Verdict, VerdictPart
from mycode.permissions.commands import judge_command
from mycode.permissions.ground import Ground
from mycode.permissions.modes import by_mode
from mycode.permissions.places import Look, Places, Seen, inside_any, unseen
from mycode.permissions.protected import own_environment, protected, secret
from mycode.permissions.rules import Rule, Rules, concerns, matches_host, matches_path


def decide(
    action: Action,
    *,
    mode: Mode,
    rules: Rules,
    places: Places,
    look: Look = unseen,
    ground: Ground | None = None,
    boxed: bool = False,
    network: bool = False,
) -> Verdict:
    """What permissions say of an action.

    `look` tells what is on disk at a path now, `ground` what patterns and repositories are; without them paths are
    taken at their word. `boxed` says that shell
    commands run inside a sandbox, `network` that this sandbox lets them out.
    """
    for text in (action.command or "", action.url or "", *action.reads, *action.writes):
        if "\0" in text:
            return _single(action, "deny", "It holds a NUL byte, which programs read in two ways.")
    if any("\ud800" <= char <= "\udfff" for char in (action.command or "") + (action.url or "")):
        return _single(action, "deny", "It holds half a letter, which no program can be given.")
    whole = _whole_tool(action, rules.deny)
    if whole is not None:
        return _single(action, "deny", f"The rule `{whole.text}` forbids it.", whole)
    if action.tool.startswith("mcp__"):
        verdict = _named_tool(action, mode, rules, offer=action.tool)
    elif action.command is not None:
        verdict = judge_command(
            action.command,
            mode=mode,
            rules=rules,
            places=places,
            look=look,
            ground=ground or Ground(),
            boxed=boxed,
            network=network,
        )
    elif action.url is not None:
        if boxed and not network:
            return _single(action, "deny", "The sandbox has no network, and no tool is a way around it.")
        verdict = _judge_address(action, action.url, mode, rules)
    elif action.reads or action.writes:
        verdict = _judge_paths(action, mode, rules, places, look, boxed=boxed)
    elif action.effect in {"none", "read"}:
        asked = _whole_tool(action, rules.ask)
        verdict = _single(action, "ask" if asked else "allow", "It changes nothing.", asked)
    else:
        verdict = _named_tool(action, mode, rules, offer=None)
    return _answerable(verdict, mode)


def _answerable(verdict: Verdict, mode: Mode) -> Verdict:
    """In the mode dontAsk a question is a refusal."""
    if mode != "dontAsk" or verdict.decision != "ask":
        return verdict
    reason = f"{verdict.reason} The mode dontAsk refuses what would be asked."
    return Verdict("deny", reason, verdict.rule, verdict.parts)


def _whole_tool(action: Action, rules: Iterable[Rule]) -> Rule | None:
    """The first rule that names the tool as a whole."""
    return next((rule for rule in rules if rule.spec is None and concerns(rule, action)), None)


def _single(
    action: Action, decision: Decision, reason: str, rule: Rule | None = None, offer: str | None = None
) -> Verdict:
    text = rule.text if rule else None
    if rule is not None and decision == "ask":
        reason = f"The rule `{rule.text}` asks."
    part = VerdictPart(action.command or action.url or action.title, decision, reason, text)
    return Verdict(decision, reason, text, (part,), offer if decision == "ask" else None)


def _named_tool(action: Action, mode: Mode, rules: Rules, *, offer: str | None) -> Verdict:
    """Tools that are known by name only: servers' tools, and tools with effects nobody described."""
    if (asked := _whole_tool(action, rules.ask)) is not None and mode != "plan":
        return _single(action, "ask", "", asked)
    if (allowed := _whole_tool(action, rules.allow)) is not None and mode != "plan":
        return _single(action, "allow", f"The rule `{allowed.text}` allows it.", allowed)
    decision, reason = by_mode(mode)
    return _single(action, decision, reason or f"{action.tool} does things that only it knows.", offer=offer)


# --- files ------------------------------------------------------------------------------------------------------------


class _Touch(Struct, frozen=True):
    """One path of an action: as it was named, and as it is on disk."""

    named: str
    seen: Seen
    write: bool

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.named, self.seen.path)))


def _judge_paths(action: Action, mode: Mode, rules: Rules, places: Places, look: Look, *, boxed: bool) -> Verdict:
    touches = [_Touch(path, look(path), write=True) for path in dict.fromkeys(action.writes)]
    touches += [_Touch(path, look(path), write=False) for path in dict.fromkeys(action.reads)]
    verdicts = [_judge_touch(action, touch, mode, rules, places, boxed=boxed) for touch in touches]
    worst = min(verdicts, key=lambda verdict: ("deny", "ask", "allow").index(verdict.decision))
    asking = [verdict for verdict in verdicts if verdict.decision == "ask"]
    # One offer can only speak for one path.
    offers = {verdict.offer for verdict in asking}
    offer = offers.pop() if worst.decision == "ask" and len(offers) == 1 else None
    parts = tuple(part for verdict in verdicts for part in verdict.parts)
    return Verdict(worst.decision, worst.reason, worst.rule, parts, offer)


def _judge_touch(action: Action, touch: _Touch, mode: Mode, rules: Rules, places: Places, *, boxed: bool) -> Verdict:
    word = "change" if touch.write else "read"
    real = touch.seen.path

    def verdict(decision: Decision, reason: str, rule: Rule | None = None, offer: str | None = None) -> Verdict:
        text = rule.text if rule else None
        return Verdict(decision, reason, text, (VerdictPart(touch.named, decision, reason, text),), offer)

    if touch.seen.kind == "other" or _is_device(touch):
        return verdict("deny", f"{touch.named} is no ordinary file (a device, a pipe, or a path that leads nowhere).")
    if any(own_environment(name) for name in touch.names):
        return verdict("deny", f"{touch.named} shows the environment of a process, where keys stand in the clear.")
    for rule in rules.deny:
        if concerns(rule, action) and _forbids(rule, touch, places):
            return verdict("deny", f"The rule `{rule.text}` forbids it.", rule)
    if mode == "plan" and touch.write:
        return verdict("deny", by_mode("plan")[1])
    if touch.write and (why := next((why for name in touch.names if (why := protected(name, places))), None)):
        return verdict("ask", f"{touch.named} is protected: {why}.")
    for rule in rules.ask:
        if concerns(rule, action) and _forbids(rule, touch, places):
            return verdict("ask", f"The rule `{rule.text}` asks.", rule)
    for rule in rules.allow:
        family = rule.family == "any" or (rule.family == "edit") == touch.write or rule.family == "tool"
        if family and concerns(rule, action) and all(matches_path(rule, name, places) for name in touch.names):
            return verdict("allow", f"The rule `{rule.text}` allows it.", rule)
    if mode == "bypassPermissions":
        return verdict("allow", by_mode(mode)[1])
    offer = _path_offer(real, write=touch.write)
    if why := next((why for name in touch.names if (why := secret(name, places))), None):
        return verdict("ask", f"{touch.named} needs a yes: {why}.")
    home = (*places.workspace, *((places.session,) if places.session and not touch.write else ()))
    if not all(inside_any(name, home, fold_case=places.fold_case) for name in touch.names):
        leads = f" (it leads to {real})" if real != touch.named else ""
        return verdict("ask", f"{touch.named} is outside the project{leads}.", offer=offer)
    if not touch.write:
        return verdict("allow", "It is read inside the project.")
    if touch.seen.kind == "folder":
        return verdict("ask", f"{touch.named} is a folder.")
    if touch.seen.links > 1:
        return verdict("ask", f"{touch.named} has a second name somewhere else (a hard link), which would change too.")
    decision, reason = by_mode(mode, contained=boxed, edit=True)
    return verdict(decision, reason or f"It would {word} {touch.named}.", offer=offer if decision == "ask" else None)


def _is_device(touch: _Touch) -> bool:
    return any(inside_any(name, ("/dev",)) for name in touch.names)


def _forbids(rule: Rule, touch: _Touch, places: Places) -> bool:
    """A rule that forbids or asks holds for the link and for its target."""
    if rule.family == "edit" and not touch.write:
        return False
    return any(matches_path(rule, name, places) for name in touch.names)


def _path_offer(path: str, *, write: bool) -> str | None:
    if any(char in path for char in "*?[]\\()\n"):
        return None
    return f"{'Edit' if write else 'Read'}(/{path})"


# --- addresses --------------------------------------------------------------------------------------------------------


def _judge_address(action: Action, url: str, mode: Mode, rules: Rules) -> Verdict:
    address = read_address(url)
    if isinstance(address, str):
        return _single(action, "deny", address)
    if address.reach == "metadata":
        return _single(
            action, "deny", f"{address.host} is a metadata or link-local address; nothing there is for a model."
        )
    for rule in rules.deny:
        if concerns(rule, action) and matches_host(rule, address.host):
            return _single(action, "deny", f"The rule `{rule.text}` forbids it.", rule)
    named = next((r for r in rules.allow if r.spec and concerns(r, action) and matches_host(r, address.host)), None)
    if address.reach == "own" and named is None:
        reason = (
            f"{address.host} is this machine or a private network. Allow it with `WebFetch(domain:{address.host})`."
        )
        return _single(action, "deny", reason)
    decision, reason = by_mode(mode)
    asked = next((r for r in rules.ask if concerns(r, action) and matches_host(r, address.host)), None)
    if asked is not None and (decision != "deny" or named is not None):
        return _single(action, "ask", "", asked)
    allowed = named or next((r for r in rules.allow if r.spec is None and concerns(r, action)), None)
    doubts = [doubt for doubt in address.doubts if not (named and address.reach == "own" and "port" in doubt)]
    if doubts and mode not in {"bypassPermissions", "plan"}:
        return _single(action, "ask", f"Look twice at {url}: {'; '.join(doubts)}.")
    if allowed is not None and not doubts:
        return _single(action, "allow", f"The rule `{allowed.text}` allows it.", allowed)
    return _single(
        action, decision, reason or f"It would ask {address.host} over the network.", offer=_host_offer(address)
    )


def _host_offer(address: Address) -> str | None:
    return None if address.doubts else f"WebFetch(domain:{address.host})"
