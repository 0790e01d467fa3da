"""Scores the rule-based compression on recorded sessions: how much of what the agent needed later is still in it.

`python -m tests.benchmarks.retention --data DIR --scorer DIR [--limit N] [--jobs N] [--only NAME ...]`, where the
scorer's folder holds score.py and data.py, the data folder dev.jsonl.gz and compactions-dev.jsonl.gz. Prints recall at
six budgets, after one fold and after three in a row, both of a transcript alone and inside a session; recall at the
size of summaries that models wrote; and the cost in CPU time.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import importlib
import importlib.util
import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import Any, Literal

from mycode.context.compress import compress
from mycode.context.facts import FactLedger
from mycode.context.policy import Auto, Keep, Llm, Masking, Policy, Summary, Window
from mycode.context.selection import fold_text
from mycode.context.transcripts import read_items, steps
from mycode.core.messages import AssistantMessage, ToolResult, ViewMessage
from mycode.core.summaries import Trigger
from tests.support.context_doubles import Chat, Script

Transcript = list[dict[str, Any]]
FOLDS = 3
TAIL, TOLD = 0.2, 0.72
"""What part of the budget a session's newest messages and its summary get; the rest is for pins and the footer."""
ACCOUNT = '{"summary": "The work went on as it was asked for; the account of it is short."}'


def rules(messages: Transcript, budget: int) -> Transcript:
    """One compression of the whole prefix."""
    return compress(messages, budget, count=_counter())


def three_folds(messages: Transcript, budget: int) -> Transcript:
    """The prefix arrives in three parts, and what stands so far is compressed after each."""
    items = read_items(messages)
    sizes = _sizes(messages)
    kept: Transcript = []
    done, part = 0, 1
    for step in steps(items):
        kept += [item.raw for item in step]
        done += sum(sizes[item.index] for item in step)
        if part < FOLDS and done >= part * sum(sizes) / FOLDS:
            kept = compress(kept, budget, count=_counter())
            part += 1
    return compress(kept, budget, count=_counter())


def session(messages: Transcript, budget: int) -> Transcript:
    """The view of a session that was folded once, by rules."""
    return _view_of_session(messages, budget, 1, "rules")


def session_three_folds(messages: Transcript, budget: int) -> Transcript:
    """The view of a session that was folded three times, by rules."""
    return _view_of_session(messages, budget, FOLDS, "rules")


def session_hybrid(messages: Transcript, budget: int) -> Transcript:
    """The view of a session that was folded once, beside a model that tells nothing of use."""
    return _view_of_session(messages, budget, 1, "hybrid")


def session_hybrid_three_folds(messages: Transcript, budget: int) -> Transcript:
    """The same folded three times."""
    return _view_of_session(messages, budget, FOLDS, "hybrid")


def _view_of_session(messages: Transcript, budget: int, folds: int, strategy: Literal["rules", "hybrid"]) -> Transcript:
    """What the model would be sent when the session has come so far, in at most `budget` tokens."""
    room = 3 * budget
    policy = Policy(
        auto=Auto(min_saving=0.0),
        keep=Keep(recent_messages=1_000, recent_share=TAIL * budget / room),
        window=Window(max_context_tokens=room + 2, reserved_output_tokens=1, safety_margin=0.0),
        summary=Summary(
            strategy=strategy, max_summary_tokens=max(50, int(TOLD * budget)), max_share=1.0, target_compression=1.0
        ),
        llm=Llm(max_tokens=max(50, budget // 10)),
        masking=Masking(enabled=False),
    )
    chat = Chat(room, policy=policy, models=[Script(ACCOUNT)], system="", counter=_Counter())
    said = [(item.index, message) for item in read_items(messages) for message in item.messages]
    sizes = _sizes(messages)
    whole, done, part = sum(sizes), 0, 1
    for place, (index, message) in enumerate(said):
        chat.say(message)
        if place + 1 < len(said) and said[place + 1][0] == index:
            continue
        done += sizes[index]
        settled = place + 1 == len(said) or not isinstance(said[place + 1][1], ToolResult)
        if part < folds and settled and done >= part * whole / folds:
            asyncio.run(chat.fold(Trigger("manual", 0.5, 0)))
            part += 1
    asyncio.run(chat.fold(Trigger("manual", 0.5, 0)))
    return [_as_dict(message) for message in chat.manager.fit(budget)]


def _as_dict(message: ViewMessage) -> dict[str, Any]:
    match message:
        case AssistantMessage(text=text, tool_calls=calls):
            called = [{"id": c.id, "function": {"name": c.name, "arguments": c.arguments}} for c in calls]
            return {"role": "assistant", "content": text} | ({"tool_calls": called} if called else {})
        case ToolResult(call_id=call_id, text=text):
            return {"role": "tool", "tool_call_id": call_id, "content": text}
        case _:
            return {"role": "user", "content": message.text}


class _Counter:
    """The scorer's own counting of tokens."""

    exact = True

    def count(self, text: str) -> int:
        found: int = _counter()(text)
        return found


def speed(score: Any, records: list[dict[str, Any]]) -> str:
    """CPU time per 10,000 tokens: the whole compression with nothing known, and a fold whose facts were kept."""
    cold = warm = kept_facts = 0.0
    total = 0
    for record in records:
        _, messages = score.strip_system(record["messages"])
        size = score.total_tokens(messages)
        total += size
        start = time.process_time()
        compress(messages, size // 5, count=_uncached())
        cold += time.process_time() - start
        said = [message for item in read_items(messages) for message in item.messages]
        calls = {c.id: c for m in said if isinstance(m, AssistantMessage) for c in m.tool_calls}
        start = time.process_time()
        ledger = FactLedger()
        for seq, message in enumerate(said, 1):
            ledger = ledger.add(seq, message, calls.get(message.call_id) if isinstance(message, ToolResult) else None)
        kept_facts += time.process_time() - start
        start = time.process_time()
        fold_text(list(enumerate(said, 1)), previous=None, ledger=ledger, budget_tokens=size // 5, count=_uncached())
        warm += time.process_time() - start
    per = 10_000 / total * 1000
    return (
        f"CPU ms per 10k tokens: cold {cold * per:.1f} (counting included), with kept facts {warm * per:.1f}, "
        f"keeping the facts {kept_facts * per:.1f}"
    )


WAYS = (rules, three_folds, session, session_three_folds, session_hybrid, session_hybrid_three_folds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--scorer", type=Path, required=True)
    parser.add_argument("--limit", type=int, help="score only this many sessions, evenly over the file")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=[way.__name__ for way in WAYS], help="score only these ways")
    args = parser.parse_args()
    _use_offline_vocabulary()
    sys.path.insert(0, str(args.scorer))
    score = importlib.import_module("score")
    records = score.load(args.data / "dev.jsonl.gz")
    if args.limit:
        step = max(1.0, len(records) / args.limit)
        records = [records[int(i * step)] for i in range(min(args.limit, len(records)))]
    specs = [f"tests.benchmarks.retention:{way.__name__}" for way in WAYS]
    if args.only:
        specs = [f"tests.benchmarks.retention:{name}" for name in args.only]
    else:
        print(speed(score, records[:: max(1, len(records) // 10)]))
    rows: list[dict[str, Any]] = []
    with multiprocessing.Pool(args.jobs) as pool:
        for part in pool.imap_unordered(score.evaluate, [(record, specs) for record in records]):
            rows += part
    rows.sort(key=lambda r: (specs.index(r["strategy"]), r["id"], r["cut"], r["budget"]))
    print(score.table(rows), score.by_source(rows), score.by_kind(rows), sep="\n\n")
    if args.only:
        return
    print("\nAt the size of summaries that models wrote:")
    compactions = argparse.Namespace(data=args.data / "compactions-dev.jsonl.gz", strategy=specs[:1])
    score.show_compactions(compactions)


@functools.cache
def _counter() -> Any:
    return importlib.import_module("data").count_tokens


def _uncached() -> Any:
    """A counter that remembers nothing of earlier texts."""
    data = importlib.import_module("data")
    data._count_short.cache_clear()
    return data.count_tokens


def _sizes(messages: Transcript) -> list[int]:
    data = importlib.import_module("data")
    return [data.message_tokens(message) for message in messages]


def _use_offline_vocabulary() -> None:
    spec = importlib.util.find_spec("litellm")
    if spec and spec.origin:
        folder = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(folder))


if __name__ == "__main__":
    main()
