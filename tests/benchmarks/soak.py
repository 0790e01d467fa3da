"""Many turns with random faults in one process: memory, file handles and time per turn must stay as they were.

    python -m tests.benchmarks.soak [--turns 2000] [--clear N] [--seed 1] [--json]

The model is a server on loopback, in a process of its own, that fails about one time in four: dropped, cut, silent and
malformed streams, overload, broken tool calls, empty answers. Every twentieth turn is interrupted on the way. With
`--clear` a new conversation begins every N turns: what grows even then does not belong to a conversation. Ends with
exit code 1 if something has grown, if a turn ended in a way it should not, or if the session is not whole at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mycode.cli.options import RunOptions
from mycode.cli.run import Run
from mycode.cli.wiring import Workplace
from mycode.core.events import TurnEnded
from mycode.headless.approver import NobodyToAsk
from mycode.llm.retry import RetryingModel
from tests.support.script import Answer, Call, call, fail, say
from tests.support.scripted_server import ScriptedServer

SLICES = 10
SETTINGS = ("model.idle_timeout=0.3", "model.first_byte_timeout=0.3", "tools.bash_timeout=5")
WINDOW = 16_000


class Unreliable:
    """The script of the server: tools, then an answer; a fault every fourth time."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def __call__(self, body: dict[str, Any]) -> Answer:
        if self._chance.random() < 0.25:
            return self._fault()
        if not body.get("tools") or self._chance.random() < 0.4:
            return say(self._words(60))
        if self._chance.random() < 0.02:
            return call("execute_bash", {"command": "sleep 30 & echo started"})
        return self._chance.choice(self._calls())

    def _calls(self) -> list[Answer]:
        name = f"file-{self._chance.randrange(20)}.txt"
        return [
            call("execute_bash", {"command": f"seq {self._chance.randrange(400)}"}, text=self._words(10)),
            call("create_file", {"path": name, "content": self._words(100), "overwrite": True}),
            call("read_file", {"path": name}),
            call("grep", {"pattern": "lorem"}),
            Answer(calls=(Call("list_files", {}), Call("search_files", {"pattern": "*.txt"}))),
        ]

    def _fault(self) -> Answer:
        text = self._words(30)
        return self._chance.choice(
            [
                *(say(text, fault=name) for name in ("drop", "drop_midway", "cut", "cut_midway", "malformed")),
                *(say(text, fault=name) for name in ("error_event", "noise", "repeat", "no_done", "hang_midway")),
                *(fail(status, "overloaded", headers={"retry-after": "0"}) for status in (429, 503, 529)),
                say(""),
                say(text, finish="length"),
                say(text, no_usage=True),
                call("read_file", '{"path": "a'),
                call("read_file", {"nonsense": 1}),
                call("no_such_tool", {}),
            ]
        )

    def _words(self, most: int) -> str:
        words = ("lorem", "ipsum", "src/app.py", "漢字", "Error:", "42", "`code`", "def", "👩‍💻", "https://a.example/x")
        return " ".join(self._chance.choice(words) for _ in range(self._chance.randrange(1, most)))


@dataclass
class Slice:
    """What was measured over a part of the turns; sizes at its end."""

    turns: int
    megabytes: float
    handles: int
    threads: int
    children: int
    milliseconds: list[float] = field(default_factory=list)

    def row(self) -> list[str]:
        spread = statistics.quantiles(self.milliseconds, n=20)
        return [
            str(self.turns), f"{self.megabytes:.0f}", str(self.handles), str(self.threads), str(self.children),
            f"{statistics.median(self.milliseconds):.0f}", f"{spread[18]:.0f}",
        ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description="Many turns with random faults in one process.")
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--clear", type=int, default=0, metavar="N", help="a new conversation every N turns")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(_serve(options.seed))
        return 0
    command = [sys.executable, "-m", "tests.benchmarks.soak", "--serve", "--seed", str(options.seed)]
    with (
        tempfile.TemporaryDirectory(prefix="soak-") as place,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server,
    ):
        assert server.stdout is not None
        try:
            return asyncio.run(_soak(Path(place), server.stdout.readline().decode().strip(), options))
        finally:
            server.terminate()


async def _serve(seed: int) -> None:
    async with ScriptedServer(Unreliable(seed)) as server:
        print(server.url, flush=True)
        while True:
            await asyncio.sleep(1)
            server.requests.clear()


async def _soak(place: Path, url: str, options: argparse.Namespace) -> int:
    project = place / "project"
    project.mkdir()
    os.chdir(project)
    env = {"PATH": os.environ["PATH"], "HOME": str(place), "MYCODE_HOME": str(place / "home"), "OPENAI_API_KEY": "key"}
    asked = RunOptions(
        model="openai/scripted",
        api_base=url,
        permission_mode="bypassPermissions",
        context_window=WINDOW,
        settings=SETTINGS,
    )
    run = Run(asked, env)
    opened = run.open_model()
    assert isinstance(opened, RetryingModel)
    desk = Workplace(run, NobodyToAsk(), model=RetryingModel(opened.inner, sleep=lambda _: asyncio.sleep(0)))
    chance = random.Random(options.seed)
    endings: Counter[str] = Counter()
    slices: list[Slice] = []
    width = max(1, options.turns // SLICES)
    times: list[float] = []
    for turn in range(1, options.turns + 1):
        if options.clear and turn % options.clear == 0:
            desk.session.clear()
        began = time.perf_counter()
        stop = chance.randrange(1, 12) if turn % 20 == 0 else None
        endings[await _turn(desk, f"prompt {turn}: look at src/app.py again", stop)] += 1
        times.append((time.perf_counter() - began) * 1000)
        if turn % width == 0:
            slices.append(Slice(turn, _megabytes(), _handles(), threading.active_count(), _children(), times))
            times = []
            if not options.json:
                _print_row(slices)
    session_id = desk.session.id
    summaries = len(desk.session.summaries())
    await desk.aclose()
    faults = desk.store.verify(session_id)
    run.close()
    return _judged(slices, endings, summaries, faults, as_json=options.json)


async def _turn(desk: Workplace, prompt: str, stop: int | None) -> str:
    """How the turn ended; with `stop` it is left after so many events."""
    ended = "cut short"
    async with aclosing(desk.session.prompt(prompt)) as events:
        seen = 0
        async for event in events:
            seen += 1
            if isinstance(event, TurnEnded):
                ended = event.reason
            elif stop is not None and seen >= stop:
                break
    return ended


def _judged(slices: list[Slice], endings: Counter[str], summaries: int, faults: list[str], *, as_json: bool) -> int:
    """The second slice is the measure: by then all that is loaded once has been loaded."""
    first, last = slices[min(1, len(slices) - 1)], slices[-1]
    thirds = (slices[1:4] or slices, slices[-3:])
    medians = [statistics.median(time for one in part for time in one.milliseconds) for part in thirds]
    ratios = {
        "memory": last.megabytes / first.megabytes,
        "handles": last.handles / max(1, first.handles),
        "time per turn": medians[1] / medians[0],
    }
    limits = {"memory": 1.25, "handles": 1.1, "time per turn": 2.0}
    bad = [f"{name} grew {ratios[name]:.2f} times" for name in limits if ratios[name] > limits[name]]
    bad += [f"{last.children} processes are left"] if last.children > 2 else []
    bad += [f"turns ended as {name}" for name in endings if name in ("context_full", "denied", "cannot_ask")]
    bad += faults
    if as_json:
        print(json.dumps({"ratios": ratios, "endings": endings, "summaries": summaries, "bad": bad}))
    else:
        print("endings: " + ", ".join(f"{name} {count}" for name, count in endings.most_common()))
        print(f"summaries: {summaries}; the session is {'whole' if not faults else 'damaged'}")
        print("last over second part: " + ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()))
        print("; ".join(bad) or "nothing has grown")
    return 1 if bad else 0


def _print_row(slices: list[Slice]) -> None:
    heads = ["turns", "RSS MB", "handles", "threads", "children", "median ms", "p95 ms"]
    if len(slices) == 1:
        print("  ".join(heads))
    print("  ".join(cell.rjust(len(head)) for head, cell in zip(heads, slices[-1].row(), strict=True)), flush=True)


def _megabytes() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        shown = subprocess.run(["ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, text=True, check=True)
        return int(shown.stdout) / 1024
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _handles() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def _children() -> int:
    shown = subprocess.run(["ps", "-A", "-o", "ppid="], capture_output=True, text=True, check=True).stdout
    return shown.split().count(str(os.getpid())) - 1


if __name__ == "__main__":
    sys.exit(main())
