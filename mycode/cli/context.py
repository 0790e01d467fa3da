"""`mycode context`: the context engine alone, on a transcript file, without session, key or network."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from mycode.core.errors import InputError

app = typer.Typer(
    help="Compress or inspect a transcript file.", no_args_is_help=True, rich_markup_mode=None, add_completion=False
)
Transcript = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="Messages as JSON (a list, or {messages: [...]}) or JSON Lines; - reads stdin."
    ),
]


@app.command("compress")
def compress(
    file: Transcript,
    budget: Annotated[int, typer.Option("--budget", min=1, help="Most tokens of the result.")],
    mode: Annotated[
        Literal["rules", "llm", "hybrid"], typer.Option("--mode", help="llm and hybrid ask a model.")
    ] = "rules",
    model: Annotated[str | None, typer.Option("-m", "--model", help="Model for llm and hybrid.")] = None,
    api_base: Annotated[str | None, typer.Option("--api-base", metavar="URL")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--output", help="Write there instead of standard output.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A report with sizes around the messages.")] = False,
) -> int:
    """Make a transcript fit a budget and keep what will be needed again.

    Takes OpenAI-style messages, or Anthropic-style blocks, and gives the same style back.

    Example: mycode context compress session.json --budget 8000 -o shorter.json
    """
    from mycode.api import compress as shorten
    from mycode.api import count_tokens

    messages = read_transcript(file)
    shorter = shorten(messages, budget, mode, model=model, api_base=api_base)
    before, after = count_tokens(messages), count_tokens(shorter)
    report = {
        "tokens_before": before,
        "tokens_after": after,
        "budget_tokens": budget,
        "messages_before": len(messages),
        "messages_after": len(shorter),
        "messages": shorter,
    }
    _write(out, report if as_json else shorter)
    sys.stderr.write(f"{len(messages)} -> {len(shorter)} messages, {before} -> {after} tokens\n")
    return 0


@app.command("inspect")
def inspect(
    file: Transcript,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    top: Annotated[int, typer.Option("-n", min=0, help="How many of the largest messages to list.")] = 10,
) -> int:
    """Show what a transcript is made of: by role and tool, the largest messages, what could be saved.

    Example: mycode context inspect session.json
    """
    from mycode.api import inspect as describe

    inspection = describe(read_transcript(file), top=top)
    if as_json:
        _write(None, inspection)
        return 0
    from mycode.cli.screen import canvas
    from mycode.render.panels.inspection import inspection_panel

    drawn = canvas()
    sys.stdout.write(drawn.text(inspection_panel(inspection, plain_text=drawn.plain)))
    return 0


def read_transcript(file: Path) -> list[dict[str, Any]]:
    """The messages of a file; raises InputError with one sentence for anything that is not a transcript."""
    import msgspec

    path, file = file, Path("Standard input") if str(file) == "-" else file
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}.") from error
    if not data.strip():
        raise InputError(f"{file} is empty: a transcript is a JSON list of messages.")
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        value = _lines(file, data, error)
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        value = value["messages"]
    if not isinstance(value, list) or not all(isinstance(message, dict) for message in value):
        raise InputError(f"{file} is no transcript: it should hold a list of messages, each an object with a role.")
    return value


def _lines(file: Path, data: bytes, error: Exception) -> list[Any]:
    import msgspec

    lines = [line for line in data.splitlines() if line.strip()]
    try:
        return [msgspec.json.decode(line) for line in lines]
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InputError(f"{file} is neither JSON nor JSON Lines: {error}.") from error


def _write(out: Path | None, value: object) -> None:
    import msgspec

    from mycode.core.visible import in_json

    data = in_json(msgspec.json.format(msgspec.json.encode(value), indent=1).decode()).encode() + b"\n"
    if out is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        out.write_bytes(data)
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror or error}.") from error
