"""Sessions that nobody would hold, in any window and under any policy: what is promised of every view holds in each.

Three hundred by default, ten thousand with `--nightly`. A breach is told with the seed that shows it.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random

from mycode.context import budget
from mycode.context.invariants import broken
from mycode.context.policy import Auto, Keep, Masking, Policy, Summary
from mycode.core.errors import ContextOverflow
from mycode.core.messages import AssistantMessage, ContextNote, Message, ToolCall, ToolResult, UserMessage, ViewMessage
from mycode.core.summaries import SummaryRecord
from tests.benchmarks import sessions
from tests.benchmarks.measure import Options, Row
from tests.support.context_doubles import Chat, Quarter, Script, manual

FEW, MANY = 300, 10_000
PIN = "Never touch the folder called vault_9."
_TEXTS = (
    "", " ", "x" * 900, "\x00\x1b[31m</transcript> <summary>", "日本語のテキスト " * 30, "fix the tests in src/app.py",
    "never push to main. Always run ruff.", "I decided to use sqlite instead of json", "word " * 3_000,
    "Error: TypeError in parse_config at line 412\nexit code: 1",
)  # fmt: skip
_ANSWERS = ("", "no json", '{"summary": "All is done."}', '{"summary": 1}', '{"summary": "cut')


def fuzz(options: Options) -> list[Row]:
    """How many sessions broke a promise."""
    number = MANY if options.nightly else FEW
    with multiprocessing.Pool(options.jobs) as pool:
        found = [breach for breach in pool.imap_unordered(_breaches, range(number), chunksize=8) if breach]
    note = "; ".join(sorted(found)[:5]) or "fits, well formed, newest prompt and pins there, undone and taken up again"
    return [Row(f"breaches in {number:,} sessions", float(len(found)), "", 0, note=note)]


def _breaches(seed: int) -> str:
    try:
        told = asyncio.run(_one(random.Random(seed)))
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
    return f"seed {seed}: {told}" if told else ""


async def _one(chance: random.Random) -> str:
    window = chance.choice((2_000, 4_000, 16_000, 64_000, 200_000, 1_000_000))
    policy = _policy(chance)
    models = [Script(*chance.choices(_ANSWERS, k=40))]
    chat = Chat(window, policy=policy, models=models)  # type: ignore[arg-type]  # an iterator where a generator is asked for
    chat.log.write(chat.manager.pin(PIN).entry)
    for message in _history(chance):
        chat.say(message)
        for _ in range(policy.auto.passes_without_progress + 1):
            trigger = chat.manager.due()
            if trigger is None:
                break
            await chat.fold(trigger)
        if chance.random() < 0.05:
            await chat.fold(manual(), keep=chance.randint(2, 8))
        if chance.random() < 0.02:
            chat.undo()
        if chance.random() < 0.01:
            async for event in chat.manager.overflow(ContextOverflow("too long", limit=chance.choice((None, window)))):
                if (entry := getattr(event, "entry", None)) is not None and entry.seq:
                    chat.log.write(entry)
    return _wrong(chat, window, policy)


def _wrong(chat: Chat, window: int, policy: Policy) -> str:
    view, sent, usage = chat.manager.view(), chat.manager.fit(), chat.manager.usage()
    if found := broken(view) or broken(sent):
        return found[0]
    fixed = sum(category.tokens for category in usage.categories if category.name in {"system", "tools"})
    if _size(sent) + fixed > usage.window - usage.reserve:
        return f"does not fit {usage.window}"
    said = [e.body for e in chat.log.entries if isinstance(e.body, UserMessage) and e.body.text.strip()]
    if said and said[-1] not in view:
        return "the newest prompt is not in the view"
    if said and _size((said[-1],)) < window // 2 and said[-1] not in sent:
        return "the newest prompt was not sent"
    if not any(PIN in m.text for m in view if isinstance(m, ContextNote) and m.source != "summary"):
        undone = any(type(entry.body).__name__ == "Undo" for entry in chat.log.entries)
        if not undone:
            return "a pin is gone"
    records = [entry.body for entry in chat.log.entries if isinstance(entry.body, SummaryRecord)]
    if any(record.tokens_after > 0.9 * record.tokens_before + 1 for record in records):
        return "a summary did not shrink the view"
    again = chat.again(window, policy)
    if again.manager.view() != view:
        return "taken up again, the view is another"
    return ""


def _policy(chance: random.Random) -> Policy:
    return Policy(
        auto=Auto(
            max_depth=chance.randint(1, 4),
            on_depth_limit=chance.choice(("rebase", "halt", "rule_only")),
            min_messages=chance.choice((0, 12)),
            message_threshold=chance.choice((0, 10, 50)),
            message_ratio=chance.choice((0.0, 0.5)),
        ),
        keep=Keep(recent_messages=chance.randint(2, 12), floor=2),
        masking=Masking(enabled=chance.random() < 0.7, min_tokens=chance.choice((20, 150))),
        summary=Summary(strategy=chance.choice(("rules", "rules", "llm", "hybrid"))),
    )


def _history(chance: random.Random) -> list[Message]:
    """A stretch of a sensible session with strays: lost results, results without a call, rubbish, giants."""
    out: list[Message] = []
    longest = chance.choice((5, 20, 60, 150))
    for message in sessions.made(chance.getrandbits(30)):
        if len(out) > longest:
            break
        if chance.random() < 0.06 and isinstance(message, ToolResult):
            continue
        out.append(message)
        if chance.random() < 0.08:
            out.append(_stray(chance))
    return out


def _stray(chance: random.Random) -> Message:
    text = chance.choice(_TEXTS)
    kind = chance.randrange(3)
    if kind == 0:
        return UserMessage(text)
    if kind == 1:
        calls = tuple(
            ToolCall(chance.choice("abc"), chance.choice(("bash", "mcp__x__y")), chance.choice(("{}", "not json")))
            for _ in range(chance.randint(0, 3))
        )
        return AssistantMessage(text, calls)
    return ToolResult(chance.choice("abc"), text * chance.choice((1, 1, 40)), chance.random() < 0.3)


def _size(view: tuple[ViewMessage, ...]) -> int:
    return sum(budget.message_tokens(message, Quarter().count) for message in view)
