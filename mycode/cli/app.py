"""What can be typed after `mycode`, and how every ending becomes an exit code."""

import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from mycode.cli.arguments import normalise, spoken
from mycode.cli.door import COMMANDS, Door
from mycode.cli.options import OutputFormat, RunOptions, split_rules
from mycode.core.errors import MycodeError, UsageError
from mycode.core.tools import Mode

_EPILOG = """\b
Examples:
  mycode                                  chat in this folder
  mycode "why does test_login fail?"      chat, and this is said first
  mycode -c                               go on with the last conversation here
  mycode -p "why does test_login fail?"   one answer on standard output
  git diff | mycode -p "review this"      standard input and prompt together
  mycode demo                             see it work, without key or network
"""

app = typer.Typer(
    name="mycode",
    cls=Door,
    rich_markup_mode=None,
    add_completion=True,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
    subcommand_metavar="[PROMPT | COMMAND [ARGS]...]",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_EPILOG,
)


def run(arguments: Sequence[str]) -> int:
    """Parses and runs one command; returns the exit code. No traceback reaches the person: details go to the log."""
    try:
        command = typer.main.get_command(app)
        result = command.main(args=normalise(arguments), prog_name="mycode", standalone_mode=False)
    except MycodeError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _fail("Interrupted.", 130)
    except Exception as error:  # noqa: BLE001  the one place where a surprise becomes a sentence
        return _surprise(error)
    return result if isinstance(result, int) else 0


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    prompt: Annotated[
        str | None,
        typer.Option("-p", "--print", metavar="[PROMPT]", help="Answer once and leave; joins piped input."),
    ] = None,
    continue_last: Annotated[
        bool, typer.Option("-c", "--continue", help="Go on with the last session of this folder.")
    ] = False,
    resume: Annotated[
        str | None,
        typer.Option("-r", "--resume", metavar="[ID|NAME]", help="Go on with a session; without a value, pick one."),
    ] = None,
    fork: Annotated[
        bool, typer.Option("--fork-session", help="Go on in a copy; the session itself stays as it is.")
    ] = False,
    name: Annotated[str | None, typer.Option("-n", "--name", help="Name a new session.")] = None,
    model: Annotated[
        str | None, typer.Option("-m", "--model", metavar="PROVIDER/MODEL", help="Model, by litellm's name.")
    ] = None,
    api_base: Annotated[
        str | None, typer.Option("--api-base", metavar="URL", help="Base URL of the model's API.")
    ] = None,
    context_window: Annotated[
        int | None, typer.Option("--context-window", min=1, help="Context window in tokens.")
    ] = None,
    transport: Annotated[
        Literal["auto", "direct", "litellm"] | None, typer.Option("--transport", help="How the model is reached.")
    ] = None,
    effort: Annotated[
        Literal["minimal", "low", "medium", "high"] | None, typer.Option("--effort", help="Reasoning effort.")
    ] = None,
    output_format: Annotated[
        OutputFormat, typer.Option("--output-format", help="With -p: shape of the output.")
    ] = "text",
    partial: Annotated[
        bool, typer.Option("--include-partial-messages", help="With stream-json: the text as it comes, too.")
    ] = False,
    output_file: Annotated[
        Path | None, typer.Option("-o", "--output-last-message", metavar="FILE", help="Also write the answer to FILE.")
    ] = None,
    permission_mode: Annotated[
        Mode | None, typer.Option("--permission-mode", help="What may run without asking.")
    ] = None,
    yolo: Annotated[bool, typer.Option("--yolo", help="Allow everything but hard stops (bypassPermissions).")] = False,
    allowed_tools: Annotated[
        list[str] | None,
        typer.Option("--allowed-tools", metavar="RULES", help="Rules that need no question, e.g. 'Bash(git *)'."),
    ] = None,
    disallowed_tools: Annotated[
        list[str] | None, typer.Option("--disallowed-tools", metavar="RULES", help="Rules that are always refused.")
    ] = None,
    sandbox: Annotated[
        Literal["auto", "read-only", "workspace-write", "off"] | None,
        typer.Option("-s", "--sandbox", help="Box for shell commands."),
    ] = None,
    max_turns: Annotated[int | None, typer.Option("--max-turns", min=1, help="Most model calls in a turn.")] = None,
    max_budget_usd: Annotated[
        float | None, typer.Option("--max-budget-usd", min=0.0, help="Most US dollars for this run.")
    ] = None,
    append_system_prompt: Annotated[
        str, typer.Option("--append-system-prompt", metavar="TEXT", help="Add to the system prompt.")
    ] = "",
    directory: Annotated[Path | None, typer.Option("-C", "--cd", metavar="DIR", help="Work in DIR.")] = None,
    no_session: Annotated[bool, typer.Option("--no-session-persistence", help="Keep nothing on disk.")] = False,
    record: Annotated[
        Path | None, typer.Option("--record", metavar="FILE", help="Write the model's answers to FILE.")
    ] = None,
    replay: Annotated[
        Path | None, typer.Option("--replay", metavar="FILE", help="Play answers from FILE, offline.")
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Labelled lines, no drawing: for screen readers and logs.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Tell debug.log, in the data folder, what becomes of the context.")
    ] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set any setting for this run.")
    ] = None,
    version: Annotated[bool, typer.Option("-V", "--version", help="Show the version and leave.")] = False,
) -> int | None:
    """A coding agent for the terminal whose conversation never ends and never forgets."""
    if version:
        from mycode import __version__

        typer.echo(f"mycode {__version__}")
        return 0
    if directory is not None:
        from mycode.cli.places import enter

        enter(directory)
    if context.invoked_subcommand is not None:
        gc.enable()
        return None
    if yolo and permission_mode not in (None, "bypassPermissions"):
        raise UsageError("--yolo and --permission-mode contradict each other; give one of them.")
    terminal = sys.stdin is not None and sys.stdin.isatty()
    first = spoken(context.args, prompt, COMMANDS, terminal=terminal) if context.args else None
    options = RunOptions(
        prompt=first or prompt,
        output_format=output_format,
        output_file=output_file,
        partial=partial,
        continue_last=continue_last,
        resume=resume,
        fork=fork,
        name=name,
        persist=not no_session,
        model=model,
        api_base=api_base,
        context_window=context_window,
        transport=transport,
        effort=effort,
        record=record,
        replay=replay,
        permission_mode="bypassPermissions" if yolo else permission_mode,
        allowed_tools=split_rules(allowed_tools or []),
        disallowed_tools=split_rules(disallowed_tools or []),
        sandbox=sandbox,
        max_turns=max_turns,
        max_budget_usd=max_budget_usd,
        append_system_prompt=append_system_prompt,
        plain=plain,
        debug=debug,
        settings=tuple(settings or []),
    )
    if prompt is not None or not terminal:
        from mycode.cli.one_shot import one_shot

        return one_shot(options)
    from mycode.cli.chat import chat

    return chat(options)


def _fail(text: str, code: int) -> int:
    from mycode.core.visible import plain

    sys.stderr.write(f"mycode: {plain(text)}\n")
    return code


def _surprise(error: Exception) -> int:
    if type(error).__module__.split(".")[0] in ("typer", "click"):
        code = getattr(error, "exit_code", 2)
        show = getattr(error, "show", None)
        if type(error).__name__ in ("Exit", "Abort"):
            return int(code) if type(error).__name__ == "Exit" else 130
        if callable(show):
            show(file=sys.stderr)
        return int(code)
    from mycode.cli.log import keep_traceback

    return _fail(f"Something unforeseen happened: {type(error).__name__}: {error}. Details: {keep_traceback(error)}", 1)
