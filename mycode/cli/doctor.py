"""`mycode doctor`: checks this installation and says what is missing and what to do about it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import typer
from msgspec import Struct

from mycode.cli.options import RunOptions
from mycode.core.errors import MycodeError
from mycode.core.visible import plain

State = Literal["ok", "note", "bad"]
_SIGNS = {"ok": "✓", "note": "·", "bad": "✗"}


class Finding(Struct, frozen=True):
    """One thing looked at: `note` is worth knowing, `bad` must be mended for the program to work."""

    state: State
    what: str
    advice: str = ""


def doctor() -> int:
    """Check this installation: Python, model, token counts, store, search, sandbox, terminal.

    Exit code 0 when everything needed works, 1 when something must be mended.
    """
    findings = list(examine())
    for finding in findings:
        advice = f"\n    {finding.advice}" if finding.advice else ""
        typer.echo(plain(f"{_SIGNS[finding.state]} {finding.what}{advice}"))
    return 1 if any(finding.state == "bad" for finding in findings) else 0


def examine() -> Iterator[Finding]:
    """Looks at one thing after the other; reads and probes, changes nothing but an empty store."""
    yield Finding("ok", f"Python {sys.version.split()[0]} at {sys.executable}")
    from mycode.cli.run import Run

    try:
        run = Run(RunOptions(), os.environ)
    except MycodeError as error:
        yield Finding("bad", "Settings cannot be read", str(error))
        return
    for warning in run.warnings:
        yield Finding("note", warning)
    yield _model(run.known_models(), run.settings.model.name)
    yield _tokens()
    yield _store(run)
    rg = shutil.which("rg")
    yield (Finding("ok", f"ripgrep at {rg}") if rg else Finding("note", "No ripgrep on PATH: grep is slower"))
    git = shutil.which("git")
    yield (Finding("ok", f"git at {git}") if git else Finding("note", "No git on PATH: files cannot be rewound"))
    yield _sandbox(run)
    term = os.environ.get("TERM", "")
    dumb = term in ("", "dumb")
    yield Finding("note" if dumb else "ok", f"Terminal {term or 'unknown'}" + (": labelled lines only" if dumb else ""))


def _model(known: list[tuple[str, str]], chosen: str | None) -> Finding:
    if chosen:
        return Finding("ok", f"Model {chosen} (from your settings)")
    if known:
        return Finding("ok", f"Model {known[0][0]} ({known[0][1]})")
    from mycode.llm.connect import find_model

    found = find_model(os.environ)
    if found is not None:
        return Finding("ok", f"Model {found.name} ({found.why})")
    return Finding(
        "note", "No model: no provider's key is set, no local server was found", "See `mycode demo` for the ways on."
    )


def _tokens() -> Finding:
    from mycode.llm.tokens import Tokens

    counter = Tokens()
    counter.load()
    if counter.exact:
        return Finding("ok", "Token counts are exact (vocabulary found offline)")
    return Finding(
        "note", "Token counts are estimates: the vocabulary was not found", "Reinstall litellm and tiktoken."
    )


def _store(run: object) -> Finding:
    from mycode.cli.run import Run

    assert isinstance(run, Run)
    try:
        store = run.open_store()
        count = len(store.sessions())
        run.close()
    except MycodeError as error:
        return Finding("bad", "Sessions cannot be kept", str(error))
    return Finding("ok", f"{count} sessions in {run.folders.sessions} (SQLite {sqlite3.sqlite_version})")


def _sandbox(run: object) -> Finding:
    """The box that commands would have here, as the settings say; where it is off, whether there could be one."""
    from mycode.cli.run import Run
    from mycode.cli.wiring import gate_of
    from mycode.permissions.sandbox import detect

    assert isinstance(run, Run)
    try:
        _, box = gate_of(run)
    except MycodeError as error:
        return Finding("bad", "Commands cannot run", str(error))
    if box.active or run.settings.permissions.sandbox != "off":
        return Finding("ok" if box.active else "note", f"Sandbox: {box.state}")
    with tempfile.TemporaryDirectory(prefix="mycode-") as folder:
        possible = detect("auto", Path(folder))
    take = f"`--sandbox auto` would take {possible.state}."
    none = f"None works here {possible.state.removeprefix('off ')}."
    return Finding("note", f"Sandbox: {box.state}", take if possible.active else none)
