"""The first request stands above every summary: whatever is folded, the model knows what it is all about."""

from __future__ import annotations

import json
from typing import Literal

import msgspec
import pytest

from mycode.context.policy import Policy, Summary
from mycode.core.events import SummaryFinished
from mycode.core.messages import AssistantMessage, ContextNote, UserMessage
from mycode.core.summaries import SummaryRecord
from tests.context.test_past import past_of, row
from tests.support.context_doubles import Chat, Quarter, Script

AIM = "Teach the importer to read tables with merged cells.\nThe sample is in data/merged.xlsx."
ON_ONE_LINE = (
    "Asked first (m1): Teach the importer to read tables with merged cells. The sample is in data/merged.xlsx."
)
TOLD = json.dumps({"summary": "Something else was told."})


def summary_in(chat: Chat) -> str:
    return next(m.text for m in chat.manager.view() if isinstance(m, ContextNote) and m.source == "summary")


@pytest.mark.parametrize("strategy", ["rules", "llm", "hybrid"])
async def test_the_first_request_stands_above_each_summary_in_its_own_words(
    strategy: Literal["rules", "llm", "hybrid"],
) -> None:
    policy = Policy(summary=Summary(strategy=strategy))
    chat = Chat(200_000, policy=policy, models=[Script(TOLD)] * 3)
    chat.say(AIM, AssistantMessage("On it."))
    for _ in range(3):
        chat.turns(12, size=2_000)
        await chat.fold()
        paragraphs = summary_in(chat).split("\n\n")
        named = [line for line in "\n".join(paragraphs).split("\n") if line.startswith("Named by the person")]
        assert (paragraphs[1], [line for line in named if "merged" in line]) == (ON_ONE_LINE, [])
    assert chat.again(200_000, policy).manager.view() == chat.manager.view()


async def test_a_long_request_is_shown_by_its_beginning_in_an_eighth_of_the_room() -> None:
    limit = 1_600
    chat = Chat(200_000, policy=Policy(summary=Summary(strategy="rules", max_summary_tokens=limit)))
    chat.say(AIM + " And this, too." * 2_000, AssistantMessage("On it."))
    chat.turns(12, size=2_000)
    await chat.fold()

    aim = summary_in(chat).split("\n\n")[1]

    assert (aim.startswith(ON_ONE_LINE), aim.endswith(" …")) == (True, True)
    assert Quarter().count(aim) <= limit // 8 + 20
    assert Quarter().count(summary_in(chat)) <= limit


async def test_a_secret_in_the_request_is_masked_above_the_summary_and_nowhere_cut_in_two() -> None:
    chat = Chat(200_000, redact=lambda text: text.replace("hunter2hunter2", "[masked]"))
    chat.say("Log in with hunter2hunter2 and count the rows of each table.", AssistantMessage("On it."))
    chat.turns(12, size=2_000)
    await chat.fold()

    assert summary_in(chat).split("\n\n")[1] == (
        "Asked first (m1): Log in with [masked] and count the rows of each table."
    )


async def test_a_request_that_stays_whole_as_the_newest_prompt_is_not_told_twice() -> None:
    chat = Chat(200_000)
    chat.say(AIM)
    chat.say(*(AssistantMessage(f"Step {n}. " + "Looking around. " * 60) for n in range(30)))
    await chat.fold()

    assert UserMessage(AIM) in chat.manager.view()
    assert "Asked first" not in summary_in(chat)


async def test_a_request_that_was_left_out_by_hand_is_not_brought_back() -> None:
    chat = Chat(200_000)
    chat.say(AIM, AssistantMessage("On it."))
    chat.turns(12, size=2_000)
    chat.log.write(chat.manager.drop([1]).entry)
    await chat.fold()

    assert "merged" not in summary_in(chat)


async def test_the_record_points_to_the_request_and_does_not_repeat_it() -> None:
    chat = Chat(200_000)
    request = " ".join([AIM, *(f"Cell number {n} is merged." for n in range(20))])
    chat.say(request, AssistantMessage("On it."))
    chat.turns(12, size=2_000)
    finished = next(event for event in await chat.fold() if isinstance(event, SummaryFinished))
    record = finished.entry.body

    assert isinstance(record, SummaryRecord)
    assert record.context.raw is not None
    assert record.context.raw["aim"] == [1, len(" ".join(request.split()))]
    assert "Cell number 12" not in msgspec.json.encode(record).decode()


def test_the_first_prompt_and_the_newest_are_held_with_what_is_not_folded() -> None:
    past, _ = past_of(9)
    past.hold(7, carried=5, aim=1)
    assert past.rows == [row(1), row(5), row(7), row(8), row(9)]
    past.hold(8, carried=1, aim=1)
    assert past.rows == [row(1), row(8), row(9)]
