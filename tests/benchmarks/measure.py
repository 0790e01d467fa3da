"""How the benchmarks measure: programs against the interpreter's own start, and functions by their CPU seconds.

Everything that starts a program is a ratio to `python -c pass` of the same environment. Both run in turn, so that a
busy machine is busy for both; of each the least counts, because other programs make a run dearer and never cheaper.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROUNDS = 15
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Row:
    """One figure of a report. `bar` is what it is held against: the most it may be, or the least (`at_least`)."""

    name: str
    figure: float
    unit: str
    bar: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def passed(self) -> bool | None:
        if self.bar is None:
            return None
        return self.figure >= self.bar if self.at_least else self.figure <= self.bar


@dataclass(frozen=True)
class Options:
    """What a benchmark may need to know: where recorded sessions lie, and whether it has the whole night."""

    data: Path | None = None
    nightly: bool = False
    jobs: int = 2


@dataclass
class Costs:
    """The least that one kind of run cost in several rounds: CPU and wall seconds, peak bytes."""

    cpu: float = 1e9
    wall: float = 1e9
    rss: float = 0.0
    all_cpu: list[float] = field(default_factory=list)

    def add(self, told: dict[str, float]) -> None:
        self.cpu = min(self.cpu, told["cpu"])
        self.wall = min(self.wall, told["wall"])
        self.rss = max(self.rss, told["rss"])
        self.all_cpu.append(told["cpu"])

    @property
    def median(self) -> float:
        return statistics.median(self.all_cpu)


class Stopwatch:
    """Measures programs from a small process, whose own memory is not counted as theirs."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("stopwatch.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, argv: Sequence[str], *, env: dict[str, str], cwd: Path) -> dict[str, float]:
        """One run. A program that fails stops the benchmark: what it cost says nothing."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"argv": list(argv), "env": env, "cwd": str(cwd)}) + "\n")
        self._process.stdin.flush()
        told: dict[str, float] = json.loads(self._process.stdout.readline())
        if told["code"]:
            message = f"{' '.join(argv)} ended with {told['code']}"
            raise RuntimeError(message)
        return told

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def compare(
        self,
        programs: dict[str, list[str]],
        *,
        env: dict[str, str],
        cwd: Path,
        rounds: int = ROUNDS,
        before: Callable[[str], None] = lambda _: None,
    ) -> dict[str, Costs]:
        """Each program and the bare interpreter (`bare`) in turn, so many times; the first round is not counted.

        `before` is called with the name of the program that runs next.
        """
        costs = {name: Costs() for name in ("bare", *programs)}
        for round_ in range(rounds + 1):
            for name, cost in costs.items():
                before(name)
                argv = programs.get(name, [sys.executable, "-c", "pass"])
                told = self.run(argv, env=env, cwd=cwd)
                if round_:
                    cost.add(told)
        return costs


@contextmanager
def world(**more: str) -> Iterator[tuple[Path, dict[str, str]]]:
    """An empty project folder and an environment with a home of its own, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="mycode-benchmark-") as scratch:
        home, project = Path(scratch, "home"), Path(scratch, "project")
        home.mkdir()
        project.mkdir()
        env = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(home),
            "MYCODE_HOME": str(home / "mycode"),
            "NO_COLOR": "1",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            **more,
        }
        yield project, env


def program(*arguments: str) -> list[str]:
    """The console script of this environment, as a person starts it; the module where there is no script."""
    script = Path(sys.executable).with_name("mycode")
    return [str(script), *arguments] if script.exists() else [sys.executable, "-P", "-m", "mycode", *arguments]


def least(work: Callable[[], Any], times: int = 5, prepare: Callable[[], Any] | None = None) -> float:
    """CPU seconds of one call of `work`, the least of several; `prepare` runs before each and is not counted."""
    found = 1e9
    for _ in range(times):
        if prepare is not None:
            prepare()
        started = time.process_time()
        work()
        found = min(found, time.process_time() - started)
    return found


def bare_seconds(stopwatch: Stopwatch, rounds: int = ROUNDS) -> float:
    """CPU seconds of the interpreter's own start, the least of several."""
    with world() as (project, env):
        return stopwatch.compare({}, env=env, cwd=project, rounds=rounds)["bare"].cpu
