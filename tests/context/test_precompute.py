import asyncio
import json
from collections.abc import AsyncIterator

from mycode.context.policy import Masking, Policy, Summary
from mycode.core.events import SummaryFinished
from mycode.core.messages import AssistantMessage
from mycode.core.models import ModelRequest
from mycode.core.summaries import SummaryRecord, Trigger
from tests.support.context_doubles import Chat, Script, settled

POLICY = Policy(summary=Summary(strategy="llm"), masking=Masking(enabled=False))
ANSWER = json.dumps({"summary": "Prepared ahead."})


def nearly_full(model: Script) -> Chat:
    chat = Chat(40_000, policy=POLICY, models=[model])
    while chat.manager.usage().ratio < 0.66:
        chat.turns(1, size=4_000)
    return chat


async def fill_and_fold(chat: Chat) -> SummaryRecord:
    while (trigger := chat.manager.due()) is None:
        chat.turns(1, size=4_000)
    events = await chat.fold(trigger)
    record = next(e.entry.body for e in events if isinstance(e, SummaryFinished))
    assert isinstance(record, SummaryRecord)
    return record


async def test_a_summary_prepared_ahead_is_laid_without_asking_again():
    model = Script(ANSWER)
    chat = nearly_full(model)
    assert chat.manager.precompute()
    await settled()
    record = await fill_and_fold(chat)
    assert len(model.requests) == 1
    assert record.narrative.startswith("Prepared ahead.")


async def test_below_the_ratio_nothing_is_prepared():
    model = Script(ANSWER)
    chat = Chat(40_000, policy=POLICY, models=[model])
    chat.turns(3, size=4_000)
    assert not chat.manager.precompute()


async def test_only_one_preparation_runs_and_the_same_past_is_prepared_once():
    model = Script(ANSWER)
    chat = nearly_full(model)
    assert chat.manager.precompute()
    assert not chat.manager.precompute()
    await settled()
    assert not chat.manager.precompute()
    chat.say("And more.")
    assert not chat.manager.precompute()
    assert len(model.requests) == 1


async def test_a_change_of_the_past_makes_what_was_prepared_worthless():
    model = Script(ANSWER)
    chat = nearly_full(model)
    chat.manager.precompute()
    await settled()
    chat.log.write(chat.manager.drop([1]).entry)
    await fill_and_fold(chat)
    assert len(model.requests) == 2


async def test_a_prepared_summary_that_is_put_off_is_there_when_it_is_wanted_again():
    model = Script(ANSWER)
    chat = nearly_full(model)
    assert chat.manager.precompute()
    answers = [False, True]

    async def may_fold(_: Trigger) -> bool:
        return answers.pop(0)

    chat.manager.ask_before(may_fold)
    while (trigger := chat.manager.due()) is None:
        chat.turns(1, size=4_000)
    put_off = await chat.fold(trigger)
    record = await fill_and_fold(chat)
    assert [type(event).__name__ for event in put_off] == ["SummaryStarted", "Warned"]
    assert (answers, len(model.requests)) == ([], 1)
    assert record.narrative.startswith("Prepared ahead.")


class Hanging(Script):
    """A model that never answers; tells when it was asked and when it was let go."""

    def __init__(self) -> None:
        super().__init__("")
        self.asked, self.gone = asyncio.Event(), asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[AssistantMessage]:  # type: ignore[override]  # no deltas
        self.asked.set()
        try:
            await asyncio.Event().wait()
            yield AssistantMessage("never")
        finally:
            self.gone.set()


async def test_a_preparation_can_be_cancelled():
    model = Hanging()
    chat = nearly_full(model)
    assert chat.manager.precompute()
    await model.asked.wait()
    chat.manager.cancel_precompute()
    await model.gone.wait()


async def test_a_preparation_that_fails_costs_nothing():
    model = Script("no json", ANSWER)
    chat = nearly_full(model)
    chat.manager.precompute()
    await settled()
    record = await fill_and_fold(chat)
    assert record.strategy == "llm"


class Slow(Script):
    """A model that answers when it is allowed to."""

    def __init__(self, answer: str) -> None:
        super().__init__(answer)
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[AssistantMessage]:  # type: ignore[override]  # no deltas
        self.requests.append(request)
        self.asked.set()
        await self.go.wait()
        yield AssistantMessage(ANSWER)


async def test_a_trigger_waits_for_a_preparation_that_is_under_way():
    model = Slow(ANSWER)
    chat = nearly_full(model)
    chat.manager.precompute()
    await model.asked.wait()
    folding = asyncio.create_task(fill_and_fold(chat))
    model.go.set()
    record = await folding
    assert len(model.requests) == 1
    assert record.narrative.startswith("Prepared ahead.")


async def test_a_summary_told_over_a_view_that_changed_meanwhile_is_not_used():
    model = Slow(ANSWER)
    chat = nearly_full(model)
    folding = asyncio.create_task(chat.fold())
    await model.asked.wait()
    chat.log.write(chat.manager.drop([1]).entry)
    before = chat.manager.view()
    model.go.set()
    events = await folding
    assert not any(isinstance(event, SummaryFinished) for event in events)
    assert chat.manager.view() == before


async def test_what_is_said_while_a_summary_is_written_is_kept():
    model = Slow(ANSWER)
    chat = nearly_full(model)
    folding = asyncio.create_task(chat.fold())
    await model.asked.wait()
    chat.say("And one more thing.")
    model.go.set()
    assert any(isinstance(event, SummaryFinished) for event in await folding)
    assert chat.manager.view()[-1].text == "And one more thing."


async def test_a_manager_can_take_up_another_conversation():
    chat = nearly_full(Script(ANSWER))
    await chat.fold()
    other = Chat(40_000)
    other.say("Something else.", AssistantMessage("Yes."))
    chat.manager.restore(other.log)
    assert chat.manager.view() == other.manager.view()
    assert chat.manager.append(AssistantMessage("x")).seq == 3
