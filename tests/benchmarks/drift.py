"""What fifty summaries in a row lose: planted facts, looked for in the view after every one of them.

Each round is a stretch of made-up work with a rule laid down, a name given, a file changed, a command run, a test that
fails (every fifth for good) and a decision, and ends with a fold. Fifty rounds of plain work follow, in which nothing
new is established: the view must not grow by them. Models that answer well do not show what is lost, so these drop
half, make things up, or send nothing, too much, or no JSON at all.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from mycode.context.manager import ContextManager
from mycode.context.policy import Policy, Summary
from mycode.core.entries import Entry
from mycode.core.events import SummaryFinished
from mycode.core.messages import AssistantMessage, Message, ToolCall, ToolResult, UserMessage
from mycode.core.models import Model, ModelInfo, ModelRequest
from mycode.core.summaries import SummaryRecord
from mycode.session.archive import SessionArchive
from mycode.session.entries import sealed
from mycode.session.store import Store
from tests.benchmarks import sessions
from tests.benchmarks.engine import by_hand, drain, exact_counter, manager, renamed
from tests.benchmarks.measure import Options, Row
from tests.support.context_doubles import Script, model_info

ROUNDS = 50
WINDOW = 200_000
GROWTH = 1.05
MADE_UP = ("invented_module", "hallucinated_function", "made_up_lib")
_ALWAYS = ("files changed", "rules laid down", "errors open")
_ASKED = ("llm", "hybrid")


class HalfOf:
    """A model whose account is every second line of what it was given to read."""

    info: ModelInfo = model_info(WINDOW, name="half")

    async def stream(self, request: ModelRequest) -> AsyncIterator[AssistantMessage]:
        text = "\n".join(message.text for message in request.messages)
        lines = [line[:200] for line in text.split("\n") if line.strip() and not line.startswith("<")]
        yield AssistantMessage(_answer("\n".join(lines[1::2])[:5_000], decisions=lines[1:20:2]))

    async def aclose(self) -> None:
        pass


def _answer(summary: str, **parts: object) -> str:
    return json.dumps({"summary": summary} | parts)


ANSWERS: dict[str, str | None] = {
    "drops half": None,
    "makes things up": _answer(
        "All is in src/invented_module.py by hallucinated_function().", decisions=["use made_up_lib"]
    ),
    "sends nothing": "",
    "sends too much": _answer("word " * 40_000, key_points=["word " * 300] * 60),
    "sends no JSON": '{"summary": "cut',
}


def drift(options: Options) -> list[Row]:
    """For each way of telling: the worst share of each kind of fact over all rounds, and the growth of the view."""
    del options
    rows = list(_fifty("rules", "rules", ()))
    for strategy in _ASKED:
        for name, answer in ANSWERS.items():
            model = HalfOf() if answer is None else Script(answer, window=WINDOW)
            rows += _fifty(f"{strategy}, a model that {name}", strategy, (model,))  # type: ignore[arg-type]  # see Script
    return rows


def _fifty(name: str, strategy: str, models: tuple[Model, ...]) -> Iterator[Row]:
    policy = Policy(summary=Summary(strategy=strategy))  # type: ignore[arg-type]  # the table holds its literals
    engine = manager(exact_counter(), WINDOW, policy=policy, models=models)
    planted: dict[str, list[str]] = defaultdict(list)
    worst: dict[str, float] = {}
    log: list[Entry] = []
    made_up = shown_open = 0
    sizes = []
    number = refused = 0
    work = sessions.made(0)
    while len(sizes) < ROUNDS:
        number += 1
        if _told(engine, _round(number, planted, work), log) is None:
            refused += 1  # it would have freed too little: the next round is folded together with this one
            assert refused < ROUNDS, "hardly any fold was worth it"
            continue
        view = "\n".join(message.text for message in engine.view())
        for kind, marks in planted.items():
            share = sum(mark in view for mark in marks) / len(marks)
            worst[kind] = min(worst.get(kind, 1.0), share)
        shown_open = max(shown_open, sum(mark in _open_work(view) for mark in planted["tests that passed later"]))
        made_up += sum(word in view for word in MADE_UP)
        sizes.append(_summary_size(engine))
    for kind, share in worst.items():
        bar = 100.0 if kind in _ALWAYS else 98.0
        yield Row(f"{name}: {kind}", 100 * share, "%", bar, at_least=True, note="worst of all rounds")
    yield Row(f"{name}: finished work shown as open", float(shown_open), "", 0)
    if models:
        yield Row(f"{name}: things made up", float(made_up), "", 0)
    else:
        yield _searched(name, planted, log)
    note = f"{sizes[9]:,} after 10 rounds, {sizes[-1]:,} after 50; {refused} folds refused"
    yield Row(f"{name}: largest summary", float(max(sizes)), "tokens", policy.summary.max_summary_tokens, note=note)
    yield _growth(name, engine, sorted(planted["files changed"]))


def _growth(name: str, engine: ContextManager, files: list[str]) -> Row:
    """How much the view after a fold grows over rounds of plain work, from the 25th to the last."""
    sizes = []
    for number in range(1, ROUNDS + 1):
        record = _told(engine, _plain(number, files))
        assert record is not None, "a round of plain work was not worth a fold"
        sizes.append(engine.usage().tokens)
    grown = sizes[-1] / sizes[ROUNDS // 2 - 1]
    note = f"{sizes[ROUNDS // 2 - 1]:,} tokens after {ROUNDS // 2} rounds, {sizes[-1]:,} after {ROUNDS}"
    return Row(f"{name}: growth by plain work", grown, "x", GROWTH, note=note)


def _searched(name: str, planted: dict[str, list[str]], log: list[Entry]) -> Row:
    """What the agent finds again with history_search, of all that was planted."""
    marks = [mark for marks in planted.values() for mark in marks]
    with tempfile.TemporaryDirectory(prefix="mycode-benchmark-") as folder, closing(Store(Path(folder))) as store:
        session = store.create(cwd="/work", title="drift")
        store.append(session, *(sealed(entry) for entry in log))
        archive = SessionArchive(store, session)
        found = sum(bool(archive.search(mark)) for mark in marks)
    return Row(f"{name}: found by history_search", 100 * found / len(marks), "%", 100, at_least=True)


def _told(engine: ContextManager, said: Iterator[Message], log: list[Entry] | None = None) -> SummaryRecord | None:
    """The round is said and folded; None if the fold was refused."""
    entries = [engine.append(message) for message in said]
    events = drain(engine, by_hand())
    laid = [event.entry for event in events if isinstance(event, SummaryFinished)]
    if log is not None:
        log += [*entries, *laid]
    return next((entry.body for entry in laid if isinstance(entry.body, SummaryRecord)), None)


def _open_work(view: str) -> str:
    """The parts of a view that tell what is still open."""
    found = re.findall(
        r"^(?:Open errors|Errors still open|Open|To do|Still to do):\n((?:- .*\n?)*)", view, re.MULTILINE
    )
    return "\n".join([*found, *re.findall(r"^Failing tests: .*", view, re.MULTILINE)])


def _summary_size(engine: ContextManager) -> int:
    return next(category.tokens for category in engine.usage().categories if category.name == "summary")


def _round(number: int, planted: dict[str, list[str]], work: Iterator[Message]) -> Iterator[Message]:
    chance = random.Random(number)
    word = f"{chance.choice(['alpha', 'beta', 'gamma', 'delta', 'kappa', 'sigma', 'omega'])}_{number}"
    file, rule, decision = f"src/{word}/part_{number}.py", f"never delete table_{word}", f"strategy_{word}"
    name, built = f"limit_of_{word}", f"make dist-{word}"
    yield UserMessage(f"Go on with {file}. The number to change is {name}. But {rule}.")
    yield AssistantMessage("", (ToolCall(f"e{number}", "edit_file", json.dumps(_edit(file))),), finish="tool_calls")
    yield ToolResult(f"e{number}", f"Edited {file}: 1 replacement.")
    yield _shell(f"b{number}", built)
    yield ToolResult(f"b{number}", "done\nexit code: 0")
    command = f"pytest tests/test_{word}.py"
    yield _shell(f"t{number}", command)
    yield ToolResult(f"t{number}", f"FAILED tests/test_{word}.py::test_it - ValueError: bad_{word}\nexit code: 1", True)
    yield AssistantMessage(f"I decided to use {decision} instead of the old one, since it is simpler.")
    yield UserMessage("Good.")
    yield from renamed(islice(work, 24), f"{number}-")
    if number % 5:
        yield _shell(f"u{number}", command)
        yield ToolResult(f"u{number}", "1 passed\nexit code: 0")
    yield AssistantMessage("That is it for now.")
    planted["files changed"].append(file)
    planted["rules laid down"].append(rule)
    planted["decisions"].append(decision)
    planted["names given"].append(name)
    planted["commands run"].append(built)
    if number % 5:
        planted["tests that passed later"].append(f"tests/test_{word}.py")
    else:
        planted["errors open"].append(f"bad_{word}")
        planted["tests still failing"].append(f"tests/test_{word}.py")


def _plain(number: int, files: list[str]) -> Iterator[Message]:
    """Known files are read, known commands are run: nothing new is established."""
    chance = random.Random(-number)
    yield UserMessage(f"Look at {files[number % len(files)]} once more.")
    for step in range(12):
        call_id = f"p{number}-{step}"
        path = files[(number + step) % len(files)]
        yield AssistantMessage("", (ToolCall(call_id, "read_file", json.dumps({"path": path})),), finish="tool_calls")
        yield ToolResult(call_id, sessions.code(chance, 60))
    yield _shell(f"q{number}", "pytest -q")
    yield ToolResult(f"q{number}", "all passed\nexit code: 0")
    yield AssistantMessage("It is as it should be.")


def _edit(file: str) -> dict[str, object]:
    return {"path": file, "edits": [{"old": "a", "new": "b" * 300}]}


def _shell(call_id: str, command: str) -> AssistantMessage:
    return AssistantMessage(
        "", (ToolCall(call_id, "execute_bash", json.dumps({"command": command})),), finish="tool_calls"
    )
