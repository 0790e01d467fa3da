"""A session that plays events from a script instead of asking a model."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing

from mycode.context.forecast import Forecast
from mycode.core.checkpoints import Rewinder
from mycode.core.entries import Entry, Note
from mycode.core.errors import SessionError
from mycode.core.events import (
    ContextChanged,
    Event,
    MessageAdded,
    SummaryFinished,
    SummaryStarted,
    TurnEnded,
    TurnStarted,
)
from mycode.core.messages import AssistantMessage, Image, UserMessage
from mycode.core.models import ModelRequest
from mycode.core.summaries import (
    Category,
    ContextUsage,
    Strategy,
    SummaryContext,
    SummaryRecord,
    Trigger,
    TriggerDistance,
    Verification,
)
from mycode.core.tools import Mode
from mycode.core.usage import Usage
from mycode.repl.services import ModelChoice, SessionChoice

AT = 1_763_700_000.0
Script = Callable[["ScriptedSession", str], AsyncGenerator[Event]]


class ScriptedSession:
    """Each prompt plays the next script; without one the answer is the prompt, said again."""

    def __init__(self, *scripts: Script) -> None:
        self.id = "abc123"
        self.title = "a talk"
        self.prompts: list[str] = []
        self.checkpoints: dict[int, str] = {}
        self.log: list[Entry] = []
        self.done: list[str] = []
        self.records: list[Entry] = []
        self._scripts = list(scripts)

    async def prompt(self, text: str, images: tuple[Image, ...] = ()) -> AsyncGenerator[Event]:
        self.prompts.append(text)
        script = self._scripts.pop(0) if self._scripts else say_it_again
        yield TurnStarted(len(self.prompts))
        yield MessageAdded(self.add(UserMessage(text)))
        async with aclosing(script(self, text)) as events:
            async for event in events:
                yield event
        yield TurnEnded("done", Usage(100, 10, cost_usd=0.001), 1, 0.5)

    async def summarize(
        self,
        focus: str = "",
        *,
        strategy: Strategy | None = None,
        preview: bool = False,
        first: int | None = None,
        last: int | None = None,
        keep: int | None = None,
        rebase: bool = False,
    ) -> AsyncGenerator[Event]:
        yield SummaryStarted(Trigger("manual", 0.5, 5000), len(self.log))
        record = SummaryRecord(
            id="r1",
            at=AT,
            covers=(1, 30),
            depth=1,
            strategy=strategy or "rules",
            trigger="manual",
            narrative="The parser was rewritten.",
            focus=focus,
            key_points=("Parser rewrite",),
            context=SummaryContext(decisions=("will use a table",)),
            files_modified=("src/parser.py",),
            tokens_before=5000,
            tokens_after=1500,
            verification=Verification(1.0, 0.98),
        )
        entry = Entry(0 if preview else len(self.log) + 1, "e", AT, record)
        if not preview:
            self.records.append(entry)
        yield SummaryFinished(entry, 0.1)

    def undo(self) -> ContextChanged:
        if not self.records:
            message = "There is nothing to undo."
            raise SessionError(message)
        self.records.pop()
        return self._changed("The summary of m1-m30 is taken back.")

    def drop(self, seqs: Sequence[int], *, shrink: bool = False) -> ContextChanged:
        return self._changed(f"{'shrunk' if shrink else 'dropped'} {list(seqs)}")

    def restore(self, seqs: Sequence[int]) -> ContextChanged:
        return self._changed(f"restored {list(seqs)}")

    def pin(self, what: str) -> ContextChanged:
        return self._changed(f"pinned {what}")

    def unpin(self, what: str) -> ContextChanged:
        return self._changed(f"unpinned {what}")

    def pins(self) -> tuple[str, ...]:
        return tuple(text.removeprefix("pinned ") for text in self.done if text.startswith("pinned "))

    def usage(self) -> ContextUsage:
        return ContextUsage(
            model="test/model",
            window=100_000,
            reserve=8_000,
            tokens=34_000,
            categories=(Category("system", 4_000, 1), Category("user", 10_000, 5), Category("tool results", 20_000, 9)),
            triggers=(TriggerDistance("ratio", 0.34, 0.8, "ratio"),),
            messages=max(1, len(self.log)),
            exact=False,
        )

    def cost(self) -> Usage:
        return Usage(12_000, 300, cost_usd=0.0123)

    def costs(self) -> dict[str, Usage]:
        return {"test/model": self.cost()}

    def history(
        self,
        *,
        first: int | None = None,
        last: int | None = None,
        newest: int | None = None,
        grep: str = "",
        audit: bool = False,
    ) -> Iterator[Entry]:
        found = [
            entry
            for entry in self.log
            if entry.message is not None
            and grep in entry.message.text
            and (first or 0) <= entry.seq <= (last or entry.seq)
        ]
        return iter(found[-newest:] if newest else found)

    def undone(self) -> frozenset[int]:
        return frozenset()

    def summaries(self) -> tuple[Entry, ...]:
        return tuple(self.records)

    def expand(self, handle: str) -> str:
        if handle != "m1":
            message = f"There is no {handle}."
            raise SessionError(message)
        return "the original"

    def rename(self, title: str) -> None:
        self.title = title

    def clear(self) -> str:
        self.log, self.records = [], []
        self.id = "def456"
        return self.id

    def resume(self, name: str) -> str:
        if name != "abc123":
            message = f"There is no session {name}."
            raise SessionError(message)
        self.id = name
        return name

    def checkpoint_before(self, seq: int) -> str | None:
        return self.checkpoints.get(seq)

    def check_rewind(self, seq: int) -> None:
        assert seq <= len(self.log) + 1

    def rewind(self, seq: int) -> str:
        self.log = self.log[: seq - 1]
        return self.id

    def add(self, message: UserMessage | AssistantMessage) -> Entry:
        entry = Entry(len(self.log) + 1, f"id{len(self.log) + 1}", AT + len(self.log), message, tokens=10)
        self.log.append(entry)
        return entry

    def _changed(self, text: str) -> ContextChanged:
        self.done.append(text)
        return ContextChanged(Entry(len(self.log) + 1, "c", AT, Note("changed")), text)


class ScriptedServices:
    """Remembers what it was asked to do."""

    def __init__(self) -> None:
        self.model_name = "test/model"
        self.mode: Mode = "default"
        self.done: list[str] = []
        self.rewinder: Rewinder | None = None

    def forecast(self) -> Forecast:
        return Forecast(7, 0.034, 0.1, 0.3)

    def next_request(self) -> ModelRequest:
        return ModelRequest("Be brief.", (UserMessage("hi"),))

    def set_mode(self, mode: Mode) -> None:
        self.mode = mode

    def permissions(self) -> Sequence[str]:
        return ("allow Bash(git status)",)

    def models(self) -> Sequence[ModelChoice]:
        return (ModelChoice("test/model"), ModelChoice("test/other", "cheap"))

    async def switch_model(self, name: str) -> str:
        self.model_name = name
        return f"From now on {name} answers."

    def settings(self) -> Sequence[tuple[str, str, str]]:
        return (
            ("model.name", "test/model", "command line"),
            ("repl.vi", "false", "default"),
            ("repl.plain", "false", "default"),
        )

    def sessions(self) -> Sequence[SessionChoice]:
        return (SessionChoice("abc123", "a talk", AT, 3),)

    def export(self, path: str, form: str) -> str:
        self.done.append(f"export {path} {form}")
        return path or f"talk.{form}"

    def init_prompt(self) -> str:
        return "Look at this project and write AGENTS.md."


async def say_it_again(session: ScriptedSession, text: str) -> AsyncGenerator[Event]:
    yield MessageAdded(session.add(AssistantMessage(f"You said: {text}")))


def answer(text: str) -> Script:
    """A script that answers with this text, whole."""

    async def script(session: ScriptedSession, _: str) -> AsyncGenerator[Event]:
        yield MessageAdded(session.add(AssistantMessage(text)))

    return script


def wait_for(gate: Callable[[], Awaitable[object]], *events: Event) -> Script:
    """A script that plays events and then waits at the gate."""

    async def script(session: ScriptedSession, text: str) -> AsyncGenerator[Event]:
        for event in events:
            yield event
        await gate()
        async with aclosing(say_it_again(session, text)) as rest:
            async for event in rest:
                yield event

    return script


async def forever() -> None:
    await asyncio.Event().wait()
