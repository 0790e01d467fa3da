"""What a session is put together from, as it sees it: context engine, turns, checkpoints."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Protocol

from mycode.core.entries import Body, Entry, Log
from mycode.core.events import ContextChanged, Event
from mycode.core.messages import Message, ToolCall, UserMessage, ViewMessage
from mycode.core.summaries import ContextUsage, Strategy, Trigger, TriggerReason

RunTurn = Callable[[UserMessage, int], AsyncGenerator[Event]]
Redact = Callable[[str], str]


class Context(Protocol):
    """The conversation as the model sees it; it numbers every entry and writes none. `ContextManager` is one."""

    def restore(self, log: Log) -> None: ...

    def append(self, message: Message) -> Entry: ...

    def note(self, body: Body) -> Entry: ...

    def view(self) -> tuple[ViewMessage, ...]: ...

    def usage(self) -> ContextUsage: ...

    def due(self, reason: TriggerReason | None = None) -> Trigger | None: ...

    def summarize(
        self,
        trigger: Trigger,
        *,
        focus: str = "",
        strategy: Strategy | None = None,
        first: int | None = None,
        last: int | None = None,
        keep: int | None = None,
        preview: bool = False,
        rebase: bool = False,
    ) -> AsyncIterator[Event]: ...

    def undo(self) -> ContextChanged | None: ...

    def drop(self, seqs: Sequence[int]) -> ContextChanged: ...

    def shrink(self, seqs: Sequence[int]) -> ContextChanged: ...

    def restore_items(self, seqs: Sequence[int]) -> ContextChanged: ...

    def pin(self, what: str | int) -> ContextChanged: ...

    def pins(self) -> tuple[str, ...]: ...

    def unpin(self, number: int) -> ContextChanged: ...


class Checkpointer(Protocol):
    """Keeps the state of the workspace from before a turn changed it."""

    async def before(self, call: ToolCall, turn: int) -> str | None:
        """Told of every call before it runs; the id of a checkpoint just made, None when none was needed."""
        ...

    def opened(self, session_id: str) -> None:
        """Told which session is kept from now on."""
        ...

    async def settle(self) -> None:
        """Told after a turn that took a checkpoint: what differs later was changed by somebody else."""
        ...
