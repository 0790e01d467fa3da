"""`mycode tools`: the tools the model has, to look at and to run from a shell with the same checks."""

import asyncio
import json
import os
import sys
from typing import Annotated

import typer

from mycode.cli.options import RunOptions, split_rules
from mycode.core.errors import UsageError
from mycode.core.tools import Mode

app = typer.Typer(
    help="Show and run the tools the model has.", no_args_is_help=True, rich_markup_mode=None, add_completion=False
)


@app.command("list")
def list_tools() -> int:
    """List the tools, one line each."""
    from mycode.cli.run import Run
    from mycode.cli.wiring import Toolbox

    run = Run(RunOptions(persist=False), os.environ)
    try:
        for spec in Toolbox(run).registry.specs():
            typer.echo(f"{spec.name:16} {spec.description.splitlines()[0]}")
    finally:
        run.close()
    return 0


@app.command("show")
def show(name: Annotated[str, typer.Argument(help="Name of the tool.")]) -> int:
    """Show what the model reads of a tool: its description and the schema of its arguments."""
    from mycode.cli.run import Run
    from mycode.cli.wiring import Toolbox

    run = Run(RunOptions(persist=False), os.environ)
    try:
        registry = Toolbox(run).registry
        spec = next((spec for spec in registry.specs() if spec.name == name), None)
        if spec is None:
            raise UsageError(f"There is no tool {name}. {_near(registry.nearest(name))}")
        typer.echo(f"{spec.name}\n\n{spec.description}\n\n{json.dumps(spec.parameters, indent=2)}")
    finally:
        run.close()
    return 0


@app.command("run")
def run_tool(
    name: Annotated[str, typer.Argument(help="Name of the tool.")],
    arguments: Annotated[str, typer.Argument(help="Its arguments as JSON; - reads them from standard input.")] = "{}",
    permission_mode: Annotated[
        Mode | None, typer.Option("--permission-mode", help="What may run without asking.")
    ] = None,
    yolo: Annotated[bool, typer.Option("--yolo", help="Allow everything but hard stops.")] = False,
    allow: Annotated[
        list[str] | None, typer.Option("--allow", metavar="RULE", help="A rule that needs no question.")
    ] = None,
    deny: Annotated[list[str] | None, typer.Option("--deny", metavar="RULE", help="A rule that is refused.")] = None,
) -> int:
    """Run one tool as the model would: same validation, same permissions, same clipping.

    Exit code 0 when it was applied, 1 when it was refused or failed, with the reason on standard error.

    Example: mycode tools run edit_file '{"path": "a.py", "edits": [{"old": "x", "new": "y"}]}' --yolo
    """
    from mycode.cli.run import Run

    options = RunOptions(
        persist=False,
        permission_mode="bypassPermissions" if yolo else permission_mode,
        allowed_tools=split_rules(allow or []),
        disallowed_tools=split_rules(deny or []),
    )
    text = sys.stdin.read() if arguments == "-" else arguments
    run = Run(options, os.environ)
    try:
        return asyncio.run(_run(run, name, text))
    finally:
        run.close()


async def _run(run: "object", name: str, arguments: str) -> int:
    from mycode.cli.run import Run
    from mycode.cli.wiring import Toolbox
    from mycode.core.errors import CannotAsk
    from mycode.core.events import ToolFinished
    from mycode.core.messages import ToolCall
    from mycode.core.visible import plain

    assert isinstance(run, Run)
    box = Toolbox(run)
    finished: ToolFinished | None = None
    try:
        async for event in box.runner.run(ToolCall("shell", name, arguments)):
            if isinstance(event, ToolFinished):
                finished = event
    except CannotAsk as error:
        sys.stderr.write(f"{plain(str(error))}\n")
        return 1
    finally:
        box.processes.stop_all()
    if finished is None or finished.result.is_error:
        sys.stderr.write(f"{plain(finished.result.text) if finished else 'The tool did not end.'}\n")
        return 1
    sys.stdout.write(plain(finished.result.text).rstrip("\n") + "\n")
    return 0


def _near(names: tuple[str, ...]) -> str:
    return f"Nearest: {', '.join(names)}." if names else "See `mycode tools list`."
