"""`mycode sessions purge`: says what would go, asks, removes it, and says what is gone."""

from __future__ import annotations

import sys

import typer

from mycode.cli.looking import line_of
from mycode.cli.run import Run
from mycode.core.errors import SessionError, UsageError
from mycode.core.visible import plain
from mycode.session.catalogue import SessionInfo
from mycode.session.purging import Plan, Rule
from mycode.session.store import Store


def purge_sessions(run: Run, store: Store, name: str, *, older_than: float | None, dry_run: bool, yes: bool) -> int:
    """Purges one session, or all if `name` is empty; returns the exit code."""
    policy = run.settings.context
    days = older_than
    if days is None:
        days = policy.originals.days if policy.originals.policy == "purge_after_days" else 0.0
    rule = Rule(days, policy.keep.recent_messages)
    infos = [store.find(name)] if name else store.sessions()
    plans = [(info, plan) for info in infos if (plan := store.plan_purge(info.id, rule)).messages or plan.held]
    for info, plan in plans:
        for line in _told(info, plan):
            typer.echo(plain(line), err=not dry_run)
    going = [(info, plan) for info, plan in plans if plan.messages]
    if not going:
        typer.echo("There is nothing to purge: no originals lie under a summary that may go.", err=True)
        return 0 if dry_run or wiped(store) else 1
    if dry_run:
        typer.echo("Nothing was removed.", err=True)
        return 0
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("What is purged cannot be brought back; say --yes, or --dry-run to only look.")
        typer.confirm("Purge this? The text cannot be brought back.", abort=True, err=True)
    return _purge(store, [info for info, _ in going], rule)


def _purge(store: Store, infos: list[SessionInfo], rule: Rule) -> int:
    done: list[Plan] = []
    refused = 0
    for info in infos:
        try:
            done.append(store.purge(info.id, rule, why="by mycode sessions purge"))
        except SessionError as error:
            refused += 1
            typer.echo(f"mycode: {plain(str(error))}", err=True)
    messages, chars = sum(plan.messages for plan in done), sum(plan.chars for plan in done)
    if messages:
        typer.echo(f"Purged {messages:,} messages ({chars:,} characters).", err=True)
    return 1 if refused or not wiped(store) else 0


def wiped(store: Store) -> bool:
    """Whether no byte is left of what was purged or deleted; why some may be is told on standard error."""
    trouble = store.wipe()
    if trouble:
        said = "Bytes of what was removed may still lie in unused parts of the file; say `mycode sessions purge` again."
        typer.echo(plain(f"mycode: {trouble} {said}"), err=True)
    return not trouble


def _told(info: SessionInfo, plan: Plan) -> list[str]:
    lines = [line_of(info)]
    if plan.messages:
        texts = f", {len(plan.texts)} kept results" if plan.texts else ""
        lines.append(f"  goes: {plan.messages:,} messages ({plan.chars:,} characters{texts})")
        names = ", ".join(f"s{number}" for number in plan.summaries)
        lines.append(f"  can no longer be undone: {names}")
    if plan.held:
        lines.append(f"  stays: {plan.held:,} messages that {', '.join(plan.shown_by)} still shows or has open")
    return lines
