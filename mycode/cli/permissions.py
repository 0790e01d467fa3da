"""`mycode permissions`: explain what would be allowed, and show what was."""

from __future__ import annotations

import os
import sys
from datetime import datetime
from typing import Annotated

import typer

from mycode.cli.options import RunOptions
from mycode.core.tools import Mode

app = typer.Typer(
    help="Explain verdicts, show the log of approvals.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@app.command("check")
def check(
    subject: Annotated[
        str, typer.Argument(metavar="COMMAND|PATH|URL", help="What to judge; a path or address after --tool.")
    ],
    tool: Annotated[str, typer.Option("--tool", help="The tool that would act on it.")] = "execute_bash",
    mode: Annotated[Mode | None, typer.Option("--mode", help="Judge in this mode instead of yours.")] = None,
    allow: Annotated[list[str] | None, typer.Option("--allow", metavar="RULE", help="One more allow rule.")] = None,
    deny: Annotated[list[str] | None, typer.Option("--deny", metavar="RULE", help="One more deny rule.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> int:
    """Explain a verdict without running anything: the decision, why, by which rule, part by part.

    Example: mycode permissions check 'git log | head' --mode plan
    """
    from mycode.cli.run import Run
    from mycode.cli.wiring import gate_of
    from mycode.core.visible import in_json, plain
    from mycode.permissions.check import check as judge
    from mycode.permissions.check import report

    run = Run(RunOptions(persist=False, permission_mode=mode), os.environ)
    gate, sandbox = gate_of(run)
    verdict = judge(
        subject,
        tool=tool,
        mode=gate.mode,
        rules=gate.rules,
        allow=allow or (),
        deny=deny or (),
        places=gate.places,
        boxed=sandbox.active,
        network=not gate.offline,
    )
    if as_json:
        import msgspec

        sys.stdout.write(in_json(msgspec.json.encode(report(verdict)).decode()) + "\n")
        return 0
    typer.echo(plain(f"{verdict.decision}: {verdict.reason}" + (f" (rule {verdict.rule})" if verdict.rule else "")))
    for part in verdict.parts:
        typer.echo(plain(f"  {part.decision:5} {part.text}   {part.reason}" + (f" ({part.rule})" if part.rule else "")))
    return 0


@app.command("log")
def log(
    newest: Annotated[int, typer.Option("-n", min=1, help="How many of the newest lines.")] = 30,
    verify: Annotated[bool, typer.Option("--verify", help="Check that no line was changed or taken out.")] = False,
) -> int:
    """Show what was allowed and refused, by whom or what; each line is chained to the one before."""
    from collections import deque

    from mycode.cli.run import Run
    from mycode.core.visible import one_line

    audit = Run(RunOptions(), os.environ).audit_log()
    if verify:
        broken = audit.verify()
        typer.echo(f"Line {broken.line}: {broken.reason}." if broken else "The log is whole and unaltered.")
        return 1 if broken else 0
    for record in deque(audit.read(), newest):
        when = datetime.fromtimestamp(record.at).astimezone().strftime("%Y-%m-%d %H:%M:%S")
        by = record.rule or record.by or record.mode
        typer.echo(f"{when}  {record.decision:6} {by:18} {one_line(record.title, 90)}")
    return 0
