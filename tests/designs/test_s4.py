"""The fifth design document: more than fifty messages become a story with files, tools and decisions."""

import json

from mycode.context.policy import Policy
from mycode.core.entries import Entry
from mycode.core.events import Event, SummaryFinished, SummaryStarted
from mycode.core.messages import AssistantMessage, ContextNote, ToolResult, UserMessage
from mycode.core.redact import redact
from mycode.core.summaries import SummaryRecord
from mycode.render.panels.history import history_panel
from mycode.render.panels.summary import summary_panel
from mycode.render.screen import Canvas
from tests.designs.profiles import profile
from tests.support.context_doubles import Chat, Quarter, Script, call

S4 = profile("S4")
ANSWER = json.dumps(
    {"summary": "The login was moved to JWT tokens in src/auth.ts.", "key_points": ["JWT in src/auth.ts"]}
)


def chat_with(*answers: str, window: int = 200_000, policy: Policy = S4) -> Chat:
    return Chat(window, policy=policy, models=[Script(*(answers or (ANSWER,)))], redact=redact)


def work(chat: Chat) -> None:
    """A stretch of work as other agents name their tools: two edits, a new file, decisions, a command."""
    chat.say(
        "Move the login to JWT tokens.",
        AssistantMessage("I decided to use JWT tokens with a refresh mechanism. We will use src/auth.ts."),
        "Good.",
        *(
            call("a", "Edit", '{"file_path": "src/auth.ts", "old_string": "a", "new_string": "b"}'),
            ToolResult("a", "ok"),
        ),
        *(call("b", "Write", '{"file_path": "src/token.ts", "content": "export const t = 1"}'), ToolResult("b", "ok")),
        *(
            call("c", "Edit", '{"file_path": "src/auth.ts", "old_string": "b", "new_string": "c"}'),
            ToolResult("c", "ok"),
        ),
        *(call("d", "Read", '{"file_path": "src/db.ts"}'), ToolResult("d", "export const db = 1")),
        *(call("e", "Bash", '{"command": "npm test"}'), ToolResult("e", "12 passing\nexit code: 0")),
        AssistantMessage("The tests pass. I chose to keep the old routes."),
    )


def until_due(chat: Chat) -> int:
    """Speaks until a summary is due; how many messages that took."""
    while chat.manager.due() is None:
        number = chat.log.last_seq()
        chat.say(f"Please look at part {number} of it.", AssistantMessage(f"Part {number} is fine, I looked at it."))
    return chat.manager.usage().messages


def record_of(events: list[Event]) -> SummaryRecord:
    body = next(event.entry.body for event in events if isinstance(event, SummaryFinished))
    assert isinstance(body, SummaryRecord)
    return body


def summaries_of(chat: Chat) -> list[Entry]:
    return [entry for entry in chat.log.entries if isinstance(entry.body, SummaryRecord)]


def test_its_settings_are_the_literal_ones():
    assert (S4.auto.enabled, S4.auto.message_threshold, S4.auto.message_ratio) == (True, 50, 0.0)
    assert (S4.summary.target_compression, S4.keep.recent_messages, S4.llm.max_tokens) == (0.3, 10, 1_000)


# Units


async def test_a_summary_is_generated_with_all_its_parts():
    chat = chat_with()
    work(chat)
    until_due(chat)
    record = record_of(await chat.fold(chat.manager.due()))
    assert record.covers[0] == 1
    assert record.narrative.startswith("The login was moved to JWT tokens")
    assert record.files_modified == ("src/auth.ts", "src/token.ts")
    assert {use.tool: use.count for use in record.tools_used} == {"Edit": 2, "Write": 1, "Read": 1, "Bash": 1}
    assert all(len(use.notable) <= 3 for use in record.tools_used)
    assert record.tokens_after < record.tokens_before


async def test_decisions_are_found_by_their_words():
    chat = chat_with(policy=profile("S4", "summary.strategy=rules"))
    work(chat)
    until_due(chat)
    decisions = record_of(await chat.fold(chat.manager.due())).context.decisions
    assert any("decided to use JWT tokens" in decision for decision in decisions)
    assert any("chose to keep the old routes" in decision for decision in decisions)


def test_tokens_are_counted_once_for_each_message():
    chat = chat_with()
    work(chat)
    counted = sum(entry.tokens for entry in chat.log.entries)
    assert counted == sum(
        category.tokens for category in chat.manager.usage().categories if category.name not in ("system", "tools")
    )


async def test_the_context_is_made_of_summary_and_recent_messages_and_no_placeholder_stands_twice():
    chat = chat_with()
    until_due(chat)
    newest = [entry.message for entry in chat.log.entries[-10:]]
    await chat.fold(chat.manager.due())
    view = chat.manager.view()
    notes = [message.text for message in view if isinstance(message, ContextNote)]
    assert len(notes) == 1
    assert notes[0].count("[Previous conversation summarized - 42 messages]") == 1
    assert list(view[1:]) == newest


async def test_words_of_a_person_that_look_like_a_placeholder_are_kept():
    chat = chat_with()
    until_due(chat)
    quoted = UserMessage("[Previous conversation summarized - 3 messages] is what I read. Why?")
    chat.say(quoted)
    await chat.fold(chat.manager.due())
    assert quoted in chat.manager.view()


# Integration


async def test_the_fifty_first_message_triggers_and_the_fiftieth_does_not():
    chat = chat_with()
    for number in range(25):
        chat.say(
            f"Question {number}, a little longer than need be.", AssistantMessage(f"Answer {number}, also longer.")
        )
    assert (chat.manager.usage().messages, chat.manager.due()) == (50, None)
    chat.say("And one more.")
    trigger = chat.manager.due()
    assert trigger is not None
    assert trigger.reason == "messages"


async def test_a_long_conversation_is_folded_again_and_again_and_covers_have_no_gap():
    chat = chat_with()
    for _ in range(4):
        until_due(chat)
        await chat.fold(chat.manager.due())
    records = [entry.body for entry in summaries_of(chat) if isinstance(entry.body, SummaryRecord)]
    assert len(records) == 4
    assert records[0].covers[0] == 1
    assert records[1].covers[0] > records[0].covers[1]
    assert len([entry for entry in chat.log.entries if entry.message is not None]) > 150


async def test_with_too_few_new_messages_nothing_is_summarized():
    chat = chat_with()
    chat.turns(1)
    before = chat.manager.view()
    events = await chat.fold()
    assert not any(isinstance(event, SummaryFinished) for event in events)
    assert chat.manager.view() == before


async def test_the_session_goes_on_and_is_the_same_when_taken_up_again():
    chat = chat_with()
    work(chat)
    until_due(chat)
    await chat.fold(chat.manager.due())
    chat.say("Go on.", AssistantMessage("Done."))
    assert chat.again(policy=S4).manager.view() == chat.manager.view()


async def test_an_existing_session_stays_unchanged_until_it_is_summarized():
    old = Chat(200_000, policy=profile("S4", "auto.enabled=false"))
    for number in range(40):
        old.say(f"Question {number}", AssistantMessage(f"Answer {number}"))
    taken_up = old.again(policy=S4)
    assert taken_up.manager.view() == old.manager.view()
    assert taken_up.manager.due("resume") is not None
    assert taken_up.manager.view() == old.manager.view()


async def test_a_person_can_switch_it_off():
    chat = chat_with(policy=profile("S4", "auto.enabled=false"))
    for number in range(80):
        chat.say(f"Question {number}", AssistantMessage(f"Answer {number}"))
    assert chat.manager.due() is None


# Quality


async def test_nothing_important_is_lost_and_the_story_is_within_its_size():
    chat = chat_with(json.dumps({"summary": "Things were done."}))
    work(chat)
    until_due(chat)
    record = record_of(await chat.fold(chat.manager.due()))
    text = "\n".join(message.text for message in chat.manager.view())
    for known in ("src/auth.ts", "src/token.ts", "JWT tokens"):
        assert known in text
    folded = sum(entry.tokens for entry in chat.log.entries[: len(record.message_ids)])
    summary = next(message.text for message in chat.manager.view() if isinstance(message, ContextNote))
    assert Quarter().count(summary) < folded


async def test_no_secret_reaches_a_summary():
    secret = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    chat = chat_with(json.dumps({"summary": f"The key {secret} is used in src/auth.ts."}))
    chat.say(f"Use the key {secret} in src/auth.ts.")
    until_due(chat)
    record = record_of(await chat.fold(chat.manager.due()))
    assert secret not in json.dumps([record.narrative, record.digest, record.key_points])


# What the person sees


async def test_an_automatic_summary_is_announced_and_tells_what_was_kept():
    chat = chat_with()
    work(chat)
    until_due(chat)
    events = await chat.fold(chat.manager.due())
    assert [type(event) for event in events] == [SummaryStarted, SummaryFinished]
    shown = Canvas(100, color=False).text(summary_panel(record_of(events), messages_before=78, messages_after=23))
    for words in ("Messages: 78 → 23 (71 % reduction)", "Tokens saved: ~", "Key Topics", "Files Modified: 2"):
        assert words in shown
    for words in ("Commands Run: 1", "Key Decisions: "):
        assert words in shown


async def test_the_full_history_shows_summaries_with_their_ranges_and_every_message():
    chat = chat_with()
    work(chat)
    until_due(chat)
    record = record_of(await chat.fold(chat.manager.due()))
    messages = [entry for entry in chat.log.entries if entry.message is not None]
    panel = history_panel(messages, summaries_of(chat), total=len(messages), width=100, full=True)
    shown = Canvas(100, color=False).text(panel)
    assert f"Session history ({len(messages)} messages total):" in shown
    assert f"[Summary 1] Messages 1-{record.covers[1]}" in shown
    assert "Move the login to JWT tokens." in shown
