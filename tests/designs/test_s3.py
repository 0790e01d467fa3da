"""The fourth design document: ratio with hysteresis, structured summaries in a chain, guards, and safe failure."""

import hashlib
import json
import re
from collections.abc import AsyncIterator

import msgspec
import pytest

from mycode.context.policy import Policy
from mycode.core.errors import ConfigError, Unavailable
from mycode.core.events import Event, ReasoningDelta, Retrying, SummaryFinished, SummaryStarted, TextDelta, Warned
from mycode.core.messages import AssistantMessage, ContextNote, ToolResult, UserMessage
from mycode.core.models import ModelRequest
from mycode.core.redact import redact
from mycode.core.summaries import ActionItem, SummaryRecord
from tests.designs.profiles import profile
from tests.support.context_doubles import Chat, Script, call

StreamItem = TextDelta | ReasoningDelta | Retrying | AssistantMessage
S3 = profile("S3")
KEY = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
FAST = profile("S3", "llm.backoff_seconds=0.0")
EMPTY: dict[str, object] = {
    "key_points": [],
    "decisions": [],
    "action_items": [],
    "unresolved": [],
    "entities": [],
    "participants": [],
    "resolved": [],
}


def answer(summary: str, **parts: object) -> str:
    return json.dumps(EMPTY | {"summary": summary} | parts)


def record_of(events: list[Event]) -> SummaryRecord:
    body = next(event.entry.body for event in events if isinstance(event, SummaryFinished))
    assert isinstance(body, SummaryRecord)
    return body


def chat_with(*answers: object, window: int = 20_000, policy: Policy = FAST) -> tuple[Chat, Script]:
    model = Script(*(answers or (answer("Modules were read."),)))  # type: ignore[arg-type]  # texts and errors
    return Chat(window, policy=policy, models=[model], redact=redact), model


async def until_due(chat: Chat, size: int = 2_000) -> list[float]:
    """Speaks until a summary is due; the ratios on the way."""
    ratios = []
    while True:
        chat.turns(1, size=size)
        ratios.append(chat.manager.usage().ratio)
        if chat.manager.due() is not None:
            return ratios


async def folded(chat: Chat, size: int = 2_000) -> list[Event]:
    await until_due(chat, size)
    return await chat.fold(chat.manager.due())


def test_its_settings_are_the_literal_ones():
    auto = S3.auto
    assert (auto.enabled, auto.trigger_ratio, auto.reset_ratio, auto.min_messages) == (True, 0.8, 0.7, 12)
    assert (S3.keep.recent_messages, auto.max_depth, auto.cooldown_messages) == (6, 3, 4)
    assert (S3.llm.on_failure, auto.force_refresh_after_messages) == ("keep", 0)


def test_its_settings_are_validated():
    with pytest.raises(ConfigError, match="reset_ratio"):
        profile("S3", "auto.reset_ratio=0.9")


# The service


async def test_mixed_content_gives_a_valid_record():
    told = answer(
        "Alice asked for a cache in src/cache.py; version 2.1 is out on 2026-01-15.",
        key_points=["src/cache.py has an LRU"],
        decisions=["use an LRU of 128 entries"],
        action_items=[{"owner": "Alice", "task": "write the tests", "due": "Friday"}],
        unresolved=["which eviction?"],
        entities=["src/cache.py"],
        participants=["Alice", "assistant"],
    )
    chat, _ = chat_with(told, window=64_000)
    chat.say(
        "I am Alice. Add a cache to src/cache.py. Version 2.1 is out on 2026-01-15. I write the tests by Friday.",
        AssistantMessage("src/cache.py has an LRU: I decided to use an LRU of 128 entries. Open: which eviction?"),
    )
    chat.turns(6, size=2_000)
    record = record_of(await chat.fold())
    assert "version 2.1 is out on 2026-01-15" in record.narrative
    assert record.context.decisions == ("use an LRU of 128 entries",)
    assert record.context.action_items == (ActionItem("write the tests", "Alice", "Friday"),)
    assert record.context.unresolved == ("which eviction?",)
    assert len(record.message_ids) == len(record.sha256) > 0
    assert msgspec.json.decode(msgspec.json.encode(record), type=SummaryRecord) == record


async def test_empty_arrays_are_fine():
    chat, _ = chat_with(answer("They read modules."))
    record = record_of(await folded(chat))
    assert (record.context.decisions, record.context.action_items) == ((), ())


async def test_more_than_thirty_key_points_are_cut():
    points = [f"a finding of kind {first}{second}" for first in "abcde" for second in "stuvwxyz"]
    chat, _ = chat_with(answer("Modules were read.", key_points=points), window=200_000)
    chat.turns(30, size=8_000)
    assert record_of(await chat.fold()).key_points == tuple(points[:30])


async def test_a_transport_failure_is_retried_once_and_then_nothing_is_changed():
    chat, model = chat_with(Unavailable("down"))
    await until_due(chat)
    before = chat.manager.view()
    events = await chat.fold(chat.manager.due())
    assert len(model.requests) == 2
    assert chat.manager.view() == before
    assert [type(event) for event in events][:2] == [SummaryStarted, Warned]
    assert not any(isinstance(event, SummaryFinished) for event in events)


async def test_a_transport_failure_that_passes_costs_one_retry():
    chat, model = chat_with(Unavailable("down"), answer("Modules were read."))
    assert record_of(await folded(chat)).strategy == "llm"
    assert len(model.requests) == 2


async def test_malformed_json_is_not_asked_for_again():
    chat, model = chat_with(f"not json, with the key {KEY} " * 20)
    await until_due(chat)
    before = chat.manager.view()
    events = await chat.fold(chat.manager.due())
    told = " ".join(event.text for event in events if isinstance(event, Warned))
    assert len(model.requests) == 1
    assert chat.manager.view() == before
    assert KEY not in told
    assert told


async def test_depth_and_parent_grow_along_the_chain():
    chat, _ = chat_with()
    records = [record_of(await folded(chat)) for _ in range(3)]
    assert [record.depth for record in records] == [0, 1, 2]
    assert [record.parent_id for record in records] == [None, records[0].id, records[1].id]


async def test_a_record_holds_ids_and_hashes_and_no_message():
    chat, _ = chat_with()
    chat.say("Please remember this sentence of mine, which is rather long and ends with a word like marzipan.")
    record = record_of(await folded(chat))
    covered = chat.log.entries[: len(record.message_ids)]
    assert record.message_ids == tuple(entry.id for entry in covered)
    assert record.sha256 == tuple(hashlib.sha256(msgspec.json.encode(entry.body)).hexdigest() for entry in covered)
    assert "which is rather long" not in msgspec.json.encode(record).decode()


async def test_the_model_reads_a_header_and_at_most_eight_thousand_tokens():
    chat, model = chat_with(window=200_000)
    chat.turns(40, size=8_000)
    await chat.fold()
    (request,) = model.requests
    text = request.messages[0].text
    assert len(text) // 4 < 9_000
    assert request.tools == ()
    assert request.json_schema is not None
    assert "JSON" in request.system


# The integration


async def test_one_long_thread_triggers_exactly_once_at_about_four_fifths():
    chat, model = chat_with()
    ratios = await until_due(chat)
    assert ratios[-2] < 0.8 <= ratios[-1] < 1.0
    await chat.fold(chat.manager.due())
    assert chat.manager.due() is None
    assert len(model.requests) == 1


async def test_a_small_burst_right_after_does_not_trigger_again():
    chat, _ = chat_with()
    await folded(chat)
    chat.say("a", AssistantMessage("b"), "c " + "x" * 20_000)
    usage = chat.manager.usage()
    assert usage.ratio < 1
    assert chat.manager.due() is None or chat.manager.due().emergency


async def test_the_depth_guard_stops_it_at_the_cap():
    chat, model = chat_with()
    for _ in range(3):
        await folded(chat)
    while chat.manager.usage().ratio < 0.82:
        chat.turns(1, size=2_000)
    assert chat.manager.usage().ratio >= 0.8
    trigger = chat.manager.due()
    assert trigger is None or trigger.emergency
    assert len(model.requests) == 3


async def test_an_emergency_ignores_the_cooldown():
    chat, _ = chat_with()
    await folded(chat)
    chat.say("x" * 80_000)
    trigger = chat.manager.due()
    assert trigger is not None
    assert trigger.emergency
    assert trigger.ratio >= 1.0


async def test_a_failure_loses_no_message():
    chat, _ = chat_with(Unavailable("down"))
    await until_due(chat)
    said = [entry.message for entry in chat.log.entries if entry.message is not None]
    await chat.fold(chat.manager.due())
    assert [entry.message for entry in chat.log.entries if entry.message is not None] == said
    assert list(chat.manager.view()) == said


async def test_a_summary_is_tagged_with_its_depth_and_the_newest_six_stay():
    chat, _ = chat_with()
    for number in range(20):
        chat.say(f"Question {number} " + "x" * 1_400, AssistantMessage(f"Answer {number} " + "y" * 1_400))
        if chat.manager.due() is not None:
            break
    newest = [entry.message for entry in chat.log.entries[-6:]]
    await chat.fold(chat.manager.due())
    view = chat.manager.view()
    assert isinstance(view[0], ContextNote)
    assert view[0].text.startswith("summary-depth:0\n")
    assert list(view[-6:]) == newest


async def test_it_is_done_before_the_next_request_and_told():
    chat, _ = chat_with()
    events = await folded(chat)
    started = next(event for event in events if isinstance(event, SummaryStarted))
    record = record_of(events)
    assert started.trigger.ratio >= 0.8
    assert (started.messages, record.depth) == (len(record.message_ids), 0)
    assert record.tokens_before > record.tokens_after > 0


class Attentive(Script):
    """A model that tells of every name with a version in what it reads, and of nothing else."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        names = sorted(set(re.findall(r"\w+_v\d", request.messages[0].text)))
        self._answers = [answer(f"It was about {', '.join(names) or 'nothing'}.")]
        async for item in super().stream(request):
            yield item


@pytest.mark.parametrize("strategy", ["llm", "rules", "hybrid"])
async def test_an_early_term_survives_the_second_summary(strategy: str):
    policy = profile("S3", f"summary.strategy={strategy}")
    chat = Chat(9_000, policy=policy, models=[Attentive("")])
    chat.say("The feature flag is called zebra_mode_v7.", AssistantMessage("Noted: zebra_mode_v7."))
    await folded(chat)
    chat.say("How does zebra_mode_v7 relate to this?", AssistantMessage("zebra_mode_v7 guards it."))
    record = record_of(await folded(chat))
    assert (record.depth, record.strategy) == (1, strategy)
    assert "zebra_mode_v7" in chat.manager.view()[0].text


# The edges


async def test_one_extremely_long_message_still_ends_in_a_request_that_fits():
    chat, _ = chat_with(window=8_000)
    chat.say("hello", AssistantMessage("hi"), UserMessage("start " + "x" * 100_000 + " end"))
    await chat.fold(chat.manager.due())
    sent = chat.manager.fit()
    assert sum(len(message.text) for message in sent) // 4 < 8_000
    assert sent[-1].text.startswith("start ")


async def test_a_burst_of_five_across_the_threshold_is_one_summary():
    chat, model = chat_with()
    while chat.manager.usage().ratio < 0.72:
        chat.turns(1, size=800)
    for number in range(5):
        chat.say(f"burst {number} " + "x" * 1_500)
        if (trigger := chat.manager.due()) is not None:
            await chat.fold(trigger)
    assert len(model.requests) == 1


async def test_a_window_of_two_thousand_tokens_is_folded_several_times_and_always_fits():
    chat, _ = chat_with(window=2_000)
    events: list[Event] = []
    for _ in range(60):
        chat.turns(1, size=400)
        if (trigger := chat.manager.due()) is not None:
            events += await chat.fold(trigger)
        assert sum(len(message.text) for message in chat.manager.fit()) // 4 < 2_000
    records = [entry.body for entry in chat.log.entries if isinstance(entry.body, SummaryRecord)]
    assert len(records) > 2
    assert sum(record.trigger == "ratio" for record in records) <= 3


async def test_the_output_of_tools_does_not_bloat_a_summary():
    chat, _ = chat_with(window=64_000)
    chat.say("go")
    for number in range(30):
        chat.say(call(f"c{number}", "ls", "{}"), ToolResult(f"c{number}", "noise_line\n" * 600))
    record = record_of(await chat.fold())
    assert record.narrative.count("noise_line") < 5
    assert record.tokens_after < record.tokens_before / 2
