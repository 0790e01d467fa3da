"""`mycode sessions` and `mycode history`: kept conversations, from the shell."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from mycode.cli.run import Run

from mycode.cli.options import RunOptions
from mycode.core.errors import InputError, UsageError
from mycode.core.visible import plain
from mycode.session.store import Store

app = typer.Typer(
    help="List, show, search, export, import, rename, purge and delete sessions.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)
Name = Annotated[str, typer.Argument(metavar="SESSION", help="Id, beginning of an id, or title.")]


@app.command("list")
def list_sessions(
    here: Annotated[bool, typer.Option("--here", help="Only those of this folder.")] = False,
    limit: Annotated[int, typer.Option("-n", min=1, help="How many, newest first.")] = 30,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> int:
    """List sessions, newest first."""
    from mycode.cli.looking import line_of

    with _store() as store:
        found = store.sessions(limit=limit, cwd=str(Path.cwd()) if here else None)
    if as_json:
        _json(found)
        return 0
    if not found:
        typer.echo("No sessions yet. Start one with `mycode`.", err=True)
    for info in found:
        typer.echo(line_of(info))
    return 0


@app.command("show")
def show(name: Name, full: Annotated[bool, typer.Option("--full", help="Every message, whole.")] = False) -> int:
    """Show one session: its summaries with their ranges, then its messages."""
    return history(name, full=full)


@app.command("search")
def search(
    words: Annotated[str, typer.Argument(help="Words to look for.")],
    limit: Annotated[int, typer.Option("-n", min=1, help="How many places.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> int:
    """Find words in everything that was ever said.

    Example: mycode sessions search "connection pool"
    """
    from mycode.core.visible import one_line

    with _store() as store:
        found = store.search(words, limit=limit)
        if as_json:
            _json(found)
            return 0
        for place in found:
            typer.echo(f"{place.session_id[:12]} {place.handle:6} {one_line(place.text, 100)}")
    if not found:
        typer.echo(f"Nothing was found for {words!r}.", err=True)
    return 0


@app.command("export")
def export(
    name: Name,
    form: Annotated[Literal["jsonl", "md", "html"], typer.Option("--format", help="Shape of the file.")] = "jsonl",
    out: Annotated[Path | None, typer.Option("-o", "--output", help="Write there instead of standard output.")] = None,
) -> int:
    """Write a session as JSON Lines, Markdown or HTML; secrets are masked.

    Example: mycode sessions export 3f9a --format md -o talk.md
    """
    from mycode.core.redact import redact
    from mycode.session.export import export_text

    with _store() as store:
        text = export_text(store, store.find(name).id, form, redact=redact)
    if out is None:
        sys.stdout.write(text)
        return 0
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror or error}.") from error
    typer.echo(plain(f"Written to {out}."), err=True)
    return 0


@app.command("import")
def import_session(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON Lines of `export`, or a JSON list of messages.")],
    mapping: Annotated[
        list[str] | None, typer.Option("--map", metavar="OLD=NEW", help="Rewrite paths that begin with OLD.")
    ] = None,
) -> int:
    """Take a session over from a file; its id is printed.

    Example: mycode sessions import talk.jsonl --map /home/me=/Users/me
    """
    from mycode.session.importing import import_text

    pairs = {}
    for pair in mapping or []:
        old, equals, new = pair.partition("=")
        if not equals or not old:
            raise UsageError(f"--map {pair}: write it as OLD=NEW.")
        pairs[old] = new
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}.") from error
    with _store() as store:
        typer.echo(import_text(store, text, mapping=pairs, cwd=str(Path.cwd())))
    return 0


@app.command("rename")
def rename(name: Name, title: Annotated[str, typer.Argument(help="The new title.")]) -> int:
    """Give a session another title."""
    with _store() as store:
        store.rename(store.find(name).id, title)
    return 0


@app.command("delete")
def delete(name: Name, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False) -> int:
    """Delete a session for good."""
    from mycode.cli.looking import line_of
    from mycode.cli.purging import wiped

    with _store() as store:
        info = store.find(name)
        if not yes:
            if not sys.stdin.isatty():
                raise UsageError(f"Deleting {info.id} cannot be undone; say --yes.")
            typer.confirm(f"Delete {line_of(info)}? This cannot be undone.", abort=True, err=True)
        origin = store.origin(info.id)
        store.delete(info.id)
        if not store.has_family(origin):
            shutil.rmtree(store.folder.parent / "checkpoints" / origin, ignore_errors=True)
        typer.echo(f"Deleted {info.id}.", err=True)
        return 0 if wiped(store) else 1


@app.command("purge")
def purge(
    name: Annotated[
        str, typer.Argument(metavar="[SESSION]", help="Id, beginning of an id, or title; all sessions if left out.")
    ] = "",
    older_than: Annotated[
        float | None, typer.Option("--older-than", metavar="DAYS", min=0, help="Only messages older than that.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, remove nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Remove the text of summarized messages for good.

    Summaries stay, and of each message its place, role, size and hash. What is pinned, the newest messages, the
    first prompt, the newest one and what a fork still shows are never touched. The summaries over what is gone can no
    longer be undone. Without --older-than it is of any age, or what context.originals says.

    Example, to see what would go: mycode sessions purge 3f9a --dry-run

    Example, for a timer: mycode sessions purge --older-than 30 --yes

    Exit codes: 0 done, or nothing to do; 1 a session is open elsewhere, or cannot be found or written; 2 nobody can be
    asked and --yes is missing; 130 you said no.
    """
    from mycode.cli.purging import purge_sessions

    with _opened() as (run, store):
        return purge_sessions(run, store, name, older_than=older_than, dry_run=dry_run, yes=yes)


@app.command("verify")
def verify(name: Name) -> int:
    """Check that nothing of a session is missing or was altered."""
    with _store() as store:
        problems = store.verify(store.find(name).id)
    for problem in problems:
        typer.echo(plain(problem))
    typer.echo(
        f"{len(problems)} {'problem' if len(problems) == 1 else 'problems'}." if problems else "Whole and unaltered.",
        err=True,
    )
    return 1 if problems else 0


def history(
    name: Annotated[str, typer.Argument(metavar="[SESSION]", help="Id or title; the last one here if left out.")] = "",
    full: Annotated[bool, typer.Option("--full", help="Every message, whole.")] = False,
    grep: Annotated[str, typer.Option("--grep", metavar="TEXT", help="Only messages that hold TEXT.")] = "",
    newest: Annotated[int, typer.Option("-n", min=1, help="How many of the newest messages.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Entries as JSON Lines.")] = False,
) -> int:
    """Show a session: summaries with their ranges, then messages; --full shows every original."""
    import msgspec

    from mycode.cli.looking import open_to_read, print_history
    from mycode.core.visible import in_json

    with _store() as store:
        info = store.find(name) if name else store.latest(str(Path.cwd())) or store.latest()
        if info is None:
            raise InputError("There is no session yet. Start one with `mycode`.")
        reader = open_to_read(store, info)
        entries = reader.entries(newest=None if full else newest, grep=grep)
        if as_json:
            for entry in entries:
                sys.stdout.write(in_json(msgspec.json.encode(entry).decode()) + "\n")
            return 0
        print_history(info, reader, entries, full=full)
    return 0


@contextmanager
def _store() -> Iterator[Store]:
    with _opened() as (_, store):
        yield store


@contextmanager
def _opened() -> Iterator[tuple[Run, Store]]:
    from mycode.cli.run import Run

    run = Run(RunOptions(), os.environ)
    try:
        yield run, run.open_store()
    finally:
        run.close()


def _json(value: object) -> None:
    import msgspec

    from mycode.core.visible import in_json

    sys.stdout.write(in_json(msgspec.json.format(msgspec.json.encode(value), indent=1).decode()) + "\n")
