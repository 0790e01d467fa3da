"""What fifty summaries in a row lose: planted facts, looked for in the view after every one of them.

Each round is a stretch of made-up work with a rule laid down, a file changed, a test that fails (every fifth for good)
and a decision, and ends with a fold. Models that answer well do not show what is lost, so these drop half, make things
up, or send nothing, too much, or no JSON at all.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice

from mycode.context.policy import Policy, Summary
from mycode.core.events import SummaryFinished
from mycode.core.messages import AssistantMessage, Message, ToolCall, ToolResult, UserMessage
from mycode.core.models import Model
from tests.benchmarks import sessions
from tests.benchmarks.engine import by_hand, drain, exact_counter, manager, renamed
from tests.benchmarks.measure import Options, Row
from tests.support.context_doubles import Script

ROUNDS = 50
WINDOW = 200_000
MADE_UP = ("invented_module", "hallucinated_function", "made_up_lib")
_ALWAYS = ("files changed", "rules laid down", "errors open")
_FINISHED = ("tests that passed later",)


def _answer(summary: str, **parts: object) -> str:
    return json.dumps({"summary": summary} | parts)


MODELS: dict[str, tuple[str, tuple[str, ...]]] = {
    "rules": ("rules", ()),
    "a model that drops half": ("hybrid", (_answer("Some functions were mended and some tests were run."),)),
    "a model that makes things up": (
        "llm",
        (_answer("All is in src/invented_module.py by hallucinated_function().", decisions=["use made_up_lib"]),),
    ),
    "a model that sends rubbish": ("llm", ("", "not json at all", _answer("word " * 40_000), '{"summary": "cut')),
}


def drift(options: Options) -> list[Row]:
    """For each way of telling: the worst share of each kind of fact over all rounds, and the growth of the view."""
    del options
    return [row for name in MODELS for row in _fifty(name)]


def _fifty(name: str) -> Iterator[Row]:
    strategy, answers = MODELS[name]
    models: tuple[Model, ...] = (Script(*(answers * ROUNDS * 2), window=WINDOW),) if answers else ()  # type: ignore[assignment]  # see Script
    policy = Policy(summary=Summary(strategy=strategy))  # type: ignore[arg-type]  # the table holds its literals
    engine = manager(exact_counter(), WINDOW, policy=policy, models=models)
    planted: dict[str, list[str]] = defaultdict(list)
    worst: dict[str, float] = {}
    made_up = 0
    sizes = []
    number = refused = 0
    while len(sizes) < ROUNDS:
        number += 1
        for message in _round(number, planted):
            engine.append(message)
        if not any(isinstance(event, SummaryFinished) for event in drain(engine, by_hand())):
            refused += 1  # it would have freed too little: the next round is folded together with this one
            assert refused < ROUNDS, "hardly any fold was worth it"
            continue
        view = "\n".join(message.text for message in engine.view())
        for kind, marks in planted.items():
            share = sum(mark in view for mark in marks) / len(marks)
            worst[kind] = min(worst.get(kind, 1.0), share)
        made_up += sum(word in view for word in MADE_UP)
        usage = engine.usage()
        sizes.append(next(category.tokens for category in usage.categories if category.name == "summary"))
    for kind, share in worst.items():
        bar = 100.0 if kind in _ALWAYS else None if kind in _FINISHED else 98.0
        yield Row(f"{name}: {kind}", 100 * share, "%", bar, at_least=True, note="worst of all rounds")
    if answers:
        yield Row(f"{name}: things made up", float(made_up), "", 0)
    note = f"{sizes[9]:,} after 10 rounds, {sizes[-1]:,} after 50; {refused} folds refused"
    yield Row(f"{name}: largest summary", float(max(sizes)), "tokens", policy.summary.max_summary_tokens, note=note)


def _round(number: int, planted: dict[str, list[str]]) -> Iterator[Message]:
    chance = random.Random(number)
    word = f"{chance.choice(['alpha', 'beta', 'gamma', 'delta', 'kappa', 'sigma', 'omega'])}_{number}"
    file, rule, decision = f"src/{word}/part_{number}.py", f"never delete table_{word}", f"strategy_{word}"
    yield UserMessage(f"Go on with {file}. But {rule}.")
    yield AssistantMessage("", (ToolCall(f"e{number}", "edit_file", json.dumps(_edit(file))),), finish="tool_calls")
    yield ToolResult(f"e{number}", f"Edited {file}: 1 replacement.")
    command = f"pytest tests/test_{word}.py"
    yield _shell(f"t{number}", command)
    yield ToolResult(f"t{number}", f"FAILED tests/test_{word}.py::test_it - ValueError: bad_{word}\nexit code: 1", True)
    yield AssistantMessage(f"I decided to use {decision} instead of the old one, since it is simpler.")
    yield UserMessage("Good.")
    yield from renamed(islice(sessions.made(number), 24), f"{number}-")
    if number % 5:
        yield _shell(f"u{number}", command)
        yield ToolResult(f"u{number}", "1 passed\nexit code: 0")
    yield AssistantMessage("That is it for now.")
    planted["files changed"].append(file)
    planted["rules laid down"].append(rule)
    planted["decisions"].append(decision)
    if number % 5:
        planted["tests that passed later"].append(f"tests/test_{word}.py")
    else:
        planted["errors open"].append(f"bad_{word}")
        planted["tests still failing"].append(f"tests/test_{word}.py")


def _edit(file: str) -> dict[str, object]:
    return {"path": file, "edits": [{"old": "a", "new": "b" * 300}]}


def _shell(call_id: str, command: str) -> AssistantMessage:
    return AssistantMessage(
        "", (ToolCall(call_id, "execute_bash", json.dumps({"command": command})),), finish="tool_calls"
    )
