"""What a summary covers leaves memory; the log has it, and whoever asks reads it again."""

from __future__ import annotations

import asyncio

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from mycode.context.past import Past
from mycode.context.policy import Auto, Keep, Masking, Policy
from mycode.context.projection import Row
from mycode.core.entries import Entry
from mycode.core.events import SummaryFinished
from mycode.core.messages import AssistantMessage, Message, ToolResult, UserMessage
from mycode.core.summaries import MaskEpoch, SummaryRecord
from tests.context.test_invariants import live, policies, windows
from tests.support.context_doubles import Chat, MemoryLog, manual
from tests.support.histories import histories

WINDOW = 8_000


def said(seq: int) -> Entry:
    return Entry(seq, f"e{seq}", 0.0, UserMessage(f"line {seq}"), 10)


def row(seq: int) -> Row:
    return Row(seq, UserMessage(f"line {seq}"), 10, f"e{seq}")


def past_of(number: int) -> tuple[Past, MemoryLog]:
    log = MemoryLog(said(seq) for seq in range(1, number + 1))
    past = Past()
    past.open(log)
    return past, log


def test_rows_are_held_from_a_seq_on_with_the_one_that_is_carried():
    past, log = past_of(9)
    past.hold(6, carried=2)
    assert past.rows == [row(2), row(6), row(7), row(8), row(9)]
    log.was_read.clear()
    past.hold(8, carried=7)
    assert past.rows == [row(7), row(8), row(9)]
    assert log.was_read == []
    past.hold(3)
    assert past.rows == [row(seq) for seq in range(3, 10)]
    assert (past.row(2), past.original(2), past.original(12)) == (None, row(2), None)


def test_what_the_log_does_not_have_yet_is_never_let_go():
    past, log = past_of(4)
    for seq in (5, 6, 7):
        past.append(row(seq))
    log.write(said(5))
    past.hold(7)
    assert past.rows == [row(6), row(7)]
    alone = Past()
    alone.append(row(1))
    alone.append(row(2))
    alone.hold(2)
    assert alone.rows == [row(1), row(2)]


@given(st.integers(1, 60), st.integers(0, 400), st.integers(1, 60), st.data())
def test_the_newest_originals_are_as_many_as_hold_the_tokens_wherever_they_lie(number, tokens, start, data):
    past, _ = past_of(number)
    past.hold(min(start, number + 1))
    end = data.draw(st.integers(1, number))
    wanted = min(end, -(-tokens // 10))
    assert past.originals(end, tokens) == ([row(seq) for seq in range(end - wanted + 1, end + 1)], wanted == end)
    assert past.begin(number, tokens) == max(1, number + 1 - max(1, -(-tokens // 10)))


async def test_every_fold_can_be_undone_one_after_the_other_down_to_the_first():
    chat = Chat(WINDOW, policy=Policy(masking=Masking(min_tokens=20)))
    views = [chat.manager.view()]
    for _ in range(5):
        chat.turns(5, size=600)
        views[-1] = chat.manager.view()
        assert any(isinstance(event, SummaryFinished) for event in await chat.fold(manual(), keep=4))
        views.append(chat.manager.view())
    # What was said after a fold stays said when that fold is taken back: only its beginning is compared.
    for older in reversed(views[:-1]):
        assert chat.undo() is not None
        assert chat.manager.view()[: len(older)] == older
        assert chat.again(WINDOW).manager.view() == chat.manager.view()
    assert [message.text for message in chat.manager.view()] == [
        entry.message.text for entry in chat.log.entries if entry.message is not None
    ]


LOW = Policy(
    auto=Auto(max_depth=1, on_depth_limit="rebase", min_messages=0, message_threshold=0, message_ratio=0.0),
    keep=Keep(recent_messages=2, floor=2),
    masking=Masking(enabled=False, min_tokens=20),
)
MORE_THAN_TWO_WINDOWS: list[Message] = [AssistantMessage("the quick brown fox " * 120)] * 8


@given(histories(longest=40), windows, policies, st.lists(st.sampled_from(["fold", "undo", "say"]), max_size=8))
@example(MORE_THAN_TWO_WINDOWS, 2_000, LOW, [*["undo"] * 8, "say"])
@example([AssistantMessage(""), *MORE_THAN_TWO_WINDOWS], 2_000, LOW, [*["undo"] * 8, "say"])
def test_whatever_is_folded_and_undone_a_restart_changes_nothing(messages, window, policy, deeds):
    chat = Chat(window, policy=policy)
    asyncio.run(live(chat, messages))
    for deed in deeds:
        if deed == "fold":
            asyncio.run(chat.fold(manual(), keep=2))
        elif deed == "undo":
            chat.undo()
        else:
            chat.turns(2)
        again = chat.again(window, policy)
        assert again.manager.view() == chat.manager.view()
        assert again.manager.items() == chat.manager.items()
        assert again.manager.usage() == chat.manager.usage()


@given(histories(longest=40), windows, policies)
def test_the_next_summary_after_a_restart_is_the_one_that_would_have_been_written(messages, window, policy):
    chat = Chat(window, policy=policy)
    asyncio.run(live(chat, messages))
    again = chat.again(window, policy)
    assert [plain(event) for event in asyncio.run(chat.fold(manual(), keep=2))] == [
        plain(event) for event in asyncio.run(again.fold(manual(), keep=2))
    ]


def plain(event: object) -> object:
    if isinstance(event, SummaryFinished) and isinstance(event.entry.body, SummaryRecord):
        return replace(event.entry.body, id="", at=0.0)
    return event


async def test_while_the_disk_refuses_nothing_is_forgotten_and_all_can_be_undone():
    chat = Chat(WINDOW)
    chat.turns(6, size=600)
    before = chat.manager.view()
    waiting = chat.log.entries[10:]
    del chat.log.entries[10:]  # the disk has the first ten only; the others wait in memory
    events = [event async for event in chat.manager.summarize(manual(), keep=4, strategy="rules")]
    waiting += [event.entry for event in events if isinstance(event, SummaryFinished)]
    folded = chat.manager.view()
    undone = chat.manager.undo()
    assert undone is not None
    assert chat.manager.view() == before
    chat.log.entries += waiting
    assert chat.again(WINDOW).manager.view() == folded
    chat.log.write(undone.entry)
    assert chat.again(WINDOW).manager.view() == before


def test_a_long_conversation_that_was_never_folded_is_taken_up_without_reading_all_of_it():
    chat = Chat(200_000)
    chat.turns(700, size=4_000)
    chat.log.write(chat.manager.pin("never touch main").entry)
    chat.log.write(chat.manager.drop([3]).entry)
    again = Chat(WINDOW, log=MemoryLog(chat.log.entries))
    assert again.manager.pins() == ("never touch main",)
    assert again.log.was_read == []
    # The view takes all of it, as that of the conversation that went on; each message is read once.
    assert again.manager.items() == chat.manager.items()
    assert len(again.manager.view()) == len(chat.manager.view()) == 2_801
    assert len(again.log.was_read) == len(set(again.log.was_read))


def test_where_masks_leave_room_older_messages_are_taken_up_too():
    chat = Chat(200_000)
    chat.turns(60, size=4_000)
    results = [entry.seq for entry in chat.log.entries if isinstance(entry.message, ToolResult)]
    chat.log.write(chat.manager.note(MaskEpoch({seq: f"[m{seq}]" for seq in results})))
    again = Chat(WINDOW, log=MemoryLog(chat.log.entries))
    assert len(again.manager.view()) == len(chat.manager.view()) == 240
