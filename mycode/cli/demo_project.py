"""The throw-away project of `mycode demo`: a small parking meter with one bug, and what a model would do about it."""

from __future__ import annotations

import json
from pathlib import Path

from mycode.core.messages import ToolCall
from mycode.core.usage import Usage
from mycode.llm.scripted import Reply

PROMPT = "A test of the parking meter fails. Find out why, mend it, and show me that the tests pass."
FILES = {
    "README.md": "# Parking meter\n\nThe first 15 minutes are free. After that every started hour costs 2.50.\n",
    "AGENTS.md": "Always run the tests before you say that something works. Never change a test to make it pass.\n",
    "meter/__init__.py": "",
    "meter/fees.py": '''"""What parking costs."""

FREE_MINUTES = 15
PER_HOUR = 250  # cents


def fee(minutes: int) -> int:
    """Cents for `minutes` of parking: the first 15 minutes are free, then every started hour counts."""
    if minutes < FREE_MINUTES:
        return 0
    return (minutes - FREE_MINUTES) // 60 * PER_HOUR
''',
    "tests/__init__.py": "",
    "tests/test_fees.py": """import unittest

from meter.fees import fee


class FeeTest(unittest.TestCase):
    def test_a_quarter_of_an_hour_is_free(self):
        self.assertEqual(fee(15), 0)

    def test_a_started_hour_counts_whole(self):
        self.assertEqual([fee(16), fee(75), fee(76)], [250, 250, 500])


if __name__ == "__main__":
    unittest.main()
""",
}
_OLD = """    if minutes < FREE_MINUTES:
        return 0
    return (minutes - FREE_MINUTES) // 60 * PER_HOUR
"""
_NEW = """    if minutes <= FREE_MINUTES:
        return 0
    started_hours = -(-(minutes - FREE_MINUTES) // 60)
    return started_hours * PER_HOUR
"""


def create(folder: Path) -> None:
    """Writes the project, with a log of tickets that fills a small context window."""
    for name, text in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    lines = [f"2026-03-{1 + n // 48:02d} ticket={4000 + n} minutes={(n * 37) % 240} paid=yes" for n in range(150)]
    (folder / "tickets.log").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_command(python: str) -> str:
    """The command that runs the project's tests."""
    return f"{python} -m unittest -q"


def script(python: str) -> list[Reply]:
    """The answers a model would give, one for each step of the turn."""
    run_tests = _call("execute_bash", command=test_command(python))
    return [
        _step("I will look at the project first.", _call("list_files"), _call("read_file", path="README.md")),
        _step(
            "Now the code and its tests.",
            _call("read_file", path="meter/fees.py"),
            _call("read_file", path="tests/test_fees.py"),
        ),
        _step("Let me see the test fail.", run_tests),
        _step(
            "The fee rounds down. Do real tickets show the same?",
            _call("read_file", path="tickets.log", start_line=1, end_line=50),
        ),
        _step("More of them, to be sure.", _call("read_file", path="tickets.log", start_line=51, end_line=100)),
        _step("And the rest.", _call("read_file", path="tickets.log", start_line=101, end_line=150)),
        _step(
            "`fee` must round started hours up, and the free quarter includes minute 15.",
            _call("edit_file", path="meter/fees.py", edits=[{"old": _OLD, "new": _NEW}]),
        ),
        _step("Now the tests again.", run_tests),
        Reply(
            text="The tests pass. `meter/fees.py` rounded the hours down and charged minute 15; both are mended:\n\n"
            "- started hours are rounded **up**, as the README says\n"
            "- the first 15 minutes are free, the 15th included\n\n"
            "The tests were not changed.",
            usage=Usage(),
        ),
    ]


def _step(text: str, *calls: ToolCall) -> Reply:
    return Reply(text=text, calls=calls)


def _call(tool: str, **arguments: object) -> ToolCall:
    return ToolCall("", tool, json.dumps(arguments))
