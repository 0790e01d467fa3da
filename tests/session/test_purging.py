"""Originals under a summary can be removed for good, and nothing else can: the log tells what is gone."""

import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mycode.context.manager import ContextManager
from mycode.context.policy import Policy
from mycode.core.entries import Body, Entry, Note, Purge, Purged
from mycode.core.errors import SessionError
from mycode.core.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from mycode.core.summaries import Pin, SummaryContext, SummaryRecord, Undo
from mycode.core.usage import Usage
from mycode.session.archive import SessionArchive
from mycode.session.export import export_text
from mycode.session.importing import import_text
from mycode.session.locks import SessionHeld
from mycode.session.purging import Plan, Rule, ranges_of
from mycode.session.store import Store
from tests.support.context_doubles import Quarter, model_info
from tests.support.entries import NOON, conversation, entry, summary

ROOT = Path(__file__).parents[2]
ALL = Rule(keep=0)
MARK = "xylophone"


def same(text: str) -> str:
    return text


def folded(store: Store, turns: int, last: int, *more: Body, record: SummaryRecord | None = None) -> str:
    """A session of four messages a turn whose messages up to `last` lie under a summary."""
    session = store.create(title="A talk")
    log = conversation(turns)
    store.append(session, *log)
    add(store, session, record or summary((1, last)), *more)
    return session


def add(store: Store, session: str, *bodies: Body) -> None:
    start = store.log(session).last_seq() + 1
    store.append(session, *(entry(seq, body) for seq, body in enumerate(bodies, start)))
    store.release(session)


def forked(store: Store, session: str, at_seq: int | None = None) -> str:
    """A fork that nobody has open."""
    fork = store.fork(session, at_seq)
    store.release(fork)
    return fork


def gone(store: Store, session: str) -> list[int]:
    return [one.seq for one in store.log(session).read(1) if isinstance(one.body, Purged)]


def purged(store: Store, session: str, rule: Rule = ALL) -> Plan:
    return store.purge(session, rule, why="asked by hand")


def bytes_below(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


def test_what_lies_under_a_summary_goes_and_its_place_role_size_and_hash_stay(tmp_path: Path) -> None:
    store = Store(tmp_path, clock=lambda: NOON + 9)
    session = store.create()
    used = AssistantMessage("an answer", model="m", usage=Usage(10, 2))
    store.append(session, entry(1, UserMessage("a question")), entry(2, used), entry(3, UserMessage("more")))
    add(store, session, summary((1, 2), record_id="the-record"))
    before = list(store.log(session).read(1))
    plan = purged(store, session)
    after = list(store.log(session).read(1))
    asked = Purged("user", NOON + 9, 10, before[0].sha256, "the-record")
    told = Purged("assistant", NOON + 9, 9, before[1].sha256, "the-record", "m", Usage(10, 2))
    assert after == [
        entry(1, asked, tokens=before[0].tokens),
        entry(2, told, tokens=before[1].tokens),
        *before[2:],
        replace(entry(5, Purge(NOON + 9, "asked by hand", ((1, 2),), 2, 19)), id=after[4].id, at=NOON + 9),
    ]
    assert (plan.messages, plan.chars, plan.summaries, plan.held) == (2, 19, (1,), 0)
    assert store.info(session).messages == 3
    assert store.verify(session) == []
    assert purged(store, session).messages == 0
    assert store.log(session).last_seq() == 5


def test_not_a_byte_of_it_is_left_in_any_file(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = store.create(title="A talk")
    call = AssistantMessage("", (ToolCall("c1", "grep", f'{{"pattern":"{MARK}-call"}}'),), "tool_calls")
    long = f"{MARK}-result " * 2000
    handle = store.keep_text(session, f"{MARK}-whole " * 9000)
    store.append(
        session,
        entry(1, UserMessage(f"the word is {MARK}-said")),
        entry(2, call),
        entry(3, ToolResult("c1", f"{long}… 9 lines omitted, whole text: history_expand {handle}\n")),
        entry(4, AssistantMessage(f"{MARK}-told", provider_data={"reasoning": f"{MARK}-thought"})),
        entry(5, UserMessage("what else")),
    )
    for _ in range(3):  # the index is merged and its pages used again
        add(store, session, *(UserMessage(f"other words {n}") for n in range(200)))
        store.search(MARK)
    add(store, session, summary((1, 4)))
    other = store.create()
    add(store, other, UserMessage("stays"))
    assert MARK.encode() in bytes_below(tmp_path)
    assert [found.handle for found in store.search(f"{MARK}-said")] == ["m1"]
    plan = purged(store, session)
    assert [text.number for text in plan.texts] == [1]
    assert store.wipe() == ""
    assert MARK.encode() not in bytes_below(tmp_path)
    assert store.search(MARK) == store.search("purged") == ()
    assert [found.session_id for found in store.search("stays")] == [other]
    assert len(store.search('"other words 7"')) == 3
    store.close()
    assert MARK.encode() not in bytes_below(tmp_path)


def test_what_stays_is_what_is_shown_or_may_be_shown(tmp_path: Path) -> None:
    store = Store(tmp_path)
    carrying = replace(summary((1, 28)), context=SummaryContext(raw={"carried": 21}))
    session = folded(store, 10, 28, Pin("result 3", "message", 11), Pin("never do that"), record=carrying)
    plan = store.plan_purge(session, Rule(keep=14))
    # 9-12 is the pinned result with its question's answer; 21 is carried on; 27-40 are the newest.
    assert [row.seq for row in plan.rows] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, *range(13, 21), 22, 23, 24, 25]
    assert store.plan_purge(session, ALL).rows[-1].seq == 28
    assert gone(store, session) == []


def test_without_a_summary_in_force_nothing_goes(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = folded(store, 3, 8)
    add(store, session, Undo(13))
    assert purged(store, session).messages == 0
    in_the_middle = folded(store, 4, 8, record=summary((5, 8)))
    assert purged(store, in_the_middle).messages == 0
    assert store.log(session).marked("purge") == []


def test_the_newest_prompt_stays_even_under_a_summary(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = folded(store, 3, 12)
    assert [row.seq for row in store.plan_purge(session, ALL).rows] == [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12]


def test_only_what_is_older_than_so_many_days_goes(tmp_path: Path) -> None:
    day = 86_400.0
    store = Store(tmp_path, clock=lambda: NOON + 40 * day)
    session = store.create()
    for number, one in enumerate(conversation(5)):
        store.append(session, replace(one, at=NOON + number * day))
    add(store, session, summary((1, 18)))
    assert [row.seq for row in store.plan_purge(session, Rule(days=30, keep=0)).rows] == list(range(1, 12))
    # 10 is old enough, its result 11 is not: they go together or not at all.
    assert [row.seq for row in store.plan_purge(session, Rule(days=30.5, keep=0)).rows] == list(range(1, 10))


def test_what_a_lifted_pin_had_kept_goes_with_its_message(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = folded(store, 3, 8, Pin("question 1", "message", 1), Undo(14))
    purged(store, session)
    left = store.log(session).entry(14)
    assert left is not None
    assert isinstance(left.body, Purged)
    assert left.body.role == "pin"
    assert left.message is None
    assert store.verify(session) == []


def test_kept_texts_go_with_the_last_message_that_names_them(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = store.create()
    for text in ("one", "lost", "two", "three"):
        store.keep_text(session, text)
    store.append(
        session,
        entry(1, AssistantMessage("", (ToolCall("a", "x", "{}"),))),
        entry(2, ToolResult("a", "whole text: history_expand t1, history_expand t3")),
        entry(3, AssistantMessage("", (ToolCall("b", "x", "{}"),))),
        entry(4, ToolResult("b", "whole text: history_expand t3, history_expand t4")),
        entry(5, UserMessage("go on")),
        entry(6, summary((1, 2))),
    )
    purged(store, session)
    # t2 was named by nobody any more; t3 is still named by m4.
    assert list(store.texts(session)) == [(3, "two"), (4, "three")]
    assert store.text(session, 1).startswith("purged on ")
    assert "; 3 characters, sha256 7692c3ad" in store.text(session, 1)
    assert store.keep_text(session, "five") == "t5"
    assert store.verify(session) == []


def test_a_purged_message_is_a_sentence_wherever_it_is_asked_for(tmp_path: Path) -> None:
    store = Store(tmp_path, clock=lambda: NOON)
    session = folded(store, 3, 8)
    original = store.log(session).entry(1)
    assert original is not None
    purged(store, session)
    archive = SessionArchive(store, session)
    sentence = f"10 characters, sha256 {original.sha256}"
    assert archive.expand("m1").startswith("purged on 2026-09-2")
    assert archive.expand("m1").endswith(f"; {sentence}; summary s1 stands for it")
    assert sentence in archive.expand("m1-m2")
    assert archive.expand("m9") == "question 3"
    for form in ("md", "html"):
        page = export_text(store, session, form, redact=same)  # type: ignore[arg-type]
        assert sentence in page
        assert "asked by hand: m1-m8 (8 messages" in page
        assert "question 1" not in page
        assert "question 3" in page


def test_a_purged_session_is_exported_and_comes_back_equal(tmp_path: Path) -> None:
    store, other = Store(tmp_path / "1"), Store(tmp_path / "2")
    session = store.create(title="A talk")
    for text in ("one", "two"):
        store.keep_text(session, text)
    store.append(
        session,
        entry(1, AssistantMessage("", (ToolCall("a", "x", "{}"),))),
        entry(2, ToolResult("a", "whole text: history_expand t2")),
        entry(3, UserMessage("go on")),
        entry(4, summary((1, 2))),
    )
    purged(store, session)
    exported = export_text(store, session, "jsonl", redact=same)
    back = import_text(other, exported)
    assert list(other.log(back).read(1)) == list(store.log(session).read(1))
    assert other.verify(back) == []
    assert other.text(back, 2) == store.text(session, 2)
    assert export_text(other, back, "jsonl", redact=same) == exported
    assert other.keep_text(back, "three") == "t3"


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        (
            "UPDATE entries SET body = replace(body, '\"chars\":10', '\"chars\":11') WHERE seq = 1",
            "Entry 1 is not what",
        ),
        ("DELETE FROM entries WHERE seq = 3", "Entries 3 to 3 are missing."),
        ("UPDATE entries SET body = replace(body, 'question 3', 'question 4') WHERE seq = 9", "Entry 9 is not what"),
    ],
)
def test_real_damage_is_still_found_after_a_purge(tmp_path: Path, statement: str, fault: str) -> None:
    store = Store(tmp_path)
    session = folded(store, 3, 8)
    purged(store, session)
    with store.database.write() as connection:
        connection.execute(statement)
    assert store.verify(session)[0].startswith(fault)


def test_a_text_that_went_without_a_purge_and_a_purge_that_did_not_happen_are_damage(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = store.create()
    add(store, first, Purged("user", NOON, 3, "0" * 64), UserMessage("here"), Purge(NOON, "by nobody", ((2, 2),), 1, 4))
    assert store.verify(first) == [
        "The text of entry 1 is gone, and no purge tells of it.",
        "Entry 2 is told to be purged and is not.",
    ]


def test_what_a_fork_still_shows_stays_until_the_fork_is_gone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = store.create()
    store.append(session, *conversation(3))
    fork = forked(store, session, 6)
    add(store, session, summary((1, 8)))
    before = list(store.log(fork).read(1))
    plan = purged(store, session)
    # The exchange 6-7 is cut by the fork: it stays whole.
    assert gone(store, session) == [8]
    assert (plan.held, plan.shown_by) == (7, (fork,))
    assert list(store.log(fork).read(1)) == before
    assert store.verify(fork) == store.verify(session) == []
    assert store.log(fork).marked("purge") == []
    store.delete(fork)
    purged(store, session)
    assert gone(store, session) == list(range(1, 9))


def test_forks_that_share_the_summary_lose_the_originals_together_and_each_log_tells(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = folded(store, 3, 8)
    fork = forked(store, session)
    add(store, fork, UserMessage("on another way"))
    purged(store, fork)
    assert gone(store, fork) == gone(store, session) == list(range(1, 9))
    assert store.verify(fork) == store.verify(session) == []
    for one in (session, fork):
        [told] = store.log(one).marked("purge")
        assert isinstance(told.body, Purge)
        assert told.body.ranges == ((1, 8),)
    store.delete(session)
    assert store.verify(fork) == []


def test_a_fork_that_is_open_elsewhere_is_left_alone(tmp_path: Path) -> None:
    store, other = Store(tmp_path), Store(tmp_path)
    session = folded(store, 3, 8)
    fork = store.fork(session)
    # A store of the same process stands for another process: its lock is alive.
    plan = other.purge(session, ALL, why="asked by hand")
    assert (plan.messages, plan.held, plan.shown_by) == (0, 8, (fork,))
    store.claim(fork)
    with pytest.raises(SessionHeld):
        other.purge(fork, ALL, why="asked by hand")
    assert gone(store, fork) == []


def test_a_fork_in_the_unfolded_part_begins_with_the_summary_that_came_later(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = folded(store, 3, 8)
    purged(store, session)
    fork = forked(store, session, 10)
    bodies = [one.body for one in store.log(fork).read(11)]
    assert bodies[0] == summary((1, 8))
    assert isinstance(bodies[1], Purge)
    assert (bodies[1].ranges, bodies[1].messages) == (((1, 8),), 8)
    assert store.verify(fork) == []
    assert purged(store, fork).messages == 0
    with pytest.raises(
        SessionError, match=r"cannot go back to just after m5: .* purged .* The earliest place is just after m8\."
    ):
        store.fork(session, 5)
    assert store.log(store.fork(session)).last_seq() == 14


def test_with_undo_kept_only_what_the_summary_before_covers_goes(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = folded(store, 5, 8)
    careful = Rule(keep=0, undoable=True)
    assert store.plan_purge(session, careful).messages == 0
    add(store, session, replace(summary((9, 16), record_id="s2"), parent_id="s"))
    assert [row.seq for row in store.plan_purge(session, careful).rows] == list(range(1, 9))
    assert [row.seq for row in store.plan_purge(session, ALL).rows] == list(range(1, 17))


def test_a_purge_that_fails_leaves_everything(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = folded(store, 3, 8)
    store.search("question")
    before = list(store.log(session).read(1))

    def refuse(_: Purge) -> Entry:
        message = "no"
        raise SessionError(message)

    with pytest.raises(SessionError, match="no"):
        store.purge(session, ALL, why="asked by hand", numbered=refuse)
    assert list(store.log(session).read(1)) == before
    assert [found.handle for found in store.search('"question 1"')] == ["m1"]


def test_killed_in_the_middle_all_is_gone_or_nothing(tmp_path: Path) -> None:
    code = """if True:
        import sys, pathlib
        from mycode.session.purging import Rule
        from mycode.session.store import Store
        store = Store(pathlib.Path(sys.argv[1]))
        session = store.sessions()[0].id
        print("ready", flush=True)
        store.purge(session, Rule(keep=0), why="asked by hand")
        store.wipe()
        print("done", flush=True)"""
    chance = random.Random(11)
    outcomes = set()
    for number in range(14):
        folder = tmp_path / str(number)
        store = Store(folder)
        session = folded(store, 150, 560)
        store.search("question")
        before = list(store.log(session).read(1))
        store.close()
        with subprocess.Popen(
            [sys.executable, "-c", code, str(folder)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            for _ in range(chance.randrange(1 if number < 2 else 2_000_000)):
                pass
            process.kill()
        again = Store(folder)
        after = list(again.log(session).read(1))
        assert again.verify(session) == []
        if again.log(session).marked("purge"):
            assert gone(again, session) == list(range(1, 561))
            assert again.wipe() == ""
            assert b'question 99"' not in bytes_below(folder)
        else:
            assert after == before
        outcomes.add(len(after))
        add(again, session, UserMessage("it goes on"))
        again.close()
    assert outcomes <= {601, 602}


def test_a_purged_prompt_is_no_longer_among_the_lines_typed_before(tmp_path: Path) -> None:
    typed = tmp_path / "prompts"
    head, tail = "\n# 2026-11-21 10:00:00\n+question 10\n", "\n# 2026-11-21 10:02:00\n+it goes on\n"
    typed.write_text(f"{head}\n# 2026-11-21 10:01:00\n+question 1\n{tail}\n# x\n+question\n+ 2\n", "utf-8")
    store = Store(tmp_path / "sessions", typed=typed)
    session = folded(store, 3, 8)
    purged(store, session)
    assert typed.read_text("utf-8") == (f"{head}\n# 2026-11-21 10:01:00\n###########\n{tail}\n# x\n+question\n+ 2\n")
    typed.unlink()
    again = folded(store, 3, 8)
    assert purged(store, again).messages == 8


def test_while_somebody_reads_the_file_it_is_said_that_bytes_may_be_left(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = folded(store, 3, 8)
    reader = sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM entries").fetchone() == (13,)
    purged(store, session)
    store.database.rows("PRAGMA busy_timeout=10")
    assert "sessions.db" in store.wipe()
    reader.close()
    assert store.wipe() == ""
    assert b'question 1"' not in bytes_below(tmp_path)


def test_a_file_of_typed_lines_that_cannot_be_written_stops_the_purge(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    store = Store(tmp_path / "sessions", typed=tmp_path / "prompts")
    session = folded(store, 3, 8)
    with pytest.raises(SessionError, match=r"lines typed before, .* cannot be changed: .* Nothing was removed\."):
        purged(store, session)
    assert gone(store, session) == []


def test_what_may_be_read_only_is_not_purged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    session = folded(store, 3, 8)
    store.close()
    monkeypatch.setattr("os.access", lambda *_: False)
    reader = Store(tmp_path)
    assert reader.plan_purge(session, ALL).messages == 8
    with pytest.raises(SessionError, match="cannot be written"):
        purged(reader, session)


def test_an_unknown_kind_stays_and_the_totals_stay(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = folded(store, 3, 8, Note("turn_ended", {"turn": 1}))
    before = store.info(session)
    log = store.log(session)
    sums = (log.tokens(1, 9), log.messages(1, 9))
    purged(store, session)
    assert (log.tokens(1, 9), log.messages(1, 9)) == sums
    assert (store.info(session).tokens, store.info(session).messages) == (before.tokens, before.messages)


@settings(max_examples=200)
@given(st.sets(st.integers(1, 60)), st.sets(st.integers(1, 60)))
def test_ranges_hold_all_that_goes_and_nothing_that_stays(going: set[int], rest: set[int]) -> None:
    stays = rest - going
    ranges = ranges_of(sorted(going), stays)
    held = {seq for first, last in ranges for seq in range(first, last + 1)}
    assert going <= held
    assert not held & stays
    assert list(ranges) == sorted(ranges)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_whatever_is_folded_pinned_undone_and_forked_every_log_stays_sound(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = Store(tmp_path_factory.mktemp("any"))
    session = store.create()
    store.append(session, *conversation(6))
    sessions = [session]
    for _ in range(data.draw(st.integers(1, 8))):
        one = data.draw(st.sampled_from(sessions))
        log = store.log(one)
        last = log.last_seq()
        match data.draw(st.sampled_from(["fold", "pin", "undo", "fork", "purge", "say"])):
            case "fold":
                add(store, one, summary((1, data.draw(st.integers(1, last))), record_id=f"r{last}"))
            case "pin":
                add(store, one, Pin("a pin", "message", data.draw(st.integers(1, 24))))
            case "undo":
                changes = [e.seq for e in log.every_overlay() if isinstance(e.body, Pin)]
                if changes:
                    add(store, one, Undo(data.draw(st.sampled_from(changes))))
            case "fork":
                try:
                    sessions.append(forked(store, one, data.draw(st.integers(1, last))))
                except SessionError:
                    assert any(isinstance(e.body, Purge) for e in log.every_overlay())
            case "purge":
                shown = {other: visible(store, other) for other in sessions}
                store.purge(one, Rule(keep=data.draw(st.integers(0, 6))), why="asked by hand")
                assert {other: visible(store, other) for other in sessions} == shown
            case _:
                add(store, one, UserMessage("more"), AssistantMessage("of it"))
        for other in sessions:
            assert store.verify(other) == []
    store.close()


def visible(store: Store, session: str) -> list[str]:
    """What a view of the session is made from."""
    manager = ContextManager(
        policy=Policy(),
        counter=Quarter(),
        info=model_info(200_000),
        system="",
        clock=lambda: NOON,
        new_id=lambda: "id",
    )
    manager.restore(store.log(session))
    return [message.text for message in manager.view()]
