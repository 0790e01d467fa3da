"""The third design document: exact counts, a trigger before the limit, strategies, the newest ten messages kept."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from mycode.context.budget import estimate_response, message_tokens
from mycode.core.events import Event, SummaryFinished, SummaryStarted
from mycode.core.messages import AssistantMessage, ContextNote, ToolCall, ToolResult, UserMessage
from mycode.core.models import ModelRequest
from mycode.core.summaries import SummaryRecord
from mycode.llm.tokens import Tokens
from tests.designs.profiles import profile
from tests.support.context_doubles import Chat, Quarter, Script, call

S2 = profile("S2")
RULES = profile("S2", "summary.strategy=rules")
ANSWER = json.dumps({"summary": "The parser was rewritten.", "decisions": ["use a state machine"]})
HEADS = ["## Files Referenced", "## Commands Executed", "## Errors Encountered", "## Conversation Summary"]


def fill(chat: Chat, ratio: float) -> None:
    """Speaks until the window is filled to that share."""
    while chat.manager.usage().ratio < ratio:
        chat.turns(1, size=16_000)


def record_of(events: list[Event]) -> SummaryRecord:
    body = next(event.entry.body for event in events if isinstance(event, SummaryFinished))
    assert isinstance(body, SummaryRecord)
    return body


def test_its_settings_are_the_literal_ones():
    assert (S2.window.max_context_tokens, S2.window.target_context_tokens) == (180_000, 150_000)
    assert (S2.auto.trigger_ratio, S2.keep.recent_messages, S2.llm.max_tokens) == (0.8, 10, 2_000)


# Counting


def test_tokens_are_counted_accurately():
    counter = Tokens("gpt-4")
    counter.load()
    assert counter.exact
    # Known lengths in cl100k_base.
    assert [counter.count(text) for text in ("hello world", "tiktoken is great!", "antidisestablishmentarianism")] == [
        2,
        6,
        6,
    ]


async def test_a_repeated_text_is_encoded_once():
    class Counting(Quarter):
        def __init__(self) -> None:
            self.encoded: list[str] = []

        def count(self, text: str) -> int:
            self.encoded.append(text)
            return super().count(text)

    counter = Counting()
    chat = Chat(64_000, policy=RULES, counter=counter)
    chat.say("the same words", AssistantMessage("an answer"))
    for _ in range(5):
        chat.manager.usage()
        chat.manager.fit()
    assert (counter.encoded.count("the same words"), counter.encoded.count("an answer")) == (1, 1)


def test_an_answer_is_estimated_at_half_its_prompt():
    prompt = Quarter().count("a prompt of some forty-four characters, so to say")
    assert (prompt, estimate_response(prompt)) == (13, 6)


def test_messages_cost_four_tokens_and_their_calls():
    count = Quarter().count
    plain = message_tokens(UserMessage("x" * 40), count)
    called = message_tokens(AssistantMessage("x" * 40, (ToolCall("c", "read_file", '{"path": "a.py"}'),)), count)
    assert plain == 4 + 10
    assert called > plain + count("read_file") + count('{"path": "a.py"}')


# Summaries


async def test_key_information_is_preserved():
    chat = Chat(200_000, policy=S2, models=[Script(ANSWER)])
    chat.say(
        "Rewrite the parser.",
        *(call("a", "edit_file", '{"path": "/src/parser.py", "old": "a", "new": "b"}'), ToolResult("a", "edited")),
        *(
            call("b", "execute_bash", '{"command": "make check"}'),
            ToolResult("b", "Error: unknown token ZEBRA\nexit code: 2", is_error=True),
        ),
        AssistantMessage("I decided to use a state machine."),
    )
    chat.turns(6, size=8_000)
    record = record_of(await chat.fold())
    text = "\n".join(message.text for message in chat.manager.view())
    assert record.strategy == "hybrid"
    assert [line for line in record.narrative.splitlines() if line.startswith("## ")] == HEADS
    for known in ("/src/parser.py", "make check", "unknown token ZEBRA", "use a state machine", "parser was rewritten"):
        assert known in text


async def test_file_paths_are_found_once_each():
    chat = Chat(200_000, policy=S2, models=[Script(ANSWER)])
    for number in range(12):
        path = f"/app/src/part_{number % 3}.py"
        chat.say(
            f"Look at {path}.",
            *(call(f"c{number}", "read_file", json.dumps({"path": path})), ToolResult(f"c{number}", "x = 1\n" * 400)),
            AssistantMessage("Seen."),
        )
    section = record_of(await chat.fold()).narrative.split("## Commands Executed")[0]
    assert section.splitlines()[1:4] == [f"- /app/src/part_{number}.py" for number in range(3)]


async def test_a_long_conversation_is_handled():
    chat = Chat(200_000, policy=S2, models=[Script(ANSWER)])
    chat.turns(150, size=4_000)
    trigger = chat.manager.due()
    assert trigger is not None
    record = record_of(await chat.fold(trigger))
    assert len(record.message_ids) > 500
    assert chat.manager.usage().tokens < 150_000


async def test_what_is_asked_of_the_model_names_tool_calls_and_is_bounded():
    model = Script(ANSWER)
    chat = Chat(200_000, policy=S2, models=[model])
    chat.turns(30, size=4_000)
    await chat.fold()
    (request,) = model.requests
    assert "read_file" in request.messages[0].text
    assert Quarter().count(request.messages[0].text) < S2.llm.input_cap + 1_000


class Silent(Script):
    """A model that never says anything."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[AssistantMessage]:
        self.requests.append(request)
        await asyncio.Event().wait()
        yield AssistantMessage("never")


async def test_a_model_that_never_answers_is_given_up_at_the_deadline():
    assert S2.llm.deadline_seconds == 10
    hurried = profile("S2", "llm.deadline_seconds=0.05", "llm.on_failure=rule_based")
    model = Silent("")
    chat = Chat(200_000, policy=hurried, models=[model])
    chat.turns(6, size=8_000)
    assert record_of(await chat.fold()).strategy == "rules"
    assert len(model.requests) == 1


# The manager


async def test_it_triggers_at_the_threshold_and_not_before():
    chat = Chat(200_000, policy=RULES)
    fill(chat, 0.7)
    assert chat.manager.due() is None
    fill(chat, 0.8)
    trigger = chat.manager.due()
    assert trigger is not None
    assert trigger.tokens >= 0.8 * 180_000


async def test_the_newest_ten_messages_are_preserved():
    chat = Chat(200_000, policy=RULES)
    for number in range(30):
        chat.say(f"Question {number} " + "x" * 12_000, AssistantMessage(f"Answer {number} " + "y" * 12_000))
    newest = [entry.message for entry in chat.log.entries[-10:]]
    trigger = chat.manager.due()
    assert trigger is not None
    await chat.fold(trigger)
    view = chat.manager.view()
    assert list(view[-10:]) == newest
    assert isinstance(view[0], ContextNote)
    assert view[0].text.startswith("[Context Summary - 50 messages summarized]\n")


async def test_the_system_prompt_is_kept_outside_and_counted():
    chat = Chat(200_000, policy=RULES, system="You are careful. " * 100)
    fill(chat, 0.8)
    await chat.fold(chat.manager.due())
    system = next(category for category in chat.manager.usage().categories if category.name == "system")
    assert system.tokens > 400
    assert all("You are careful" not in message.text for message in chat.manager.view())


async def test_the_state_is_tracked_and_handed_out_as_a_copy():
    chat = Chat(200_000, policy=RULES)
    fill(chat, 0.8)
    before = chat.manager.usage()
    assert (before.summaries, before.messages) == (0, len(chat.log.entries))
    chat.now = 5_000.0
    events = await chat.fold(chat.manager.due())
    after = chat.manager.usage()
    assert (after.summaries, record_of(events).at) == (1, 5_000.0)
    assert after.tokens < before.tokens
    with pytest.raises(AttributeError):
        after.tokens = 0  # type: ignore[misc]  # it is frozen


async def test_with_nothing_to_summarize_messages_stay_as_they_are():
    chat = Chat(200_000, policy=RULES)
    chat.say("a", AssistantMessage("b"))
    before = chat.manager.view()
    assert chat.manager.due() is None
    await chat.fold()
    assert chat.manager.view() == before


async def test_it_says_when_it_summarizes():
    chat = Chat(200_000, policy=RULES)
    fill(chat, 0.8)
    events = await chat.fold(chat.manager.due())
    assert [type(event) for event in events] == [SummaryStarted, SummaryFinished]


async def test_a_command_summarizes_by_hand():
    chat = Chat(200_000, policy=RULES)
    chat.turns(6, size=4_000)
    assert chat.manager.due() is None
    trigger = chat.manager.due("manual")
    assert trigger is not None
    assert record_of(await chat.fold(trigger)).trigger == "manual"
