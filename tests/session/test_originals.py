"""With `context.originals` the originals of an open session go when that is safe, and never before it was said."""

from pathlib import Path
from typing import Any

import pytest

from mycode.core.entries import Purge, Purged
from mycode.core.errors import InputError, SessionError
from mycode.core.events import Event, SummaryFinished, TurnEnded, TurnStarted, Warned
from mycode.core.messages import UserMessage
from mycode.core.summaries import SummaryRecord
from mycode.session.purging import Rule
from mycode.session.store import Store
from tests.support.sessions import Desk

NOW = Rule(keep=2)
DAY = 86_400.0


async def talk(desk: Desk, *numbers: int) -> list[Event]:
    return [
        event
        for number in numbers
        for event in await desk.prompt(f"question {number} about src/part_{number}.py: " + f"why is it {number}? " * 9)
    ]


async def fold(desk: Desk, keep: int = 2) -> list[Event]:
    events = [event async for event in desk.session.summarize(strategy="rules", keep=keep)]
    assert any(isinstance(event, SummaryFinished) for event in events), events
    return events


def warnings(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Warned)]


def gone(desk: Desk) -> list[int]:
    store = Store(desk.store.folder)
    found = [one.seq for one in store.log(desk.session.id).read(1) if isinstance(one.body, Purged)]
    assert store.verify(desk.session.id) == []
    store.close()
    return found


async def test_after_a_summary_it_is_said_and_undo_still_works(tmp_path: Path) -> None:
    desk = Desk(tmp_path, purge=NOW)
    await talk(desk, *range(1, 9))
    before = desk.context.view()
    told = warnings(await fold(desk))
    assert len(told) == 1
    assert "originals under this summary will be purged" in told[0]
    assert "/summarize --undo brings them back" in told[0]
    assert gone(desk) == []
    desk.session.undo()
    assert desk.context.view() == before
    desk.session.close()
    assert gone(desk) == []


async def test_when_the_session_is_closed_they_are_gone_and_the_file_holds_none_of_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path, purge=NOW)
    await talk(desk, *range(1, 9))
    await fold(desk)
    view = desk.context.view()
    desk.session.close()
    assert len(gone(desk)) > 10
    again = Desk(tmp_path, session_id=desk.session.id, purge=NOW)
    assert again.context.view() == view
    with pytest.raises(InputError, match="cannot be undone: originals under it were purged"):
        again.session.undo()
    [told] = [one.body for one in again.session.history(audit=True) if isinstance(one.body, Purge)]
    assert told.why == "by the setting context.originals"
    with pytest.raises(InputError, match=r"m2 cannot be pinned: it was purged on .* characters, sha256"):
        again.session.pin("m2")
    shown = [one.message.text for one in again.session.history() if one.message]
    assert (shown[0][:10], shown[1][:10]) == ("question 1", "purged on ")
    assert [one.seq for one in again.session.history(grep="question 8")] != []
    assert list(again.session.history(grep="question 2 about")) == []


async def test_a_newer_summary_takes_the_originals_of_the_one_before_and_can_itself_be_undone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, purge=NOW)
    await talk(desk, *range(1, 9))
    await fold(desk)
    [first] = desk.session.summaries()
    await talk(desk, *range(9, 16))
    view = desk.context.view()
    await fold(desk)
    assert isinstance(first.body, SummaryRecord)
    under = first.body.covers[1]
    found = gone(desk)
    assert found
    assert max(found) <= under
    desk.session.undo()
    assert desk.context.view() == view
    with pytest.raises(InputError, match="cannot be undone"):
        desk.session.undo()
    # The conversation goes on, and what is said is written.
    await talk(desk, 16)
    assert desk.session.unsaved == ""
    assert gone(desk) == found


async def test_what_was_summarized_before_the_setting_is_announced_and_goes_only_then(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await talk(desk, *range(1, 9))
    await fold(desk)
    desk.session.close()
    looked = Desk(tmp_path, session_id=desk.session.id, purge=NOW)
    looked.session.close()
    assert gone(desk) == []
    again = Desk(tmp_path, session_id=desk.session.id, purge=NOW)
    events = await talk(again, 9)
    assert isinstance(events[0], TurnStarted)
    assert isinstance(events[-1], TurnEnded)
    [told] = warnings(events)
    assert told.startswith("The originals of ")
    assert gone(desk) == []
    assert warnings(await talk(again, 10)) == []
    again.session.close()
    assert len(gone(desk)) > 10


async def test_a_summary_in_the_turn_that_announces_takes_nothing_yet(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await talk(desk, *range(1, 9))
    await fold(desk)
    await talk(desk, *range(9, 14))
    desk.session.close()
    again = Desk(tmp_path, session_id=desk.session.id, purge=NOW)
    assert len(warnings(await fold(again))) == 2
    assert gone(desk) == []
    again.session.undo()
    again.session.undo()
    first = again.context.view()[0]
    assert isinstance(first, UserMessage)
    assert first.text.startswith("question 1 about")


async def test_only_old_originals_go_under_a_rule_of_days(tmp_path: Path) -> None:
    rule = Rule(days=30, keep=2)
    desk = Desk(tmp_path, purge=rule)
    await talk(desk, *range(1, 5))
    desk.now += 20 * DAY
    await talk(desk, *range(5, 9))
    assert warnings(await fold(desk)) == []
    desk.session.close()
    assert gone(desk) == []
    later = Desk(tmp_path, session_id=desk.session.id, purge=rule)
    later.now = desk.now + 15 * DAY
    later.store._clock = lambda: later.now
    [told] = warnings(await talk(later, 9))
    assert told.startswith("The originals of 7 summarized messages will be purged")
    later.session.close()
    assert len(gone(desk)) == 7


async def test_a_rule_of_days_reaches_sessions_that_nobody_opens_any_more_once_a_day(tmp_path: Path) -> None:
    rule = Rule(days=30, keep=2)
    old = [Desk(tmp_path) for _ in range(3)]
    for desk in old:
        await talk(desk, *range(1, 9))
        await fold(desk)
    old[0].session.close()
    old[1].session.close()

    def later(days: float) -> Desk:
        desk = Desk(tmp_path, purge=rule)
        desk.now += days * DAY
        desk.store._clock = lambda: desk.now
        return desk

    early = later(29)
    assert warnings(await talk(early, 1)) == []
    early.session.close()
    late = later(31)
    [told] = warnings(await talk(late, 1))
    assert "in 3 other sessions are older than 30 days and will be purged" in told
    assert gone(old[0]) == []
    late.session.close()
    # The third is open elsewhere: another day.
    assert [bool(gone(desk)) for desk in old] == [True, True, False]
    old[2].session.close()
    same_day = later(31.5)
    assert warnings(await talk(same_day, 1)) == []
    same_day.session.close()
    assert gone(old[2]) == []
    next_day = later(32.5)
    assert "in 1 other session are" in warnings(await talk(next_day, 1))[0]
    next_day.session.close()
    assert gone(old[2])


async def test_leaving_a_session_for_another_purges_it_and_a_copy_keeps_what_it_shows(tmp_path: Path) -> None:
    desk = Desk(tmp_path, purge=NOW)
    await talk(desk, *range(1, 9))
    await fold(desk)
    first = desk.session.id
    copy = desk.session.rewind(13)
    shown = desk.context.view()
    assert isinstance(shown[0], UserMessage)
    store = Store(tmp_path)
    assert all(not isinstance(one.body, Purged) for one in store.log(copy).read(1))
    assert store.verify(copy) == store.verify(first) == []
    desk.session.clear()
    desk.session.close()
    assert all(not isinstance(one.body, Purged) for one in store.log(copy).read(1))


async def test_going_back_over_what_is_gone_is_refused_before_anything_is_taken_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path, purge=NOW)
    await talk(desk, *range(1, 9))
    await fold(desk)
    desk.session.close()
    again = Desk(tmp_path, session_id=desk.session.id)
    await talk(again, 9)
    with pytest.raises(SessionError, match="cannot go back to just after m6"):
        again.session.check_rewind(7)
    last = [one.seq for one in again.session.history() if isinstance(one.body, UserMessage)][-1]
    view = again.context.view()
    again.session.check_rewind(last)
    again.session.rewind(last)
    assert again.context.view() == view[:-2]


async def test_a_rebuilt_summary_takes_the_old_record_for_what_is_gone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, purge=NOW)
    await talk(desk, *range(1, 9))
    await fold(desk)
    desk.session.close()
    again = Desk(tmp_path, session_id=desk.session.id)
    await talk(again, *range(9, 15))
    events = [event async for event in again.session.summarize(strategy="rules", keep=2, rebase=True)]
    finished = [event for event in events if isinstance(event, SummaryFinished)]
    assert len(finished) == 1, events
    record = finished[0].entry.body
    assert isinstance(record, SummaryRecord)
    told = record.narrative + record.digest
    assert "purged on" not in told
    assert "src/part_2.py" in told
    assert "src/part_12.py" in told
    assert again.store.verify(again.session.id) == []


async def test_a_purge_that_cannot_be_written_loses_nothing_and_comes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path, purge=NOW)
    await talk(desk, *range(1, 9))
    await fold(desk)
    await talk(desk, *range(9, 14))
    insert = Store._insert

    def full(store: Store, *values: Any) -> None:
        if any(isinstance(entry.body, Purge) for entry in values[3]):
            message = "The disk is full."
            raise SessionError(message)
        insert(store, *values)

    with monkeypatch.context() as broken:
        broken.setattr(Store, "_insert", full)
        await fold(desk)
        assert gone(desk) == []
    desk.session.undo()
    desk.session.undo()
    await fold(desk)
    await talk(desk, 14)
    assert desk.session.unsaved == ""
    desk.session.close()
    assert gone(desk)
