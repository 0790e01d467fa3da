"""Promises that hold for any history, well formed or not, in windows from 2K to 1M."""

from __future__ import annotations

import asyncio
import json

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mycode.context import budget
from mycode.context.invariants import broken
from mycode.context.policy import Auto, Keep, Masking, Policy, Summary
from mycode.core.events import SummaryFinished
from mycode.core.messages import AssistantMessage, ContextNote, Message, ToolCall, ToolResult, UserMessage, ViewMessage
from mycode.core.summaries import SummaryRecord
from tests.support.context_doubles import Chat, Quarter, Script, manual
from tests.support.histories import histories

windows = st.sampled_from([2_000, 4_000, 16_000, 200_000, 1_000_000])
policies = st.builds(
    Policy,
    auto=st.builds(
        Auto,
        max_depth=st.integers(1, 3),
        on_depth_limit=st.sampled_from(["rebase", "halt", "rule_only"]),
        min_messages=st.sampled_from([0, 12]),
        message_threshold=st.sampled_from([0, 10, 50]),
        message_ratio=st.sampled_from([0.0, 0.5]),
    ),
    keep=st.builds(Keep, recent_messages=st.integers(2, 10), floor=st.just(2)),
    masking=st.builds(Masking, enabled=st.booleans(), min_tokens=st.sampled_from([20, 150])),
)


def newest_user(messages: list[Message]) -> UserMessage | None:
    said = [m for m in messages if isinstance(m, UserMessage) and (m.text.strip() or m.images)]
    return said[-1] if said else None


def size(view: tuple[ViewMessage, ...]) -> int:
    return sum(budget.message_tokens(message, Quarter().count) for message in view)


def without_footer(view: tuple[ViewMessage, ...]) -> tuple[ViewMessage, ...]:
    return tuple(m for m in view if not (isinstance(m, ContextNote) and m.source == "footer"))


async def live(chat: Chat, messages: list[Message]) -> None:
    """Says everything; folds whenever a fold is due, as a session would."""
    for message in messages:
        chat.say(message)
        trigger = chat.manager.due()
        if trigger is not None:
            await chat.fold(trigger)


@given(histories(), windows, policies)
def test_whatever_was_said_and_folded_the_view_is_well_formed(messages, window, policy):
    chat = Chat(window, policy=policy)
    asyncio.run(live(chat, messages))
    assert broken(chat.manager.view()) == ()


@given(histories(), windows, policies)
def test_what_is_sent_fits_and_is_well_formed(messages, window, policy):
    chat = Chat(window, policy=policy, memory=lambda: "Use tabs. " * 20)
    asyncio.run(live(chat, messages))
    usage = chat.manager.usage()
    sent = chat.manager.fit()
    fixed = sum(category.tokens for category in usage.categories if category.name in {"system", "tools"})
    assert size(sent) + fixed <= window - usage.reserve
    assert usage.tokens <= max(fixed + 64, window - usage.reserve)
    assert broken(sent) == ()


answers = st.sampled_from(
    ["", "no json", '{"summary": "src/ghost.py was made"}', '{"summary": "%s"}' % ("word " * 9_000), '{"summary": 1}']
) | st.builds(lambda text: json.dumps({"summary": text, "unresolved": [text], "key_points": [text] * 40}), st.text())


@given(histories(), windows, st.sampled_from(["llm", "hybrid"]), st.lists(answers, min_size=1, max_size=4))
def test_whatever_a_model_answers_the_view_is_well_formed_and_fits(messages, window, strategy, texts):
    policy = Policy(summary=Summary(strategy=strategy), masking=Masking(enabled=False))
    chat = Chat(window, policy=policy, models=[Script(*texts)])
    asyncio.run(live(chat, messages))
    asyncio.run(chat.fold(manual(), keep=2))
    usage = chat.manager.usage()
    fixed = sum(category.tokens for category in usage.categories if category.name in {"system", "tools"})
    assert broken(chat.manager.view()) == ()
    assert size(chat.manager.fit()) + fixed <= window - usage.reserve
    assert "ghost" not in "".join(m.text for m in chat.manager.view() if isinstance(m, ContextNote))


long_answers = st.builds(
    lambda text, items: json.dumps(
        {"summary": text * 40, "key_points": items, "decisions": items, "action_items": [{"task": i} for i in items],
         "unresolved": items, "resolved": ["", "src"]}
    ),
    st.text(min_size=1, max_size=120) | st.sampled_from(["Work went on. ", "src/core/models.py was read.\n", "word"]),
    st.lists(st.text(max_size=300) | st.just("the quick brown fox " * 20), max_size=40),
)  # fmt: skip
summaries = st.builds(
    Summary,
    strategy=st.sampled_from(["rules", "llm", "hybrid"]),
    form=st.sampled_from(["selection", "selection", "lines"]),
    max_summary_tokens=st.sampled_from([50, 70, 120, 300, 1_000, 8_000]),
    max_share=st.sampled_from([0.05, 0.1, 0.5]),
    title=st.sampled_from(["", "[{messages} messages]"]),
)


@given(
    st.lists(histories(), min_size=1, max_size=3),
    windows,
    summaries,
    st.lists(answers | long_answers, min_size=1, max_size=4),
    st.sampled_from(["", "the parser"]),
)
def test_no_summary_is_larger_than_the_settings_allow_whoever_writes_it(parts, window, summary, texts, focus):
    policy = Policy(summary=summary, masking=Masking(enabled=False))
    chat = Chat(window, policy=policy, models=[Script(*texts)])
    for messages in parts:
        asyncio.run(live(chat, messages))
        asyncio.run(chat.fold(manual(), keep=2, focus=focus))
        share = int(summary.max_share * window)
        # Where there is less room than a notice takes, there is the notice.
        limit = max(70, min(summary.max_summary_tokens, share))
        told = [m for m in chat.manager.view() if isinstance(m, ContextNote) and m.source == "summary"]
        assert all(size((note,)) <= limit for note in told)


@given(histories(), windows, policies)
def test_the_newest_user_message_is_sent_word_for_word(messages, window, policy):
    chat = Chat(window, policy=policy)
    asyncio.run(live(chat, messages))
    newest = newest_user(messages)
    if newest is not None:
        assert newest in chat.manager.view()
        if size((newest,)) < window // 2:
            assert newest in chat.manager.fit()


@given(histories(), windows, policies)
def test_a_later_view_begins_with_the_earlier_one_between_epochs(messages, window, policy):
    chat = Chat(window, policy=policy)
    for message in messages:
        before = without_footer(chat.manager.view())
        complete = not before or not _open(before)
        chat.say(message)
        after = without_footer(chat.manager.view())
        if complete:
            assert after[: len(before)] == before


def _open(view: tuple[ViewMessage, ...]) -> bool:
    """Whether results of the newest answer may still come in: such a view is never sent."""
    newest = max((i for i, m in enumerate(view) if isinstance(m, AssistantMessage)), default=-1)
    return newest >= 0 and bool(view[newest].tool_calls)  # type: ignore[union-attr]  # just looked for answers


@given(histories(), windows, policies)
def test_undo_restores_the_view_byte_for_byte(messages, window, policy):
    chat = Chat(window, policy=policy)
    asyncio.run(live(chat, messages))
    before = chat.manager.view()
    events = asyncio.run(chat.fold(manual(), keep=2))
    if any(isinstance(event, SummaryFinished) for event in events):
        chat.undo()
        assert chat.manager.view() == before


@given(histories(), windows, policies)
def test_a_log_taken_up_again_equals_the_live_state(messages, window, policy):
    chat = Chat(window, policy=policy)
    asyncio.run(live(chat, messages))
    again = chat.again(window, policy)
    assert again.manager.view() == chat.manager.view()
    assert again.manager.usage() == chat.manager.usage()
    assert again.manager.items() == chat.manager.items()


@given(histories(), windows, policies)
def test_cuts_only_move_forward_and_each_fold_shrinks_the_view(messages, window, policy):
    chat = Chat(window, policy=policy)
    asyncio.run(live(chat, messages))
    records = [entry.body for entry in chat.log.entries if isinstance(entry.body, SummaryRecord)]
    ends = [record.covers[1] for record in records]
    assert ends == sorted(ends)
    assert all(record.tokens_after <= 0.9 * record.tokens_before + 1 for record in records)


@given(histories(), windows, policies)
def test_nothing_is_due_right_after_folding_twice_at_most(messages, window, policy):
    chat = Chat(window, policy=policy)
    for message in messages:
        chat.say(message)
        passes = 0
        while (trigger := chat.manager.due()) is not None:
            asyncio.run(chat.fold(trigger))
            passes += 1
            assert passes <= policy.auto.passes_without_progress + 1


@given(histories(), windows, st.sampled_from(["Never touch prod.", "Use tabs"]))
def test_pins_are_in_every_view(messages, window, text):
    chat = Chat(window)
    chat.log.write(chat.manager.pin(text).entry)
    asyncio.run(live(chat, messages))
    assert any(text in m.text for m in chat.manager.view() if isinstance(m, ContextNote) and m.source != "summary")


@given(histories())
def test_summarizing_never_changes_the_log(messages):
    chat = Chat(4_000)
    chat.say(*messages)
    before = list(chat.log.entries)
    asyncio.run(chat.fold())
    assert chat.log.entries[: len(before)] == before


@given(histories(), windows)
def test_the_incremental_view_equals_one_made_anew(messages, window):
    grown = Chat(window)
    for message in messages:
        grown.say(message)
        grown.manager.view()
    fresh = Chat(window)
    fresh.say(*messages)
    assert grown.manager.view() == fresh.manager.view()


def test_each_breach_is_named():
    lone = ToolResult("x", "y")
    assert [line.split(":")[0] for line in broken((lone,))] == [
        "each_call_has_one_adjacent_result",
        "no_view_opens_with_an_answer",
    ]
    asked = AssistantMessage("", (ToolCall("a", "ls", "{}"),))
    assert "no_message_is_empty" in broken((UserMessage("hi"), replace(asked, tool_calls=())))[0]
    assert "each_call_has_one_adjacent_result" in broken((UserMessage("hi"), asked))[0]
    assert "no_answer_follows_an_answer" in broken((UserMessage("hi"), AssistantMessage("a"), AssistantMessage("b")))[0]
    note = ContextNote("p", "pins")
    assert "passages_stand_in_their_order" in broken((UserMessage("hi"), note))[0]
