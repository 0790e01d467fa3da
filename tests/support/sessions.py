"""A session on a real store with the real context engine, and turns that play a script."""

from collections.abc import AsyncGenerator, Callable
from itertools import count
from pathlib import Path

from mycode.context.manager import ContextManager
from mycode.context.policy import Policy
from mycode.core.events import Event, MessageAdded, TurnEnded, TurnStarted
from mycode.core.messages import AssistantMessage, Message, UserMessage
from mycode.core.redact import redact
from mycode.core.usage import Usage
from mycode.session.archive import SessionArchive
from mycode.session.parts import Checkpointer
from mycode.session.purging import Rule
from mycode.session.session import Session
from mycode.session.store import Store
from tests.support.context_doubles import Quarter, model_info

Turn = Callable[[ContextManager], AsyncGenerator[Event]]

SPENT = Usage(100, 10, cost_usd=0.5)


class Desk:
    """One person at work: a store, a session in it, and the turns that will be played, one a prompt."""

    def __init__(
        self,
        folder: Path,
        *turns: Turn,
        session_id: str | None = None,
        checkpointer: Checkpointer | None = None,
        window: int = 200_000,
        purge: Rule | None = None,
    ) -> None:
        self.store = Store(folder)
        self.now = 1000.0
        ids = count(1)
        self.turns = list(turns)
        self.context = ContextManager(
            policy=Policy(),
            counter=Quarter(),
            info=model_info(window),
            system="You help.",
            clock=lambda: self.now,
            new_id=lambda: f"id{next(ids)}",
        )
        session_id = session_id or self.store.create(cwd="/work", model="model")
        self.archive = SessionArchive(self.store, session_id)
        self.session = Session(
            store=self.store,
            session_id=session_id,
            context=self.context,
            run=self.run,
            clock=lambda: self.now,
            redact=redact,
            checkpointer=checkpointer,
            archive=self.archive,
            purge=purge,
        )

    async def run(self, prompt: UserMessage, turn: int) -> AsyncGenerator[Event]:
        yield TurnStarted(turn)
        yield MessageAdded(self.context.append(prompt))
        play = self.turns.pop(0) if self.turns else says("fine")
        async for event in play(self.context):
            yield event
        yield TurnEnded("done", SPENT, 1)

    async def prompt(self, text: str) -> list[Event]:
        return [event async for event in self.session.prompt(text)]


def says(*messages: Message | str) -> Turn:
    """A turn in which these messages are added; a text is an answer that cost `SPENT`."""

    async def turn(context: ContextManager) -> AsyncGenerator[Event]:
        for message in messages:
            said = AssistantMessage(message, model="model", usage=SPENT) if isinstance(message, str) else message
            yield MessageAdded(context.append(said))

    return turn
