"""Stand-ins for what the context engine is handed: a counter, a log in memory, a clock, models that play a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from itertools import count

from mycode.context.manager import ContextManager
from mycode.context.policy import Policy
from mycode.core.entries import Entry
from mycode.core.events import (
    ContextChanged,
    ContextMasked,
    Event,
    ReasoningDelta,
    Retrying,
    SummaryFinished,
    TextDelta,
)
from mycode.core.messages import AssistantMessage, Message, ToolCall, ToolResult, UserMessage
from mycode.core.models import Model, ModelInfo, ModelRequest, TokenCounter
from mycode.core.summaries import Trigger

DEFAULTS = Policy()


class Quarter:
    """Counts a token per four characters, rounded up: exact by decree."""

    exact = True

    def count(self, text: str) -> int:
        return (len(text) + 3) // 4


class MemoryLog:
    """The rows of a session in a list; remembers which of them were read."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entries = list(entries)
        self.was_read: list[int] = []

    def write(self, entry: Entry) -> Entry:
        assert entry.seq == self.last_seq() + 1, "the log is gapless"
        self.entries.append(entry)
        return entry

    def read(self, start: int, stop: int | None = None) -> Iterable[Entry]:
        for entry in self.entries:
            if start <= entry.seq and (stop is None or entry.seq < stop):
                self.was_read.append(entry.seq)
                yield entry

    def overlays(self, undone: Collection[int] = ()) -> Iterable[Entry]:
        del undone  # nothing is left out
        return [entry for entry in self.entries if entry.message is None]

    def last_seq(self) -> int:
        return self.entries[-1].seq if self.entries else 0

    def tokens(self, start: int, stop: int | None = None) -> int:
        return sum(e.tokens for e in self._between(start, stop))

    def messages(self, start: int, stop: int | None = None) -> int:
        return sum(1 for e in self._between(start, stop) if e.message is not None)

    def _between(self, start: int, stop: int | None) -> list[Entry]:
        return [e for e in self.entries if start <= e.seq and (stop is None or e.seq < stop)]


class Script:
    """A model that answers with prepared texts or errors, one a request, and keeps the requests it saw."""

    def __init__(
        self, *answers: str | AssistantMessage | Exception, window: int = 200_000, name: str = "script"
    ) -> None:
        self._answers = list(answers)
        self._info = model_info(window, name=name)
        self.requests: list[ModelRequest] = []

    @property
    def info(self) -> ModelInfo:
        return self._info

    async def stream(
        self, request: ModelRequest
    ) -> AsyncIterator[TextDelta | ReasoningDelta | Retrying | AssistantMessage]:
        self.requests.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        message = answer if isinstance(answer, AssistantMessage) else AssistantMessage(answer)
        yield TextDelta(message.text)
        yield message

    async def aclose(self) -> None:
        pass


class Chat:
    """A manager with its log, driven by short sentences."""

    def __init__(
        self,
        window: int = 200_000,
        *,
        policy: Policy = DEFAULTS,
        models: Sequence[Model] = (),
        memory: Callable[[], str] = lambda: "",
        system: str = "You help.",
        log: MemoryLog | None = None,
        redact: Callable[[str], str] = lambda text: text,
        counter: TokenCounter | None = None,
    ) -> None:
        self.log = log if log is not None else MemoryLog()
        self.now = 1000.0
        ids = count(self.log.last_seq() + 1)
        self.manager = ContextManager(
            policy=policy,
            counter=counter or Quarter(),
            info=model_info(window),
            system=system,
            tools=(),
            summarizer=lambda: models,
            memory=memory,
            clock=lambda: self.now,
            new_id=lambda: f"id{next(ids)}",
            redact=redact,
            check=True,
        )
        self.manager.restore(self.log)

    def say(self, *messages: Message | str) -> None:
        for message in messages:
            self.log.write(self.manager.append(UserMessage(message) if isinstance(message, str) else message))

    def turns(self, number: int, size: int = 400) -> None:
        """So many turns of four messages: a question, a call, its result of `size` characters, an answer."""
        for _ in range(number):
            n = self.log.last_seq() + 1
            self.say(
                UserMessage(f"Question {n}: what does module_{n} do?"),
                call(f"c{n}", "read_file", f'{{"path": "src/module_{n}.py"}}'),
                ToolResult(f"c{n}", f"def function_{n}():\n" + "x = 1\n" * (size // 6)),
                AssistantMessage(f"It defines function_{n} in src/module_{n}.py."),
            )

    async def fold(self, trigger: Trigger | None = None, **options: object) -> list[Event]:
        events = []
        async for event in self.manager.summarize(trigger or manual(), **options):  # type: ignore[arg-type]  # as given
            if isinstance(event, SummaryFinished | ContextMasked | ContextChanged) and event.entry.seq:
                self.log.write(event.entry)
            events.append(event)
        return events

    def undo(self) -> ContextChanged | None:
        changed = self.manager.undo()
        if changed is not None:
            self.log.write(changed.entry)
        return changed

    def again(self, window: int | None = None, policy: Policy = DEFAULTS) -> Chat:
        """The same conversation, taken up from its log by a new manager."""
        return Chat(window or self.manager.usage().window, policy=policy, log=MemoryLog(self.log.entries))


async def settled() -> None:
    """Until whatever runs in the background, such as a summary in preparation, has ended."""
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))


def manual() -> Trigger:
    return Trigger("manual", 0.5, 1000)


def call(call_id: str, name: str, arguments: str = "{}", text: str = "") -> AssistantMessage:
    return AssistantMessage(text, (ToolCall(call_id, name, arguments),), finish="tool_calls")


def model_info(window: int, *, name: str = "model", output_limit: int = 4096) -> ModelInfo:
    return ModelInfo(name, "test", window, output_limit)
