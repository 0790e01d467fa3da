from mycode.context.budget import message_tokens
from mycode.context.projection import INTERRUPTED
from mycode.core.events import SummaryFinished, SummaryStarted, Warned
from mycode.core.messages import AssistantMessage, ContextNote, ToolResult, UserMessage
from mycode.core.summaries import SummaryRecord
from mycode.core.usage import Usage
from tests.support.context_doubles import Chat, Quarter, call


def test_messages_are_numbered_without_gaps_and_counted_once():
    chat = Chat()
    chat.say("hello there", AssistantMessage("hi"))
    assert [(e.seq, e.tokens) for e in chat.log.entries] == [(1, 7), (2, 5)]
    assert all(len(e.sha256) == 64 for e in chat.log.entries)


def test_a_view_shows_what_was_said_in_order():
    chat = Chat()
    chat.say("look", call("a", "ls"), ToolResult("a", "x.py"), AssistantMessage("There is x.py."))
    assert chat.manager.view() == (
        UserMessage("look"),
        call("a", "ls"),
        ToolResult("a", "x.py"),
        AssistantMessage("There is x.py."),
    )


def test_an_interrupted_call_is_answered_in_the_next_view():
    chat = Chat()
    chat.say("look", call("a", "ls"), "what happened?")
    assert chat.manager.view() == (
        UserMessage("look"),
        call("a", "ls"),
        ToolResult("a", INTERRUPTED, is_error=True),
        UserMessage("what happened?"),
    )


def test_a_result_without_a_call_is_left_out():
    chat = Chat()
    chat.say("look", ToolResult("z", "stray"), AssistantMessage("ok"))
    assert chat.manager.view() == (UserMessage("look"), AssistantMessage("ok"))


async def test_a_summary_stands_for_the_past_and_the_tail_stays_word_for_word():
    chat = Chat(20_000)
    chat.turns(12, size=4000)
    before = chat.manager.view()
    events = await chat.fold()
    assert [type(e) for e in events] == [SummaryStarted, SummaryFinished]
    view = chat.manager.view()
    record = events[1].entry.body
    assert isinstance(record, SummaryRecord)
    assert isinstance(view[0], ContextNote)
    assert view[0].source == "summary"
    assert before[-len(view) + 1 :] == view[1:]
    assert record.tokens_after < record.tokens_before


async def test_undo_restores_the_view_byte_for_byte():
    chat = Chat(20_000)
    chat.turns(12, size=4000)
    before = chat.manager.view()
    await chat.fold()
    assert chat.manager.usage().summaries == 1
    assert chat.undo() is not None
    assert chat.manager.usage().summaries == 0  # taken back, it is in the log and no longer in view
    assert chat.manager.view() == before
    assert chat.undo() is None


async def test_a_conversation_taken_up_from_its_log_has_the_same_view():
    chat = Chat(20_000)
    chat.turns(12, size=4000)
    await chat.fold()
    chat.turns(2)
    assert chat.again().manager.view() == chat.manager.view()


async def test_a_short_conversation_is_not_summarized():
    chat = Chat()
    chat.say("hello", AssistantMessage("hi"))
    assert [type(e) for e in await chat.fold()] == [Warned]


def test_usage_follows_what_the_provider_counted():
    chat = Chat()
    chat.say("hello")
    chat.manager.fit()
    chat.manager.observe(Usage(input_tokens=500, output_tokens=3))
    assert chat.manager.usage().tokens == 500
    chat.say("x" * 400)
    assert 500 < chat.manager.usage().tokens < 650


def test_a_full_window_is_due_and_an_empty_one_is_not():
    chat = Chat(10_000)
    chat.turns(3)
    assert chat.manager.due() is None
    chat.turns(10, size=3000)
    trigger = chat.manager.due()
    assert trigger is not None
    assert trigger.reason in {"ratio", "emergency"}


def test_usage_counts_what_would_really_be_sent_and_triggers_the_whole_view():
    chat = Chat(20_000)
    chat.say("look", call("a", "bash", '{"command": "cat big"}'), ToolResult("a", "x = 1\n" * 40_000))
    usage = chat.manager.usage()
    fixed = usage.categories[0].tokens
    sent = sum(message_tokens(message, Quarter().count) for message in chat.manager.fit())
    assert usage.tokens == sum(category.tokens for category in usage.categories) == fixed + sent
    assert usage.tokens <= usage.window - usage.reserve
    assert usage.tokens + usage.cut == chat.manager.due().tokens > 60_000
    emergency = next(trigger for trigger in usage.triggers if trigger.name == "emergency")
    assert emergency.used == usage.tokens + usage.cut


def test_what_is_sent_always_fits():
    chat = Chat(4_000)
    chat.turns(5, size=4000)
    chat.say("the newest question " * 20)
    sent = chat.manager.fit()
    assert sum(len(m.text) for m in sent) // 4 < 3000
    assert sent[-1] == UserMessage("the newest question " * 20)
