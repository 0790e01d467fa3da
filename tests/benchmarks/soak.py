"""One conversation of 2,000 turns with random faults: memory, handles, CPU and latency must stay as they were.

    python -m tests.benchmarks.soak [--turns 2000] [--clear N] [--seed 1] [--json]

The model is a server on loopback, in a process of its own, that fails about one time in four: refused, overloaded,
dropped, cut, silent and malformed streams, overflows, broken tool calls, empty answers. Commands fail, every twentieth
turn is interrupted on the way, and the session is resumed five times in the first quarter (not later: a restart would
hide what grows) and once more at the end, when it must show the same view. Each quarter meets the same faults at the
same turns, so that quarters can be compared: the last is held against the second, since in the first everything is
loaded once. The sessions lie in memory where the system has such a folder, so that a busy disk is not measured, and
latency does not count the time for which program or server waited for a processor that other programs had.

With `--clear` a new conversation begins every N turns: what grows even then does not belong to a conversation. Ends
with exit code 1 if a bar is missed, if a turn ended in a way it should not, or if the session is not whole at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mycode.cli.options import RunOptions
from mycode.cli.run import Run
from mycode.cli.wiring import Workplace
from mycode.core.events import TurnEnded
from mycode.core.messages import ContextNote
from mycode.headless.approver import NobodyToAsk
from mycode.llm.retry import RetryingModel
from tests.benchmarks.measure import ROOT, Options, Row
from tests.support.script import Answer, Call, call, fail, say
from tests.support.scripted_server import ScriptedServer

QUARTERS = 4
RESUMES = 5
MOST_GROWTH = 1.1
MOST_KILOBYTES = 2.0
SETTINGS = ("model.idle_timeout=0.3", "model.first_byte_timeout=0.3", "tools.bash_timeout=5")
WINDOW = 16_000
_PROMPT = re.compile(r"prompt (\d+):")


class Unreliable:
    """The script of the server: tools, then an answer; a fault every fourth time. The same for each quarter."""

    def __init__(self, seed: int, quarter: int) -> None:
        self._seed = seed
        self._quarter = quarter
        self._turn = self._asked = 0
        self._chance = random.Random(seed)

    def __call__(self, body: dict[str, Any]) -> Answer:
        self._hear(body)
        if self._chance.random() < 0.25:
            return self._fault()
        if not body.get("tools"):
            return say(json.dumps({"summary": self._words(60), "key_points": [self._words(9)], "decisions": []}))
        if self._chance.random() < 0.4:
            return say(self._words(60))
        if self._chance.random() < 0.02:
            return call("execute_bash", {"command": "sleep 30 & echo started"})
        return self._chance.choice(self._calls())

    def _hear(self, body: dict[str, Any]) -> None:
        """Chance depends on the turn within its quarter and on how often the model was asked in it."""
        said = [str(message.get("content")) for message in body["messages"] if message.get("role") == "user"]
        found = next((match for text in reversed(said) if (match := _PROMPT.match(text))), None)
        if found is not None and int(found[1]) != self._turn:
            self._turn, self._asked = int(found[1]), 0
        self._asked += 1
        self._chance = random.Random(f"{self._seed}:{self._turn % self._quarter}:{self._asked}")

    def _calls(self) -> list[Answer]:
        number = self._chance.randrange(20)
        name = f"file-{number}.txt"
        return [
            call("execute_bash", {"command": f"seq {self._chance.randrange(400)}"}, text=self._words(10)),
            call("execute_bash", {"command": f"python3 -c 'import gone_{number}'"}),
            call("create_file", {"path": name, "content": self._words(100), "overwrite": True}),
            call("read_file", {"path": name}),
            call("read_file", {"path": f"missing-{number}.txt"}),
            call("grep", {"pattern": "lorem"}),
            Answer(calls=(Call("list_files", {}), Call("search_files", {"pattern": "*.txt"}))),
        ]

    def _fault(self) -> Answer:
        text = self._words(30)
        if self._chance.random() < 0.03:
            long = (
                f"This model's maximum context length is {WINDOW} tokens. However, you requested {WINDOW + 500} tokens."
            )
            return fail(400, long)
        return self._chance.choice(
            [
                *(say(text, fault=name) for name in ("drop", "drop_midway", "cut", "cut_midway", "malformed")),
                *(say(text, fault=name) for name in ("error_event", "noise", "repeat", "no_done", "hang_midway")),
                *(fail(status, "overloaded", headers={"retry-after": "0"}) for status in (429, 503, 529)),
                say(text, delay=0.05),
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
class Quarter:
    """What was measured over a quarter of the turns: `kilobytes` after every turn, the other sizes at its end.

    `seconds` is from prompt to ending, without the time for which program or server waited for a free processor.
    """

    turns: int
    kilobytes: array[float] = field(default_factory=lambda: array("d"))
    seconds: array[float] = field(default_factory=lambda: array("d"))
    cpu: array[float] = field(default_factory=lambda: array("d"))
    helpers: float = 0.0
    handles: int = 0
    threads: int = 0
    children: int = 0
    files: int = 0
    summaries: int = 0

    @property
    def megabytes(self) -> float:
        return statistics.fmean(self.kilobytes) / 1000

    @property
    def p50(self) -> float:
        return statistics.median(self.seconds) * 1000

    @property
    def p95(self) -> float:
        return statistics.quantiles(self.seconds, n=20)[18] * 1000

    @property
    def cpu_a_turn(self) -> float:
        return statistics.fmean(self.cpu) * 1000

    def told(self) -> dict[str, float]:
        return {
            "turns": self.turns, "RSS MB": self.megabytes, "handles": self.handles, "threads": self.threads,
            "children": self.children, "tmp files": self.files, "summaries": self.summaries,
            "CPU ms a turn": self.cpu_a_turn, "helpers' CPU ms": self.helpers * 1000 / len(self.cpu),
            "p50 ms": self.p50, "p95 ms": self.p95,
        }  # fmt: skip


@dataclass
class Outcome:
    """The quarters, how turns ended, and what was found wrong with the session itself."""

    quarters: list[Quarter]
    endings: Counter[str]
    faults: list[str]

    def ratios(self) -> dict[str, float]:
        """The last quarter over the second."""
        second, last = self.quarters[1], self.quarters[-1]
        return {
            "memory": last.megabytes / second.megabytes,
            "handles": last.handles / max(1, second.handles),
            "threads": last.threads / max(1, second.threads),
            "CPU a turn": last.cpu_a_turn / second.cpu_a_turn,
            "p50 latency": last.p50 / second.p50,
            "p95 latency": last.p95 / second.p95,
        }

    def slope(self) -> float:
        """Kilobytes a turn, by the straight line through all turns but those of the first quarter."""
        sizes = [size for quarter in self.quarters[1:] for size in quarter.kilobytes]
        return statistics.linear_regression(range(len(sizes)), sizes).slope

    def bad(self) -> list[str]:
        found = [f"{name} grew {ratio:.2f} times" for name, ratio in self.ratios().items() if ratio > MOST_GROWTH]
        if self.slope() > MOST_KILOBYTES:
            found.append(f"memory grows by {self.slope():.1f} KB a turn")
        last = self.quarters[-1]
        if last.children > 2:
            found.append(f"{last.children} processes are left")
        if last.files > self.quarters[0].files:
            found.append(f"{last.files} temporary files are left")
        found += [f"turns ended as {name}" for name in self.endings if name in ("context_full", "denied", "cannot_ask")]
        return found + self.faults

    def told(self) -> dict[str, Any]:
        quarters = [quarter.told() for quarter in self.quarters]
        sums = {"ratios": self.ratios(), "KB a turn": self.slope()}
        return {"quarters": quarters, **sums, "endings": self.endings, "bad": self.bad()}


def rows(options: Options) -> list[Row]:
    """The soak in a process of its own, as figures of the report."""
    del options
    command = [sys.executable, "-m", "tests.benchmarks.soak", "--json"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    told = json.loads(shown.stdout)
    turns = told["quarters"][-1]["turns"]
    note = "; ".join(told["bad"])
    found = [
        Row(f"soak: {name}, last to second quarter", ratio, "x", MOST_GROWTH) for name, ratio in told["ratios"].items()
    ]
    found.append(Row(f"soak: memory, {turns:,} turns", told["KB a turn"], "KB a turn", MOST_KILOBYTES))
    return [*found, Row("soak: anything wrong", len(told["bad"]), "", 0, note=note)]


def main() -> int:
    parser = argparse.ArgumentParser(description="One conversation of many turns with random faults.")
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--clear", type=int, default=0, metavar="N", help="a new conversation every N turns")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.turns < 10 * QUARTERS:
        parser.error(f"at least {10 * QUARTERS} turns are needed to compare quarters")
    if options.serve:
        asyncio.run(_serve(options.seed, options.turns // QUARTERS))
        return 0
    command = [sys.executable, "-m", "tests.benchmarks.soak", "--serve"]
    command += ["--seed", str(options.seed), "--turns", str(options.turns)]
    with (
        tempfile.TemporaryDirectory(prefix="soak-") as place,
        tempfile.TemporaryDirectory(prefix="soak-", dir=_in_memory()) as kept,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server,
    ):
        assert server.stdout is not None
        try:
            url = server.stdout.readline().decode().strip()
            outcome = asyncio.run(_soak(Path(place), kept, url, options, (os.getpid(), server.pid)))
        finally:
            server.terminate()
    if options.json:
        print(json.dumps(outcome.told()))
    else:
        _show_end(outcome)
    return 1 if outcome.bad() else 0


def _in_memory() -> str | None:
    folder = "/dev/shm"
    return folder if os.access(folder, os.W_OK) else None


async def _serve(seed: int, quarter: int) -> None:
    async with ScriptedServer(Unreliable(seed, quarter)) as server:
        print(server.url, flush=True)
        while True:
            await asyncio.sleep(1)
            server.requests.clear()


async def _soak(place: Path, kept: str, url: str, options: argparse.Namespace, programs: Sequence[int]) -> Outcome:
    project, scratch = place / "project", place / "tmp"
    project.mkdir()
    scratch.mkdir()
    os.chdir(project)
    os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
    env = {"PATH": os.environ["PATH"], "HOME": str(place), "MYCODE_HOME": kept, "OPENAI_API_KEY": "key"}
    asked = RunOptions(
        model="openai/scripted",
        api_base=url,
        permission_mode="bypassPermissions",
        context_window=WINDOW,
        settings=SETTINGS,
    )
    run = Run(asked, {**env, "TMPDIR": str(scratch)})
    opened = run.open_model()
    assert isinstance(opened, RetryingModel)
    desk = Workplace(run, NobodyToAsk(), model=RetryingModel(opened.inner, sleep=lambda _: asyncio.sleep(0)))
    width = options.turns // QUARTERS
    resumes = random.Random(options.seed).sample(range(2, width), RESUMES)
    endings: Counter[str] = Counter()
    quarters: list[Quarter] = []
    for turn in range(1, QUARTERS * width + 1):
        if (turn - 1) % width == 0:
            quarters.append(Quarter(turn))
            helpers = _helpers()
        quarter = quarters[-1]
        if options.clear and turn % options.clear == 0:
            desk.session.clear()
        elif turn in resumes:
            desk.session.resume(desk.session.id)
        stop = random.Random(f"{options.seed}:{turn % width}").randrange(1, 12) if turn % 20 == 0 else None
        began, worked = time.perf_counter() - _queued(programs), time.process_time()
        endings[await _turn(desk, f"prompt {turn}: look at src/app.py again", stop)] += 1
        quarter.seconds.append(time.perf_counter() - _queued(programs) - began)
        quarter.cpu.append(time.process_time() - worked)
        quarter.kilobytes.append(_kilobytes())
        if turn % width == 0:
            quarter.turns, quarter.helpers = turn, _helpers() - helpers
            quarter.handles, quarter.threads, quarter.children = _handles(), threading.active_count(), _children()
            quarter.files = sum(1 for _ in scratch.rglob("*"))
            quarter.summaries = desk.session.usage().summaries
            if not options.json:
                _show(quarters)
    faults = _resumed(desk)
    session_id = desk.session.id
    await desk.aclose()
    faults += desk.store.verify(session_id)
    run.close()
    return Outcome(quarters, endings, faults)


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


def _resumed(desk: Workplace) -> list[str]:
    """The session, taken up from its log once more, shows what it showed."""
    before = desk.context.view()
    desk.session.resume(desk.session.id)
    same = desk.context.view() == before
    folded = any(isinstance(message, ContextNote) and message.source == "summary" for message in before)
    return ([] if same else ["a resumed session has another view"]) + ([] if folded else ["nothing was folded"])


def _show(quarters: Sequence[Quarter]) -> None:
    told = quarters[-1].told()
    if len(quarters) == 1:
        print("  ".join(told))
    cells = [f"{value:.1f}" if isinstance(value, float) else str(value) for value in told.values()]
    print("  ".join(cell.rjust(len(head)) for head, cell in zip(told, cells, strict=True)), flush=True)


def _show_end(outcome: Outcome) -> None:
    print("endings: " + ", ".join(f"{name} {count}" for name, count in outcome.endings.most_common()))
    shown = ", ".join(f"{name} {ratio:.2f}" for name, ratio in outcome.ratios().items())
    print(f"last over second quarter (bar: {MOST_GROWTH:g} each): {shown}")
    print(f"memory: {outcome.slope():.2f} KB a turn after the first quarter (bar: {MOST_KILOBYTES:g})")
    print("; ".join(outcome.bad()) or "nothing has grown; the session is whole and resumes to the same view")


def _kilobytes() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        shown = subprocess.run(["ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, text=True, check=True)
        return float(shown.stdout)
    return pages * os.sysconf("SC_PAGE_SIZE") / 1000


def _queued(programs: Sequence[int]) -> float:
    """Seconds for which these programs have waited for a processor that others had; 0 where nobody counts that."""
    try:
        return sum(int(Path(f"/proc/{program}/schedstat").read_text().split()[1]) for program in programs) / 1e9
    except OSError:
        return 0.0


def _helpers() -> float:
    """CPU seconds of all programs that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _handles() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def _children() -> int:
    shown = subprocess.run(["ps", "-A", "-o", "ppid="], capture_output=True, text=True, check=True).stdout
    return shown.split().count(str(os.getpid())) - 1


if __name__ == "__main__":
    sys.exit(main())
