"""All benchmarks with one command: `python -m tests.benchmarks [NAME ...] [--data DIR] [--nightly] [--json]`.

Without names all run that need nothing but this repository. A table is printed: the figure, the bar it is held against,
and whether it is met; the exit code is 1 when a bar is missed, 2 when a benchmark could not be run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from tests.benchmarks.measure import Options, Row

BENCHMARKS: dict[str, tuple[str, str]] = {
    "version-and-help": ("startup:version_and_help", "--version and --help against the bare interpreter"),
    "one-shot": ("startup:one_shot", 'the prompt "hi" over the fast lane: CPU and memory'),
    "first-key": ("startup:first_key", "launch to the first key in a terminal"),
    "tool-round": ("startup:tool_round", "what a round of tools adds"),
    "first-request": ("startup:first_request", "tokens of system prompt and tools"),
    "streaming": ("streaming:rows", "a line of a long answer, early and late"),
    "resume": ("resume:rows", "resuming 100,000 messages against 1,000"),
    "rules": ("engine:fold_by_rules", "a fold by rules"),
    "long-session": ("engine:long_session", "a turn late in a session of a million tokens"),
    "prepared": ("engine:install_prepared", "laying a prepared summary"),
    "expand": ("engine:expand", "finding an original in 100 MB"),
    "tokens": ("tokens:rows", "the token estimate against the tokenizers"),
    "soak": ("soak:rows", "2,000 turns with random faults: what grows"),
    "drift": ("drift:drift", "what fifty summaries in a row lose"),
    "sessions": ("fuzz:fuzz", "made-up sessions, well formed or not: 300, with --nightly 10,000"),
    "cost": ("cost:cost", "input cost with prefix caching, four ways"),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="which to run (all if none): " + ", ".join(BENCHMARKS))
    parser.add_argument("--data", type=Path, help="a folder of recorded sessions (dev.jsonl.gz or other .jsonl files)")
    parser.add_argument("--nightly", action="store_true", help="as many cases as a night allows")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes, where several help")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    asked = parser.parse_args()
    unknown = [name for name in asked.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    options = Options(asked.data, asked.nightly, asked.jobs)
    found: dict[str, list[Row]] = {}
    broken: dict[str, str] = {}
    for name in asked.names or BENCHMARKS:
        started = time.monotonic()
        try:
            found[name] = _run(name, options)
        except Exception:
            broken[name] = traceback.format_exc()
        if not asked.json:
            _show(name, found.get(name, []), broken.get(name, ""), time.monotonic() - started)
    if asked.json:
        _tell(found, broken)
    rows = [row for rows in found.values() for row in rows]
    missed = [row for row in rows if row.passed is False]
    if not asked.json:
        held = sum(row.bar is not None for row in rows)
        print(f"\n{held - len(missed)} of {held} bars met" + "".join(f"\n  missed: {row.name}" for row in missed))
    return 2 if broken else 1 if missed else 0


def _run(name: str, options: Options) -> list[Row]:
    module, _, function = BENCHMARKS[name][0].partition(":")
    package = __import__(f"tests.benchmarks.{module}", fromlist=[function])
    work: Callable[[Options], list[Row]] = getattr(package, function)
    return work(options)


def _show(name: str, rows: list[Row], error: str, seconds: float) -> None:
    print(f"\n{name}: {BENCHMARKS[name][1]}  [{seconds:.0f} s]")
    for row in rows:
        bar = "" if row.bar is None else f"{'>=' if row.at_least else '<='} {row.bar:g}"
        verdict = {None: "", True: "ok", False: "MISSED"}[row.passed]
        print(f"  {row.name:38} {_figure(row.figure):>9} {row.unit:11} {bar:>9} {verdict:6}  {row.note}".rstrip())
    if error:
        print(f"  could not run:\n{error}")
    sys.stdout.flush()


def _figure(value: float) -> str:
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:.4f}" if abs(value) < 0.1 else f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"


def _tell(found: dict[str, list[Row]], broken: dict[str, str]) -> None:
    told = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "results": {name: [{**asdict(row), "passed": row.passed} for row in rows] for name, rows in found.items()},
        "errors": broken,
    }
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    sys.exit(main())
