"""A long markdown answer in five-character deltas: what a line costs early and late, and one kind of block at a time.

Run `python -m tests.benchmarks streaming`. The bar: what a line around line 2,000 costs is at most
1.5 times what one around line 200 does.
"""

import time
from collections.abc import Callable

from mycode.core.events import TextDelta
from mycode.render.live import Live
from mycode.render.screen import Canvas
from tests.benchmarks.measure import Options, Row

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


def rows(options: Options) -> list[Row]:
    """The growth of the cost per line for each kind of answer."""
    del options
    costs(mixed, 300)
    found = []
    for name, line in ANSWERS.items():
        # The least of three runs, line by line: other programs make lines dearer, never cheaper.
        spent = [min(times) for times in zip(costs(line), costs(line), costs(line), strict=True)]
        early, late, ratio = growth(spent)
        note = f"{early * 1000:.3f} and {late * 1000:.3f} ms a line, {sum(spent):.2f} CPU s in all"
        found.append(Row(f"line 2,000 to line 200, {name}", ratio, "x", 1.5, note=note))
    return found
