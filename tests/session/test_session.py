"""What a front end sees of a session, and what is on disk by then."""

import gc
import tracemalloc
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest
from msgspec import structs

from mycode.context.manager import ContextManager
from mycode.core.entries import Checkpoint, Grant, Note
from mycode.core.errors import SessionError
from mycode.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    Event,
    MessageAdded,
    SummaryFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    Warned,
)
from mycode.core.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from mycode.core.summaries import SummaryRecord, Undo
from mycode.core.tools import Action, Approval, ApprovalRequest, Verdict
from mycode.core.usage import Usage
from mycode.session.locks import SessionHeld
from mycode.session.store import Store
from tests.support.entries import call
from tests.support.sessions import SPENT, Desk, says

BASH = ToolCall("c1", "execute_bash", '{"command":"make"}')


async def test_every_entry_is_on_disk_before_its_event_is_seen(tmp_path: Path) -> None:
    desk = Desk(tmp_path, says(call("c1"), ToolResult("c1", "ok"), "done"))
    reader = Store(tmp_path)
    seen = []
    async for event in desk.session.prompt("go"):
        if isinstance(event, MessageAdded):
            stored = reader.log(desk.session.id).entry(event.entry.seq)
            assert stored == event.entry
            seen.append(event.entry.seq)
    assert seen == [1, 2, 3, 4]


async def test_a_turn_is_passed_on_whole_and_closed_by_its_totals(tmp_path: Path) -> None:
    desk = Desk(tmp_path, says("hello"))
    events = await desk.prompt("hi")
    assert [type(event).__name__ for event in events] == ["TurnStarted", "MessageAdded", "MessageAdded", "TurnEnded"]
    [note] = desk.store.log(desk.session.id).marked("turn_ended")
    assert isinstance(note.body, Note)
    assert note.body.data == {
        "turn": 1,
        "reason": "done",
        "steps": 1,
        "seconds": 0.0,
        "usage": {
            "input_tokens": 100,
            "output_tokens": 10,
            "cached_tokens": 0,
            "cache_write_tokens": 0,
            "reasoning_tokens": 0,
            "cost_usd": 0.5,
        },
        "totals": {"model": note.body.data["usage"]},
    }


async def test_a_resumed_session_knows_its_turns_costs_and_title(tmp_path: Path) -> None:
    desk = Desk(tmp_path, says("one"), says("two"))
    await desk.prompt("Fix the parser. Then rest.")
    await desk.prompt("more")
    desk.session.close()
    again = Desk(tmp_path, says("three"), session_id=desk.session.id)
    assert again.session.cost() == Usage(200, 20, cost_usd=1.0)
    assert again.session.title == "Fix the parser"
    assert again.session.messages_count == 4
    assert (await again.prompt("go"))[0] == TurnStarted(3)
    assert again.session.costs() == {"model": Usage(300, 30, cost_usd=1.5)}
    assert again.context.view() == tuple(entry.body for entry in again.session.history())


async def test_an_approval_becomes_a_grant_beside_the_conversation(tmp_path: Path) -> None:
    async def turn(context: ContextManager) -> AsyncGenerator[Event]:
        action = Action("execute_bash", "execute", "execute_bash make", command="make")
        yield ApprovalAsked(ApprovalRequest("c1", action, Verdict("ask", "not known")))
        yield ApprovalGiven("c1", Approval("always", rule="execute_bash(make)"))

    desk = Desk(tmp_path, turn)
    given = [event for event in await desk.prompt("build") if isinstance(event, ApprovalGiven)]
    grant = Grant("execute_bash", "execute_bash make", "always", "person", "execute_bash(make)")
    assert given[0].entry is not None
    assert given[0].entry.body == grant
    assert desk.store.log(desk.session.id).entry(2) == given[0].entry
    assert desk.context.view() == (UserMessage("build"),)


async def test_a_checkpoint_is_taken_before_a_call_runs(tmp_path: Path) -> None:
    class Shots:
        settled = 0

        async def before(self, call: ToolCall, turn: int) -> str | None:
            return f"shot-{turn}" if call.name == "execute_bash" else None

        async def settle(self) -> None:
            self.settled += 1

        def opened(self, session_id: str) -> None:
            self.settled = 0

    async def turn(context: ContextManager) -> AsyncGenerator[Event]:
        yield ToolStarted(structs.replace(BASH, name="grep"), "grep x")
        yield ToolStarted(BASH, "execute_bash make")
        yield MessageAdded(context.append(AssistantMessage("done")))

    shots = Shots()
    desk = Desk(tmp_path, turn, checkpointer=shots)
    await desk.prompt("build")
    await desk.prompt("thanks")
    bodies = [entry.body for entry in desk.session.history(audit=True)]
    assert bodies[:3] == [UserMessage("build"), Checkpoint("shot-1", 1), AssistantMessage("done")]
    assert shots.settled == 1
    assert [desk.session.checkpoint_before(seq) for seq in (1, 2, 3)] == ["shot-1", "shot-1", None]


async def test_a_turn_that_is_interrupted_keeps_what_was_said_and_what_it_cost(tmp_path: Path) -> None:
    desk = Desk(tmp_path, says("half the work", "never seen"))
    async with aclosing(desk.session.prompt("go")) as events:
        async for event in events:
            if isinstance(event, MessageAdded) and isinstance(event.entry.body, AssistantMessage):
                break
    assert [entry.body.text for entry in desk.session.history()] == ["go", "half the work"]  # type: ignore[union-attr]
    [note] = desk.store.log(desk.session.id).marked("turn_ended")
    assert isinstance(note.body, Note)
    assert (note.body.data["reason"], note.body.data["usage"]["cost_usd"]) == ("interrupted", 0.5)
    assert (await desk.prompt("again"))[0] == TurnStarted(2)
    assert desk.store.verify(desk.session.id) == []


async def test_a_call_that_was_cut_off_is_answered_in_the_view_after_a_resume(tmp_path: Path) -> None:
    desk = Desk(tmp_path, says(call("c1")))
    async with aclosing(desk.session.prompt("go")) as events:
        async for event in events:
            if isinstance(event, MessageAdded) and event.entry.seq == 2:
                break
    desk.session.close()
    again = Desk(tmp_path, session_id=desk.session.id)
    await again.prompt("and now?")
    kinds = [type(message) for message in again.context.view()]
    assert kinds == [UserMessage, AssistantMessage, ToolResult, UserMessage, AssistantMessage]
    answer = again.context.view()[2]
    assert isinstance(answer, ToolResult)
    assert (answer.call_id, answer.is_error) == ("c1", True)
    assert "interrupted" in answer.text
    assert [entry.seq for entry in again.session.history()] == [1, 2, 4, 5]
    assert again.store.verify(again.session.id) == []


async def test_pins_are_set_by_handle_and_let_go_by_number_or_text(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await desk.prompt("never touch main")
    desk.session.pin("m1")
    desk.session.pin("use tabs")
    assert desk.session.pins() == ("never touch main", "use tabs")
    desk.session.unpin("use tabs")
    desk.session.unpin("1")
    assert desk.session.pins() == ()
    desk.session.close()
    assert Desk(tmp_path, session_id=desk.session.id).session.pins() == ()


async def test_words_said_in_an_earlier_session_are_not_found_in_this_one(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await desk.prompt("a zebra")
    assert [found.handle for found in desk.session.search("zebra")] == ["m1"]
    desk.session.clear()
    await desk.prompt("a horse")
    assert desk.session.search("zebra") == ()
    assert [found.handle for found in desk.archive.search("horse")] == ["m1"]


async def test_a_second_prompt_during_a_turn_is_refused(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    async with aclosing(desk.session.prompt("one")) as events:
        await anext(events)
        with pytest.raises(SessionError, match="still running"):
            await desk.prompt("two")
        with pytest.raises(SessionError, match="still running"):
            desk.session.clear()
    assert [type(event) for event in await desk.prompt("three")][-1] is TurnEnded


async def test_entries_that_the_disk_refuses_wait_and_are_written_with_the_next(tmp_path: Path) -> None:
    desk = Desk(tmp_path, says("one"), says("two"))
    await desk.prompt("first")
    limit = int(str(desk.store.database.row("PRAGMA page_count")[0]))  # type: ignore[index]
    desk.store.database.row(f"PRAGMA max_page_count={limit}")
    events = await desk.prompt("x" * 200_000)
    [warning] = [event for event in events if isinstance(event, Warned)]
    assert warning.text.startswith("The disk is full")
    assert "kept in memory" in warning.text
    assert [type(event) for event in events][-1] is TurnEnded
    assert desk.store.log(desk.session.id).last_seq() == 3
    assert [len(entry.body.text) for entry in desk.session.history()] == [5, 3, 200_000, 3]  # type: ignore[union-attr]
    with pytest.raises(SessionError, match="unsaved entries"):
        desk.session.clear()
    desk.store.database.row("PRAGMA max_page_count=100000")
    events = await desk.prompt("now")
    assert Warned("Everything is saved again.") in events
    assert desk.store.log(desk.session.id).last_seq() == 9
    assert desk.store.verify(desk.session.id) == []
    assert desk.session.unsaved == ""


async def test_a_session_open_elsewhere_is_told_and_can_be_forked(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await desk.prompt("mine")
    with pytest.raises(SessionHeld, match="--fork-session"):
        Desk(tmp_path, session_id=desk.session.id)
    other = Store(tmp_path)
    fork = other.fork(desk.session.id)
    assert list(other.log(fork).read(1)) == list(desk.session.history(audit=True))


async def test_a_summary_by_hand_is_kept_shown_and_undone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, *[says("answer " * 200) for _ in range(12)])
    for number in range(12):
        await desk.prompt(f"question {number} " * 50)
    before = desk.context.view()
    preview = [event async for event in desk.session.summarize(preview=True, keep=4)]
    assert isinstance(preview[-1], SummaryFinished)
    assert desk.session.summaries() == ()
    events = [event async for event in desk.session.summarize("parser", keep=4)]
    assert isinstance(events[-1], SummaryFinished)
    [summary] = desk.session.summaries()
    assert summary == events[-1].entry
    assert isinstance(summary.body, SummaryRecord)
    assert summary.body.narrative in desk.session.expand("s1")
    assert desk.context.view() != before
    undone = desk.session.undo()
    assert undone.entry in list(desk.session.history(audit=True))
    assert desk.context.view() == before
    with pytest.raises(SessionError, match="nothing to undo"):
        desk.session.undo()
    desk.session.close()
    assert Desk(tmp_path, session_id=desk.session.id).context.view() == before


async def test_a_resumed_session_that_was_folded_again_and_again_has_the_same_view(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for round_ in range(5):
        for number in range(6):
            desk.turns.append(says(f"answer {round_}.{number} " * 150))
            await desk.prompt(f"question {round_}.{number} " * 40)
        if round_ == 2:
            desk.session.pin("never touch main")
        assert [event async for event in desk.session.summarize(keep=4)]
    views = [desk.context.view()]
    desk.session.close()
    again = Desk(tmp_path, session_id=desk.session.id)
    overlays = [entry.body for entry in again.store.log(again.session.id).overlays()]
    summaries = [body for body in overlays if isinstance(body, SummaryRecord)]
    assert [bool(record.message_ids) for record in summaries] == [False, False, False, False, True]
    assert again.context.view() == views[0]
    for _ in range(3):
        assert isinstance(again.session.undo().entry.body, Undo)
        views.append(again.context.view())
    again.session.close()
    assert len(set(map(len, views))) == 4
    assert Desk(tmp_path, session_id=again.session.id).context.view() == views[-1]


async def test_a_conversation_that_is_folded_again_and_again_takes_no_more_memory(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    sizes: dict[int, int] = {}
    tracemalloc.start()
    try:
        for fold in range(1, 31):
            for number in range(4):
                desk.turns.append(says(f"answer {fold}.{number} " * 200))
                await desk.prompt(f"question {fold}.{number} " * 200)
            assert [event async for event in desk.session.summarize(keep=2)]
            gc.collect()
            sizes[fold] = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    # Twenty folds are 160 messages of 3 KB; what is left of each fold is where it lies.
    assert sizes[30] - sizes[10] < 20 * 3_000


async def test_history_is_read_by_range_by_number_and_by_text(tmp_path: Path) -> None:
    desk = Desk(tmp_path, says(call("c1", "grep"), ToolResult("c1", 'A "Quoted" line\nend'), "one"), says("two"))
    await desk.prompt("first ÄPFEL")
    await desk.prompt("second")

    def seqs(**options: object) -> list[int]:
        return [entry.seq for entry in desk.session.history(**options)]  # type: ignore[arg-type]

    assert seqs() == [1, 2, 3, 4, 6, 7]
    assert seqs(audit=True) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert seqs(first=2, last=4) == [2, 3, 4]
    assert seqs(newest=2) == [6, 7]
    assert seqs(newest=2, last=4) == [3, 4]
    assert seqs(newest=9, first=3) == [3, 4, 6, 7]
    assert seqs(grep="äpfel") == [1]
    assert seqs(grep='"quoted" line\nEND') == [3]
    assert seqs(grep="app.py") == [2]
    assert seqs(newest=3, audit=True) == [6, 7, 8]


async def test_handles_open_the_originals_byte_for_byte(tmp_path: Path) -> None:
    text = "\ttab\r\nno newline at end \x1b[31m ü"
    desk = Desk(tmp_path, says(call("c1"), ToolResult("c1", text), "one"))
    await desk.prompt("q")
    assert desk.archive.keep(text * 2) == "t1"
    assert desk.session.expand("m3") == text
    assert desk.session.expand("t1") == text * 2
    assert desk.session.expand("m1-m3") == (
        f'[m1 user]\nq\n\n[m2 assistant]\nread_file {{"path":"app.py"}}\n\n[m3 tool]\n{text}'
    )
    for wrong in ("m99", "m0", "t9", "s1", "x1", "", "m9-m20", "s1-s2"):
        with pytest.raises(SessionError):
            desk.session.expand(wrong)


async def test_clearing_starts_anew_and_the_old_session_can_be_resumed(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await desk.prompt("old words")
    desk.archive.keep("old text")
    old = desk.session.id
    new = desk.session.clear()
    assert (desk.session.id, desk.session.title, desk.context.view()) == (new, "", ())
    assert desk.archive.keep("new text") == "t1"
    assert (await desk.prompt("new words"))[0] == TurnStarted(1)
    assert desk.session.resume(old[:6]) == old
    assert [entry.body.text for entry in desk.session.history()] == ["old words", "fine"]  # type: ignore[union-attr]
    assert desk.session.expand("t1") == "old text"
    assert {info.id for info in desk.store.sessions()} == {old, new}


async def test_rewinding_goes_on_in_a_copy_and_loses_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path, says("one"), says("two"))
    await desk.prompt("first")
    await desk.prompt("second")
    old = desk.session.id
    desk.session.rewind(4)
    assert desk.session.id != old
    assert desk.context.view() == (UserMessage("first"), AssistantMessage("one", model="model", usage=SPENT))
    await desk.prompt("another way")
    assert desk.store.log(old).last_seq() == 6
    assert desk.store.info(desk.session.id).parent == old


async def test_a_name_is_one_harmless_line_and_stays(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.session.rename("Dr. Who:\x1b[31m my\x07 work.\nsecond line")
    await desk.prompt("What is this?")
    assert desk.session.title == "Dr. Who: my␇ work. second line"
    assert desk.store.info(desk.session.id).title == desk.session.title
    assert desk.store.find(desk.session.title).id == desk.session.id
    with pytest.raises(SessionError, match="at least one letter"):
        desk.session.rename(" \n ")


async def test_half_a_surrogate_in_a_prompt_does_no_harm(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await desk.prompt("open caf\udce9")
    assert desk.session.expand("m1") == "open caf?"


async def test_a_number_whose_entry_never_came_does_not_hold_up_the_others(tmp_path: Path) -> None:
    async def turn(context: ContextManager) -> AsyncGenerator[Event]:
        context.append(AssistantMessage("lost on the way"))
        yield MessageAdded(context.append(AssistantMessage("came")))

    desk = Desk(tmp_path, turn)
    await desk.prompt("go")
    bodies = [entry.body for entry in desk.store.log(desk.session.id).read(1)]
    assert bodies[1:3] == [Note("lost"), AssistantMessage("came")]
    assert desk.session.unsaved == ""
