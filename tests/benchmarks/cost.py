"""What input costs when a provider caches prefixes: sessions replayed under four ways to keep a context small.

Weights: a token that is not cached 1, one read from the cache 0.1, one written to it 1.25. What was sent is cached for
300 seconds after it was last used; a smallest cacheable length is not modelled. The prefix of a request that an earlier
request also had is read, the rest is written, all but a closing note that changes every time. Nobody recorded when
things were said: a request follows the one before by seconds, a person's message by a minute or more (log-normal,
medians 8 and 90 seconds, the same for every way), so that some pauses outlast the cache.

The ways: everything, in a window without end; a fold at 80 % into a summary of a tenth of the window, the newest
quarter kept (its request reads what is cached); all results but the newest ten masked before every request; and the
engine, by rules.
"""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from mycode.context import budget
from mycode.core.events import ContextMasked, SummaryFinished
from mycode.core.messages import AssistantMessage, ContextNote, Message, ToolResult, UserMessage, ViewMessage
from mycode.core.models import TokenCounter
from mycode.core.usage import Usage
from tests.benchmarks import sessions
from tests.benchmarks.engine import drain, exact_counter, manager, renamed
from tests.benchmarks.measure import Options, Row

READ, WRITTEN, PLAIN = 0.1, 1.25, 1.0
LIFETIME = 300.0
FIXED = 1_500
"""Tokens of system prompt and tools."""
WINDOWS = (32_000, 64_000, 200_000)
NEWEST_RESULTS = 10
CHAIN = 6
_INSTRUCTIONS = 400

Part = tuple[object, int]
"""A message of a request: what tells it from others, and its tokens."""


@dataclass
class Bill:
    """What the requests of one session cost, and how much of them a provider had in its cache."""

    weighted: float = 0.0
    tokens: int = 0
    between: int = 0
    between_cached: int = 0
    lapsed: int = 0
    requests: int = 0
    epochs: int = 0
    _sent: list[tuple[float, list[object]]] = field(default_factory=list)

    def request(self, parts: list[Part], now: float, *, epoch: bool = False, volatile: bool = False) -> None:
        """One request at `now`; `epoch` when the view was changed before it, `volatile` if its last part is."""
        keys = [key for key, _ in parts]
        fresh = [sent for at, sent in self._sent if now - at <= LIFETIME]
        shared = max((_shared(keys, sent) for sent in fresh), default=0)
        last = parts[-1][1] if volatile else 0
        total = FIXED + sum(tokens for _, tokens in parts)
        read = FIXED + sum(tokens for _, tokens in parts[:shared]) if fresh else 0
        self.weighted += READ * read + WRITTEN * (total - read - last) + PLAIN * last
        self.tokens += total
        self.requests += 1
        self.epochs += epoch
        if self._sent and not epoch:
            self.between += total
            self.between_cached += read
            self.lapsed += 0 if fresh else total
        self._sent = [*self._sent[-2:], (now, keys[:-1] if volatile else keys)]

    def __add__(self, other: Bill) -> Bill:
        return Bill(
            self.weighted + other.weighted,
            self.tokens + other.tokens,
            self.between + other.between,
            self.between_cached + other.between_cached,
            self.lapsed + other.lapsed,
            self.requests + other.requests,
            self.epochs + other.epochs,
        )


class Sizes:
    """Tokens of messages, each text counted once."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._known: dict[str, int] = {}

    @property
    def exact(self) -> bool:
        return True

    def count(self, text: str) -> int:
        size = self._known.get(text)
        if size is None:
            size = self._known[text] = self._counter.count(text)
        return size

    def part(self, message: ViewMessage) -> Part:
        calls = tuple(call.id for call in message.tool_calls) if isinstance(message, AssistantMessage) else ()
        return (type(message).__name__, message.text, calls), budget.message_tokens(message, self.count)


def everything(said: list[Message], times: list[float], sizes: Sizes, window: int) -> Bill:
    """No management at all: the window has no end."""
    del window
    bill = Bill()
    for end, now in _requests(said, times):
        bill.request([sizes.part(message) for message in said[:end]], now)
    return bill


def fold_at_threshold(said: list[Message], times: list[float], sizes: Sizes, window: int) -> Bill:
    """A plain fold when the request passes 80 % of the window, written by a model that reads the whole."""
    bill = Bill()
    start, folds = 0, 0
    for end, now in _requests(said, times):
        head: list[Part] = [(f"summary {folds}", window // 10)] if folds else []
        parts = head + [sizes.part(message) for message in said[start:end]]
        folded = FIXED + sum(tokens for _, tokens in parts) >= 0.8 * window
        if folded:
            bill.request([*parts, (f"summarize {folds}", _INSTRUCTIONS)], now - 1)
            tail = end
            room = window // 4
            while tail > start + 1 and (room := room - sizes.part(said[tail - 1])[1]) >= 0:
                tail -= 1
            while tail < end and isinstance(said[tail], ToolResult):
                tail += 1
            start, folds = min(tail, end - 1), folds + 1
            parts = [(f"summary {folds}", window // 10), *(sizes.part(message) for message in said[start:end])]
        bill.request(parts, now, epoch=folded)
    return bill


def mask_every_turn(said: list[Message], times: list[float], sizes: Sizes, window: int) -> Bill:
    """All results but the newest ten are one line each in every request; fewer where ten are too many."""
    bill = Bill()
    for end, now in _requests(said, times):
        results = [at for at in range(end) if isinstance(said[at], ToolResult)]
        parts: list[Part] = []
        for newest in (NEWEST_RESULTS, 5, 2, 1, 0):
            shown = set(results[len(results) - newest :] if newest else ())
            parts = [
                sizes.part(said[at]) if at in shown or not isinstance(said[at], ToolResult) else (f"mask {at}", 16)
                for at in range(end)
            ]
            if FIXED + sum(tokens for _, tokens in parts) < 0.9 * window:
                break
        while len(parts) > 2 and FIXED + sum(tokens for _, tokens in parts) >= 0.9 * window:
            parts = parts[len(parts) // 10 + 1 :]
        bill.request(parts, now, epoch=True)
    return bill


def ours(said: list[Message], times: list[float], sizes: Sizes, window: int) -> Bill:
    """The engine, as the agent loop drives it, by rules."""
    bill = Bill()
    engine = manager(sizes, window)
    done = 0
    for end, now in _requests(said, times):
        for message in said[done:end]:
            engine.append(message)
        done = end
        epoch = False
        trigger = engine.due()
        if trigger is not None:
            epoch = any(isinstance(event, ContextMasked | SummaryFinished) for event in drain(engine, trigger))
        view = engine.fit()
        volatile = isinstance(view[-1], ContextNote) and view[-1].source == "footer"
        parts = [sizes.part(message) for message in view]
        bill.request(parts, now, epoch=epoch, volatile=volatile)
        engine.observe(Usage(FIXED + sum(tokens for _, tokens in parts), 100))
    return bill


WAYS: dict[str, Callable[[list[Message], list[float], Sizes, int], Bill]] = {
    "no management": everything,
    "fold at 80 %": fold_at_threshold,
    "mask every turn": mask_every_turn,
    "ours": ours,
}


def cost(options: Options) -> list[Row]:
    """Weighted input tokens of all sessions by window and way, and how much of the input is a cached prefix."""
    rows: list[Row] = []
    with multiprocessing.Pool(options.jobs) as pool:
        alone = list(_sessions(options).values())
        plans: list[tuple[str, int, list[list[Message]]]] = [(f"{w // 1000}K", w, alone) for w in WINDOWS]
        chains = [_chained(alone[at : at + CHAIN]) for at in range(0, len(alone), CHAIN)]
        plans.append((f"200K, {CHAIN} in a row", 200_000, chains))
        for name, window, those in plans:
            bills = {way: Bill() for way in WAYS}
            for found in pool.imap_unordered(_bills, [(said, seed, window) for seed, said in enumerate(those)]):
                for way, bill in found.items():
                    bills[way] += bill
            rows += _rows(name, bills)
    return rows


def _rows(name: str, bills: dict[str, Bill]) -> Iterator[Row]:
    own = bills["ours"]
    for way, bill in bills.items():
        note = f"{bill.tokens / 1e6:.1f} M tokens in {bill.requests} requests, {bill.epochs} changes of the view"
        yield Row(f"{name}: {way}", bill.weighted / 1e6, "M weighted", note=note)
    folded = own.weighted / bills["fold at 80 %"].weighted
    yield Row(f"{name}: ours to a fold at 80 %", folded, "x", 1.0)
    yield Row(f"{name}: ours to no management", own.weighted / bills["no management"].weighted, "x", 1.0)
    live = own.between - own.lapsed
    share = 100 * own.between_cached / live if live else 100.0
    note = f"{100 * own.between_cached / max(1, own.between):.1f} % with pauses longer than the cache lives"
    yield Row(f"{name}: cached between epochs", share, "%", 90, at_least=True, note=note)


def _bills(job: tuple[list[Message], int, int]) -> dict[str, Bill]:
    said, seed, window = job
    times = _times(said, seed)
    return {name: way(said, times, _sizes(), window) for name, way in WAYS.items()}


_shared_sizes: list[Sizes] = []


def _sizes() -> Sizes:
    """One count of each text for all the work of a process."""
    if not _shared_sizes:
        _shared_sizes.append(Sizes(exact_counter()))
    return _shared_sizes[0]


def _sessions(options: Options) -> dict[str, list[Message]]:
    if options.data is not None:
        return sessions.recorded(options.data)
    return {f"made {seed}": list(islice(sessions.made(seed), 240)) for seed in range(12)}


def _chained(those: Iterable[list[Message]]) -> list[Message]:
    return [message for number, said in enumerate(those) for message in renamed(said, f"{number}-")]


def _times(said: list[Message], seed: int) -> list[float]:
    chance = random.Random(seed)
    now = 0.0
    times = []
    for message in said:
        if isinstance(message, UserMessage):
            now += chance.lognormvariate(4.5, 1.2)
        elif isinstance(message, AssistantMessage):
            now += chance.lognormvariate(2.1, 0.8)
        times.append(now)
    return times


def _requests(said: list[Message], times: list[float]) -> Iterator[tuple[int, float]]:
    """(how many messages a request holds, when it is sent): one before each answer."""
    for at, message in enumerate(said):
        if at and isinstance(message, AssistantMessage):
            yield at, times[at]


def _shared(keys: list[object], sent: list[object]) -> int:
    """How many parts two requests begin with alike."""
    for at, (one, other) in enumerate(zip(keys, sent, strict=False)):
        if one != other:
            return at
    return min(len(keys), len(sent))
