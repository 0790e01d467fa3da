"""A long markdown answer in five-character deltas: what a line costs early and late, and one kind of block at a time.

Run `python -m benchmarks.streaming`. The bar: cost per line around line 2,000 at most 1.5 times that around line 200.
"""

import json
import sys
import time
from collections.abc import Callable

from mycode.core.events import TextDelta
from mycode.render.live import Live
from mycode.render.screen import Canvas

LINES = 2000
FRAME_EVERY = 8
_WINDOW = 96


def mixed(number: int) -> str:
    """Line `number` of an answer with headings, prose, lists, a table and code."""
    kinds = (
        f"## Part {number}",
        "",
        f"Some prose about `thing_{number}` that is long enough to be *wrapped* once on a terminal of eighty columns.",
        "",
        f"- item {number} with **weight**",
        f"- item {number} without",
        "",
        "```python",
        f"def function_{number}(value: int) -> int:",
        f"    return value + {number}",
        "```",
        "",
        "| a | b |",
        "|---|---|",
        f"| {number} | {number * 2} |",
        "",
    )
    return kinds[number % len(kinds)]


ANSWERS: dict[str, Callable[[int], str]] = {
    "mixed": mixed,
    "one list": lambda number: f"- item {number} with some words behind it",
    "one code block": lambda number: "```python" if number == 0 else f"value_{number} = compute({number})  # comment",
    "one table": lambda number: "| a | b |" if number == 0 else "|---|---|" if number == 1 else f"| {number} | words |",
    "one paragraph": lambda number: f"and then line {number} of the same paragraph follows",
}


def costs(line: Callable[[int], str], lines: int = LINES) -> list[float]:
    """CPU seconds of each line, drawn as the screen draws: settled blocks once, the open block every few deltas."""
    live = Live(Canvas(width=80))
    spent: list[float] = []
    deltas = 0
    for number in range(lines):
        text = line(number) + "\n"
        started = time.process_time()
        for start in range(0, len(text), 5):
            if settled := live.fold(TextDelta(text[start : start + 5])):
                live.canvas.text(*settled)
            deltas += 1
            if deltas % FRAME_EVERY == 0 and (open_block := live.live()) is not None:
                live.canvas.text(open_block)
        spent.append(time.process_time() - started)
    return spent


def growth(spent: list[float]) -> tuple[float, float, float]:
    """(cost per line around line 200, around the last line, their ratio), in CPU seconds."""
    early = sum(spent[200 - _WINDOW : 200 + _WINDOW]) / (2 * _WINDOW)
    late = sum(spent[-2 * _WINDOW :]) / (2 * _WINDOW)
    return early, late, late / early


def main() -> None:
    costs(mixed, 300)
    report = {}
    for name, line in ANSWERS.items():
        # The least of three runs, line by line: other programs make lines dearer, never cheaper.
        spent = [min(times) for times in zip(costs(line), costs(line), costs(line), strict=True)]
        early, late, ratio = growth(spent)
        report[name] = {
            "line_200_ms": round(early * 1000, 3),
            "line_2000_ms": round(late * 1000, 3),
            "ratio": round(ratio, 2),
            "total_s": round(sum(spent), 2),
        }
    sys.stdout.write(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
