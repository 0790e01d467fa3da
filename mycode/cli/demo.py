"""`mycode demo`: a scripted model, everything else real."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from mycode.cli import demo_project
from mycode.cli.options import RunOptions
from mycode.core.events import TurnEnded
from mycode.render.screen import Canvas

WINDOW = 6_000
_NEXT = """\
That was a scripted model; the tools, the tests, the context engine and the session were real.
Connect a real model, in any of three ways:
  export ANTHROPIC_API_KEY=...     (or OPENAI_API_KEY, GEMINI_API_KEY, ...)   then: mycode
  ollama serve                     (or LM Studio, llama.cpp, vLLM)            then: mycode
  mycode --model openai/NAME --api-base http://HOST/v1                        any compatible server
"""


def demo(
    plain: Annotated[
        bool, typer.Option("--plain", help="Labelled lines, no drawing: for screen readers and logs.")
    ] = False,
    keep: Annotated[Path | None, typer.Option("--keep", metavar="DIR", help="Work in DIR and leave it there.")] = None,
) -> int:
    """See the agent find and mend a bug, run out of context, summarize, and forget nothing. No key, no network.

    Exit code 0 only if the project's tests really pass at the end.
    """
    with tempfile.TemporaryDirectory(prefix="mycode-demo-") as temporary:
        folder = (keep or Path(temporary) / "parking").resolve()
        folder.mkdir(parents=True, exist_ok=True)
        demo_project.create(folder)
        before = Path.cwd()
        os.chdir(folder)
        try:
            return asyncio.run(_show(folder, Path(temporary) / "home", plain=plain))
        finally:
            os.chdir(before)


async def _show(folder: Path, home: Path, *, plain: bool) -> int:
    from contextlib import aclosing

    from rich.text import Text

    from mycode.cli.run import Run
    from mycode.cli.screen import canvas
    from mycode.cli.wiring import Workplace
    from mycode.core.models import ModelInfo
    from mycode.core.summaries import SummaryRecord
    from mycode.headless.approver import NobodyToAsk
    from mycode.llm.scripted import ScriptedModel
    from mycode.render.live import Live
    from mycode.render.panels.context import context_panel
    from mycode.render.panels.history import history_panel
    from mycode.render.panels.summary import summary_panel

    drawn = canvas(plain=plain)
    python = shlex.quote(sys.executable)
    run = Run(
        RunOptions(
            permission_mode="acceptEdits",
            allowed_tools=(f"Bash({demo_project.test_command(python)})",),
            settings=("context.summary.strategy=rules",),
        ),
        {"MYCODE_HOME": str(home), "HOME": str(home), "PATH": os.environ.get("PATH", os.defpath)},
    )
    info = ModelInfo("scripted/demo", "scripted", window=WINDOW, output_limit=1_000)
    place = Workplace(run, NobodyToAsk(), model=ScriptedModel(demo_project.script(python), info))
    try:
        session = place.session
        _say(drawn, Text(f"\nA throw-away project in {folder}. The person asks:"))
        live = Live(drawn)
        ended: TurnEnded | None = None
        async with aclosing(session.prompt(demo_project.PROMPT)) as events:
            async for event in events:
                _say(drawn, *live.fold(event))
                if isinstance(event, TurnEnded):
                    ended = event
        width, flat = drawn.width, drawn.plain
        _say(drawn, Text("\n/context"), context_panel(session.usage(), width=width, plain_text=flat))
        automatic = len(session.summaries())
        before = session.usage().messages
        _say(drawn, Text("\n/summarize --keep 2"))
        async with aclosing(session.summarize(keep=2)) as events:
            async for event in events:
                _say(drawn, *live.fold(event))
        summaries = session.summaries()
        if isinstance(record := summaries[-1].body, SummaryRecord):
            _say(
                drawn,
                summary_panel(
                    record,
                    handle=f"s{len(summaries)}",
                    messages_before=before,
                    messages_after=session.usage().messages,
                    plain_text=flat,
                ),
            )
        said = list(session.history())
        panel = history_panel(said, summaries, total=len(said), width=width, full=True, plain_text=flat)
        _say(drawn, Text("\n/history --full"), panel)
        passed = _tests_pass(folder)
        verdict = "The project's tests pass" if passed else "The project's tests FAIL"
        _say(drawn, Text(f"\n{verdict} (checked by running them once more).\n"), Text(_NEXT))
        return 0 if passed and ended is not None and ended.reason == "done" and automatic else 1
    finally:
        await place.aclose()
        run.close()


def _say(drawn: Canvas, *things: object) -> None:
    sys.stdout.write(drawn.text(*things))  # type: ignore[arg-type]  # renderables
    sys.stdout.flush()


def _tests_pass(folder: Path) -> bool:
    ended = subprocess.run(
        [sys.executable, "-m", "unittest", "-q"], cwd=folder, capture_output=True, timeout=60, check=False
    )
    return ended.returncode == 0
