"""A workplace: one session with everything around it, from its first prompt to the day it is gone on with."""

from pathlib import Path

import msgspec
import pytest

from mycode.cli.chat_services import ChatServices
from mycode.cli.wiring import Workplace
from mycode.core.errors import SessionError
from mycode.core.events import ContextMasked, Event, SummaryFinished, TurnEnded
from mycode.core.messages import ToolCall, ToolResult
from mycode.core.models import ModelInfo, ModelRequest
from mycode.core.summaries import MaskEpoch, SummaryRecord
from mycode.llm.scripted import Failure, Reply, ScriptedModel
from mycode.render.numbers import tokens
from mycode.render.panels.audit import audit_panel
from mycode.render.screen import Canvas
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
    here = place(model, settings=("context.originals.policy=purge",))
    await ask(here, "hello")
    here.store.database.close()

    with pytest.raises(SessionError):
        await here.aclose()

    assert model.closed
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


async def test_old_tool_results_are_masked_told_of_kept_and_given_back_whole(place: Place, workspace: Path) -> None:
    text = "".join(f"value_{number} = {number}\n" for number in range(700))
    (workspace / "a.py").write_text(text)

    def answer(request: ModelRequest) -> Reply:
        if isinstance(request.messages[-1], ToolResult):
            return Reply("I have read it.")
        return Reply(calls=(ToolCall("", "read_file", '{"path": "a.py"}'),))

    def model() -> ScriptedModel:
        return ScriptedModel(answer, ModelInfo("test/scripted", "test", 40_000, 1_000))

    here = place(model(), settings=("context.precompute.enabled=false",))
    events: list[Event] = []
    while not any(isinstance(event, ContextMasked) for event in events) and len(events) < 400:
        events += await ask(here, "read a.py again")
    masked = next(event for event in events if isinstance(event, ContextMasked))
    epoch = masked.entry.body
    assert isinstance(epoch, MaskEpoch)
    assert epoch.trigger == "ratio"
    assert (masked.tokens_before, masked.tokens_after) == (epoch.tokens_before, epoch.tokens_after)
    assert masked.tokens_after < masked.tokens_before // 2
    assert not any(isinstance(event, SummaryFinished) for event in events)

    first = min(epoch.stubs)
    assert epoch.stubs[first].startswith("[✓ read_file: File: a.py | Lines: 700 | Type: python")
    assert epoch.metadata[first]["lines"] == 700
    assert [entry for entry in here.session.history(audit=True) if entry.body == epoch] == [masked.entry]
    assert here.session.usage().masked == len(epoch.stubs)
    assert "value_699 = 699" in here.session.expand(f"m{first}")
    again = place(model(), resume=await leave(here))
    sent = {message.text for message in again.context.fit()}
    assert set(epoch.stubs.values()) <= sent
    assert again.session.usage().masked == len(epoch.stubs)
    await leave(again)


async def test_the_audit_tells_every_change_of_the_view_who_made_it_and_what_it_brought(place: Place) -> None:
    here = place(scripted(200_000, 2_000))
    await ask(here, *(f"prompt {number}" for number in range(8)))
    session = here.session
    session.drop([2])
    session.restore([2])
    session.shrink([4])
    session.pin("m1")
    pin = session.pin("use tabs").entry.seq
    session.unpin("2")
    events = [event async for event in session.summarize(strategy="rules")]
    record = next(event.entry for event in events if isinstance(event, SummaryFinished))
    session.undo()
    rows = list(session.history(audit=True))
    shown = Canvas(300, plain=True).text(audit_panel(rows, width=300, plain_text=True)).splitlines()
    told = [line.split(maxsplit=3)[3] for line in shown if line]
    changes = [text for text in told if "message " not in text.split(",")[0] and "turn" not in text.split(",")[0]]
    size = {entry.seq: tokens(entry.tokens) for entry in rows}
    body = record.body
    assert isinstance(body, SummaryRecord)
    summary = f"summary of m{body.covers[0]}-m{body.covers[1]} ({len(body.message_ids)} messages), rules, depth 0"
    before, after = tokens(body.tokens_before), tokens(body.tokens_after)
    assert [text.rpartition(", sha256 ")[0] for text in changes] == [
        f"left out m2, by hand, {size[2]} tokens",
        f"restored m2, by hand, {size[2]} tokens",
        f"shortened m4, by hand, {size[4]} tokens",
        "pinned m1: “prompt 0”, by hand",
        "pinned “use tabs”, by hand",
        f"undone: row {pin}, pinned “use tabs”, by hand",
        f"{summary}, by hand, {before} → {after} tokens",
        f"undone: row {record.seq}, {summary}, by hand, {after} → {before} tokens as of then",
    ]
    assert [line.split()[0] + line.rpartition(" ")[2] for line in shown if line] == [
        f"{entry.seq}{entry.sha256[:12]}" for entry in rows
    ]
    await leave(here)
