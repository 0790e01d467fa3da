"""What the context engine costs: a fold by rules, a turn of a long session, a prepared summary, an original found.

Each with a growth curve: sizes that double, so that what grows faster than its input can be seen.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import count, islice
from pathlib import Path

from mycode.context.manager import ContextManager
from mycode.context.policy import Auto, Masking, Policy, Summary
from mycode.core.entries import Entry
from mycode.core.events import Event, SummaryFinished
from mycode.core.messages import AssistantMessage, Message, ToolCall, ToolResult, UserMessage
from mycode.core.models import Model, TokenCounter
from mycode.core.redact import redact
from mycode.core.summaries import Trigger
from mycode.core.usage import Usage
from mycode.llm.tokens import Tokens
from mycode.session.archive import SessionArchive
from mycode.session.entries import sealed
from mycode.session.store import Store
from tests.benchmarks import sessions
from tests.benchmarks.measure import Options, Row, least
from tests.support.context_doubles import Script, model_info, settled

_ACCOUNT = (
    '{"summary": "The person asked for several functions to be mended; most of them are, and their tests pass.", '
    '"key_points": ["tests pass"], "decisions": ["the old store is kept"], "unresolved": []}'
)


class Clocked:
    """A counter that knows how long it has counted, so that what was spent beyond counting can be told."""

    def __init__(self, inner: TokenCounter) -> None:
        self._inner = inner
        self.seconds = 0.0

    @property
    def exact(self) -> bool:
        return self._inner.exact

    def count(self, text: str) -> int:
        started = time.process_time()
        try:
            return self._inner.count(text)
        finally:
            self.seconds += time.process_time() - started


def exact_counter(model: str = "openai/gpt-5") -> Tokens:
    counter = Tokens(model)
    counter.load()
    return counter


def manager(
    counter: TokenCounter,
    window: int,
    *,
    policy: Policy | None = None,
    models: tuple[Model, ...] = (),
    check: bool = False,
) -> ContextManager:
    """An engine as a session wires it, without a disk."""
    ids = count(1)
    return ContextManager(
        policy=policy or Policy(),
        counter=counter,
        info=model_info(window),
        system="You are a coding agent. " * 60,
        summarizer=lambda: models,
        clock=time.time,
        new_id=lambda: f"id{next(ids)}",
        redact=redact,
        check=check,
    )


def fold_by_rules(options: Options) -> list[Row]:
    """One fold by rules of a whole history, beyond counting its tokens: what was kept along is not paid again."""
    counter = exact_counter()
    rows: list[Row] = []
    spent: dict[int, float] = {}
    for size in (25_000, 50_000, 100_000, 200_000, 400_000):
        said = list(_of_size(_session(options), size, counter))
        spent[size] = min(_one_fold(said, counter, size) for _ in range(4))
        bar = 100.0 if size == 200_000 else None
        rows.append(
            Row(f"rules on {size // 1000}K tokens", spent[size] * 1000, "CPU ms", bar, note=f"{len(said)} messages")
        )
    return [*rows, Row("growth 100K to 200K", spent[200_000] / spent[100_000], "x", note="2: linear")]


def long_session(options: Options) -> list[Row]:
    """A turn (prompt, call, result, answer: two requests) late in a session that is never folded."""
    del options
    counter = exact_counter()
    rows: list[Row] = []
    spent: dict[int, float] = {}
    for messages in (2_500, 5_000, 10_000, 20_000):
        engine = manager(counter, 4_000_000, policy=Policy(auto=Auto(message_threshold=0, max_tokens=0)))
        for message in islice(sessions.small(1), messages):
            engine.append(message)
        engine.fit()
        tokens = engine.usage().tokens
        numbers = count(1)
        spent[messages] = least(lambda e=engine, n=numbers: _turn(e, next(n)), times=15)  # type: ignore[misc]  # bound now
        bar = 5.0 if messages == 20_000 else None
        note = f"{tokens:,} tokens"
        rows.append(Row(f"a turn after {messages:,} messages", spent[messages] * 1000, "CPU ms", bar, note=note))
    return [*rows, Row("growth 10,000 to 20,000", spent[20_000] / spent[10_000], "x", note="1: what is new only")]


def install_prepared(options: Options) -> list[Row]:
    """Laying a summary that was prepared in the background, when its trigger comes."""
    counter = exact_counter()
    rows = []
    for window in (50_000, 100_000, 200_000, 400_000):
        said = _session(options)
        spent = min(asyncio.run(_prepared(said, counter, window)) for _ in range(3))
        bar = 50.0 if window == 200_000 else None
        rows.append(Row(f"prepared summary, {window // 1000}K window", spent * 1000, "CPU ms", bar))
    return rows


def expand(options: Options) -> list[Row]:
    """Finding an original again in a long log: by message, by range of messages, by kept text; the dearest counts."""
    del options
    rows = []
    with tempfile.TemporaryDirectory(prefix="mycode-benchmark-") as scratch:
        folder = Path(scratch)
        with closing(Store(folder)) as store:
            session = store.create(cwd="/work", title="long work")
        for megabytes in (12.5, 25.0, 50.0, 100.0):
            last = _grow(folder, session, megabytes * 1e6)
            spent: dict[str, float] = {}
            for name in ("m1", f"m{last // 2}", f"m{last}", f"m{last // 2}-m{last // 2 + 9}", "t1", "t3"):
                spent[name] = least(lambda h=name: _expand(folder, session, h), times=3)  # type: ignore[misc]  # bound now
            with closing(Store(folder)) as store:
                archive = SessionArchive(store, session)
                found = least(lambda a=archive: a.search("resolve cursor"), times=3)  # type: ignore[misc]  # bound now
            dearest = max(spent, key=lambda one: spent[one])
            bar = 50.0 if megabytes == 100.0 else None
            note = f"{dearest}, opening the store included; a search by words {found * 1000:.0f} ms"
            rows.append(Row(f"expand in {megabytes:g} MB", spent[dearest] * 1000, "CPU ms", bar, note=note))
    return rows


def drain(engine: ContextManager, trigger: Trigger, **more: object) -> list[Event]:
    """All events of one fold."""

    async def run() -> list[Event]:
        return [event async for event in engine.summarize(trigger, **more)]  # type: ignore[arg-type]  # as they came

    return asyncio.run(run())


def by_hand() -> Trigger:
    return Trigger("manual", 0.5, 0)


def _session(options: Options) -> Callable[[], Iterator[Message]]:
    """Recorded sessions one after the other if there are any, else a made one."""
    if options.data is None:
        return lambda: sessions.made(1)
    found = sessions.recorded(options.data)

    def all_of_them() -> Iterator[Message]:
        for number, said in enumerate(found.values()):
            yield from renamed(said, f"{number}-")
        yield from sessions.made(1)

    return all_of_them


def renamed(said: Iterable[Message], prefix: str) -> Iterator[Message]:
    """The same messages with other call ids, so that sessions can follow one another."""
    for message in said:
        if isinstance(message, ToolResult):
            yield ToolResult(prefix + message.call_id, message.text, message.is_error)
        elif isinstance(message, AssistantMessage):
            calls = tuple(ToolCall(prefix + call.id, call.name, call.arguments) for call in message.tool_calls)
            yield AssistantMessage(message.text, calls, message.finish)
        else:
            yield message


def _of_size(begin: Callable[[], Iterator[Message]], tokens: int, counter: TokenCounter) -> Iterator[Message]:
    total = 0
    for message in begin():
        total += counter.count(message.text) + sum(
            counter.count(call.arguments) for call in getattr(message, "tool_calls", ())
        )
        if total > tokens:
            return
        yield message


def _one_fold(said: list[Message], counter: TokenCounter, size: int) -> float:
    clocked = Clocked(counter)
    engine = manager(clocked, 2 * size)
    for message in said:
        engine.append(message)
    engine.fit()
    clocked.seconds = 0.0
    started = time.process_time()
    events = drain(engine, by_hand(), strategy="rules")
    spent = time.process_time() - started - clocked.seconds
    assert any(isinstance(event, SummaryFinished) for event in events), events
    return spent


def _turn(engine: ContextManager, number: int) -> None:
    """What the agent loop asks of the engine in a turn of two requests."""
    engine.append(UserMessage(f"And what does function_{number} do?"))
    for answer in (
        AssistantMessage("I look.", (ToolCall(f"t{number}", "read_file", f'{{"path":"src/m{number}.py"}}'),)),
        AssistantMessage(f"function_{number} computes the ledger of the view."),
    ):
        assert (trigger := engine.due()) is None, trigger
        size = engine.usage().tokens
        engine.fit()
        engine.usage()
        engine.observe(Usage(size, 20))
        engine.append(answer)
        if answer.tool_calls:
            engine.append(ToolResult(f"t{number}", f"def function_{number}():\n" + "    value = compute(value)\n" * 20))


async def _prepared(begin: Callable[[], Iterator[Message]], counter: TokenCounter, window: int) -> float:
    model = Script(_ACCOUNT, window=window)
    policy = Policy(masking=Masking(enabled=False), summary=Summary(strategy="hybrid"), auto=Auto(message_threshold=0))
    engine = manager(counter, window, policy=policy, models=(model,))  # type: ignore[arg-type]  # an iterator where a generator is asked for
    trigger: Trigger | None = None
    for message in begin():
        engine.append(message)
        if not isinstance(message, AssistantMessage) and engine.precompute():
            await settled()
        trigger = engine.due()
        if trigger is not None and not (isinstance(message, AssistantMessage) and message.tool_calls):
            break
    asked = len(model.requests)
    assert asked, "nothing was prepared"
    started = time.process_time()
    assert trigger is not None, "the session ended before its trigger"
    events = [event async for event in engine.summarize(trigger)]
    spent = time.process_time() - started
    assert any(isinstance(event, SummaryFinished) for event in events), events
    assert len(model.requests) == asked, "the prepared summary was not used"
    return spent


def _grow(folder: Path, session: str, size: float) -> int:
    """Lets the session grow to so many bytes of messages and kept texts (a megabyte each, a quarter of the whole)."""
    chance = random.Random(size)
    pages = [sessions.code(chance, 90) for _ in range(60)]
    with closing(Store(folder)) as store:
        seq = store.log(session).last_seq()
        kept = store.log(session).tokens(1) * 4  # counted by `_Quarter`
        texts = int(size / 4e6)
        for number in range(texts // 2 if seq else 0, texts):
            store.keep_text(session, f"{number}\n" + ("\n".join(chance.choices(pages, k=300)))[:1_000_000])
        left = size - texts * 1e6 - kept
        batch = []
        while left > 0:
            text = f"{chance.random()}\n" + chance.choice(pages)
            left -= len(text)
            seq += 1
            batch.append(sealed(Entry(seq, f"id{seq}", 1e9 + seq, UserMessage(text), len(text) // 4)))
            if len(batch) == 1_000 or left <= 0:
                store.append(session, *batch)
                batch.clear()
    return seq


def _expand(folder: Path, session: str, handle: str) -> None:
    with closing(Store(folder)) as store:
        assert SessionArchive(store, session).expand(handle)


class _Quarter:
    """Counts a token per four characters: where the number does not matter."""

    exact = True

    def count(self, text: str) -> int:
        return len(text) // 4
