"""A workplace: one session with everything around it, from its first prompt to the day it is gone on with."""

import msgspec
import pytest

from mycode.cli.chat_services import ChatServices
from mycode.cli.wiring import Workplace
from mycode.core.errors import SessionError
from mycode.core.events import ContextMasked, Event, SummaryFinished, TurnEnded
from mycode.core.models import ModelInfo
from mycode.core.summaries import MaskEpoch, SummaryRecord
from mycode.llm.scripted import Failure, Reply, ScriptedModel
from tests.cli.conftest import Place
from tests.support.context_doubles import Script
from tests.support.script import say
from tests.support.scripted_server import serving


class Closing(Script):
    """Tells whether it was closed."""

    closed = False

    async def aclose(self) -> None:
        self.closed = True


def scripted(window: int, chars: int = 12_000) -> ScriptedModel:
    """Answers everything at the same length, summaries too."""
    info = ModelInfo("test/scripted", "test", window, 1_000)
    return ScriptedModel(lambda request: Reply("word " * (chars // 5) if request.tools else "no summary"), info)


async def ask(place: Workplace, *prompts: str) -> list[Event]:
    return [event for prompt in prompts async for event in place.session.prompt(prompt)]


async def leave(place: Workplace) -> str:
    name = place.session.id
    await place.aclose()
    place.run.close()
    return name


def reasons(events: list[Event]) -> set[str | None]:
    """Why the view was changed by itself, as the log keeps it."""
    bodies = [event.entry.body for event in events if isinstance(event, SummaryFinished | ContextMasked)]
    return {body.trigger for body in bodies if isinstance(body, SummaryRecord | MaskEpoch)}


def size(request: object) -> int:
    """About how many tokens a request holds: a word of the answers is one."""
    return len(msgspec.json.encode(request)) // 5


async def test_the_model_is_closed_even_if_the_session_cannot_be(place: Place) -> None:
    model = Closing("never")
    here = place(model)
    here.store.database.close()

    with pytest.raises(SessionError):
        await here.aclose()

    assert model.closed
    with pytest.raises(SessionError):
        here.run.close()


async def test_a_conversation_gone_on_with_in_a_smaller_window_fits_and_says_why(place: Place) -> None:
    first = place(scripted(200_000))
    assert reasons(await ask(first, *(f"prompt {n}" for n in range(14)))) == set()
    name = await leave(first)

    model = scripted(16_000, 500)
    again = place(model, resume=name)
    assert again.session.usage().window == 16_000
    events = await ask(again, "go on", "and on")

    assert reasons(events) == {"resume"}
    assert [event.reason for event in events if isinstance(event, TurnEnded)] == ["done", "done"]
    assert max(size(request) for request in model.requests if request.tools) < 16_000
    await leave(again)


async def test_a_conversation_gone_on_with_in_the_same_window_is_left_as_it_is(place: Place) -> None:
    first = place(scripted(200_000))
    await ask(first, "one", "two")
    again = place(scripted(200_000), resume=await leave(first))
    assert reasons(await ask(again, "three")) == set()
    await leave(again)


async def test_a_window_smaller_than_was_thought_is_known_at_the_next_start(place: Place) -> None:
    info = ModelInfo("test/scripted", "test", 200_000, 1_000)
    refused = Reply(error=Failure("ContextOverflow", "Too long.", limit=9_000))
    here = place(ScriptedModel([refused, Reply("Now it fits.")], info))
    assert [event.reason for event in await ask(here, "hello") if isinstance(event, TurnEnded)] == ["done"]
    await leave(here)

    again = place(ScriptedModel([], info))
    assert again.session.usage().window == 9_000
    await leave(again)
    unkept = place(ScriptedModel([], info), persist=False)
    assert unkept.session.usage().window == 200_000
    await leave(unkept)


async def test_a_switch_to_a_model_with_a_smaller_window_fits_and_says_why(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving([say("word " * 2_400)] * 14 + [say("Fine.")] * 4) as server:
        monkeypatch.setenv("MYCODE_API_BASE", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "test-key")
        here = place(model="openai/gpt-4o")
        await ask(here, *(f"prompt {n}" for n in range(14)))
        told = await ChatServices(here).switch_model("openai/gpt-4")
        events = await ask(here, "go on", "and on")
        sent = [size(seen.body) for seen in server.asked[14:]]
        await leave(here)

    assert told.startswith("Now talking to openai/gpt-4 (window 8,192 tokens). The conversation fills 4")
    assert told.endswith("% of its window; it is made to fit before the next request.")
    assert reasons(events) == {"model_switch"}
    assert [event.reason for event in events if isinstance(event, TurnEnded)] == ["done", "done"]
    assert max(sent) < 8_192
