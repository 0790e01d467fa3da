"""What is appended is kept, in order, private, and found again."""

import os
import sqlite3
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from msgspec import structs

from mycode.core.entries import Checkpoint, Entry, Grant, Note, Unknown
from mycode.core.errors import SessionError
from mycode.core.messages import UserMessage
from mycode.core.summaries import MaskEpoch, Pin, Undo
from mycode.session.locks import SessionHeld
from mycode.session.store import Store
from tests.support.entries import conversation, entries, entry, logs, summary


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "data")


@settings(max_examples=30)
@given(log=logs)
def test_what_was_appended_is_what_is_read_after_a_restart(
    log: list[Entry], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("store")
    store = Store(folder)
    session = store.create()
    store.rename(session, "kept")
    for one in log:
        store.append(session, one)
    store.close()
    again = Store(folder)
    assert list(again.log(session).read(1)) == log
    assert again.log(session).last_seq() == len(log)
    again.close()


@settings(max_examples=30)
@given(log=logs)
def test_sums_over_any_range_equal_the_sums_of_its_messages(
    log: list[Entry], tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = Store(tmp_path_factory.mktemp("store"))
    session = store.create()
    store.append(session, *log)
    view = store.log(session)
    for start in (0, 1, len(log) // 2, len(log)):
        for stop in (None, 1, len(log) // 2, len(log), len(log) + 5):
            messages = [
                one for one in log if one.message and start <= one.seq < (len(log) + 9 if stop is None else stop)
            ]
            assert view.messages(start, stop) == len(messages)
            assert view.tokens(start, stop) == sum(one.tokens for one in messages)
    store.close()


def test_a_log_longer_than_a_page_is_read_in_order_both_ways(store: Store) -> None:
    session = store.create()
    log = conversation(200)
    store.append(session, *log)
    assert list(store.log(session).read(3, 700)) == log[2:699]
    assert list(store.log(session).newest()) == log[::-1]


def test_overlays_are_what_may_change_the_view_and_nothing_that_comes_every_turn(store: Store) -> None:
    session = store.create()
    log = entries(
        UserMessage("a"),
        Grant("bash", "run", "once", "person"),
        summary((1, 1)),
        Checkpoint("c", 1),
        Note("turn_ended"),
        Pin("never touch main"),
        Unknown('{"kind":"later"}'),
        Undo(3),
    )
    store.append(session, *log)
    assert [one.seq for one in store.log(session).overlays()] == [3, 6, 8]
    assert [one.seq for one in store.log(session).marked("turn_ended", newest=1)] == [5]


def test_a_gap_or_a_repetition_is_refused_and_nothing_of_the_batch_is_kept(store: Store) -> None:
    session = store.create()
    store.append(session, entry(1, UserMessage("one")))
    with pytest.raises(SessionError, match="entry 3 does not follow"):
        store.append(session, entry(3, UserMessage("three")))
    with pytest.raises(SessionError, match="entry 2 does not follow"):
        store.append(session, entry(2, UserMessage("two")), entry(2, UserMessage("again")))
    assert store.log(session).last_seq() == 1


def test_folder_and_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = Store(tmp_path / "a" / "data")
        store.append(store.create(), entry(1, UserMessage("hi")))
    finally:
        os.umask(before)
    folder = tmp_path / "a" / "data"
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
    assert modes == {"sessions.db": 0o600, "sessions.db-wal": 0o600, "sessions.db-shm": 0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_database_that_others_could_read_is_made_private_on_opening(tmp_path: Path) -> None:
    Store(tmp_path).close()
    (tmp_path / "sessions.db").chmod(0o644)
    Store(tmp_path)
    assert stat.S_IMODE((tmp_path / "sessions.db").stat().st_mode) == 0o600


def test_every_commit_is_synced(store: Store) -> None:
    assert store.database.row("PRAGMA journal_mode") == ("wal",)
    assert store.database.row("PRAGMA synchronous") == (2,)


def test_on_a_network_file_system_the_journal_needs_no_shared_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = f"/dev/sda / ext4 rw 0 0\nserver:/home {tmp_path} nfs4 rw 0 0\n"
    read = Path.read_text
    monkeypatch.setattr(
        Path, "read_text", lambda self, *a, **k: mounts if self.name == "mounts" else read(self, *a, **k)
    )
    store = Store(tmp_path / "data")
    session = store.create()
    store.append(session, *conversation(3))
    assert store.database.row("PRAGMA journal_mode") == ("delete",)
    assert list(store.log(session).read(1)) == conversation(3)


def test_a_database_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    Store(tmp_path).close()
    connection = sqlite3.connect(tmp_path / "sessions.db")
    connection.execute("PRAGMA user_version=99")
    connection.close()
    before = (tmp_path / "sessions.db").read_bytes()
    with pytest.raises(SessionError, match=r"newer mycode \(format 99"):
        Store(tmp_path)
    assert (tmp_path / "sessions.db").read_bytes() == before


def test_a_file_that_is_no_database_is_named_as_damaged(tmp_path: Path) -> None:
    (tmp_path / "sessions.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(SessionError, match="is damaged"):
        Store(tmp_path)


def test_an_open_session_is_not_written_by_a_second_opener(tmp_path: Path) -> None:
    first, second = Store(tmp_path), Store(tmp_path)
    session = first.create()
    first.append(session, entry(1, UserMessage("mine")))
    with pytest.raises(SessionHeld, match=f"process {os.getpid()}.*--fork-session"):
        second.append(session, entry(2, UserMessage("interloper")))
    with pytest.raises(SessionHeld):
        second.claim(session)
    assert [one.seq for one in second.log(session).read(1)] == [1]


def test_a_session_let_go_can_be_taken_and_its_first_owner_is_then_refused(tmp_path: Path) -> None:
    first, second = Store(tmp_path), Store(tmp_path)
    session = first.create()
    first.append(session, entry(1, UserMessage("one")))
    second.claim(session, steal=True)
    second.append(session, entry(2, UserMessage("two")))
    with pytest.raises(SessionHeld):
        first.append(session, entry(2, UserMessage("late")))
    second.release(session)
    first.append(session, entry(3, UserMessage("three")))
    assert first.log(session).last_seq() == 3


def test_a_session_whose_process_is_gone_is_free(tmp_path: Path) -> None:
    first, second = Store(tmp_path), Store(tmp_path)
    session = first.create()
    first.append(session, entry(1, UserMessage("one")))
    with first.database.write() as connection:
        connection.execute("UPDATE locks SET started = '1'")
    second.append(session, entry(2, UserMessage("two")))
    assert second.log(session).last_seq() == 2


def test_a_fork_shares_the_past_and_neither_side_sees_the_other_go_on(store: Store) -> None:
    session = store.create(cwd="/w", title="origin")
    store.append(session, *conversation(3))
    rows = store.database.row("SELECT count(*) FROM entries")
    fork = store.fork(session, 6)
    assert store.database.row("SELECT count(*) FROM entries") == rows
    store.append(fork, entry(7, UserMessage("another way"), tokens=9))
    store.append(session, entry(13, UserMessage("the old way")))
    log = store.log(fork)
    assert list(log.read(1)) == [*conversation(3)[:6], entry(7, UserMessage("another way"), tokens=9)]
    assert (log.tokens(1), log.messages(1), log.tokens(6, 8), log.messages(2, 4)) == (33, 7, 13, 2)
    assert store.log(session).last_seq() == 13
    info = store.info(fork)
    assert (info.parent, info.parent_seq, info.cwd, info.title, info.messages) == (session, 6, "/w", "origin", 7)


def test_a_fork_of_a_fork_reads_through_both(store: Store) -> None:
    first = store.create()
    store.append(first, *conversation(2))
    second = store.fork(first, 4)
    store.append(second, entry(5, UserMessage("b5")), entry(6, UserMessage("b6")))
    third = store.fork(second, 5)
    store.append(third, entry(6, UserMessage("c6")))
    fourth = store.fork(third, 2)
    assert [one.seq for one in store.log(third).read(1)] == [1, 2, 3, 4, 5, 6]
    assert list(store.log(third).read(5)) == [entry(5, UserMessage("b5")), entry(6, UserMessage("c6"))]
    assert list(store.log(fourth).read(1)) == conversation(2)[:2]
    assert [one.seq for one in store.log(third).newest()] == [6, 5, 4, 3, 2, 1]


def test_a_session_is_found_by_id_prefix_and_title(store: Store) -> None:
    one = store.create(session_id="aaa111", title="Fix the parser")
    two = store.create(session_id="aaa222", title="Parser docs")
    assert store.find("aaa111").id == one
    assert store.find("aaa2").id == two
    assert store.find("fix the parser").id == one
    assert store.find("docs").id == two
    with pytest.raises(SessionError, match=r"Several sessions match 'aaa': aaa222 \(Parser docs\), aaa111"):
        store.find("aaa")
    with pytest.raises(SessionError, match="There is no session 'zzz'"):
        store.find("zzz")
    with pytest.raises(SessionError, match="There is no session ''"):
        store.find("")
    with pytest.raises(SessionError, match="There is no session '%'"):
        store.find("%")


def test_the_list_is_newest_first_and_leaves_out_what_is_empty(tmp_path: Path) -> None:
    now = iter(float(second) for second in range(100))
    store = Store(tmp_path, clock=lambda: next(now))
    old, new, _ = store.create(cwd="/a"), store.create(cwd="/b"), store.create(cwd="/a")
    store.append(new, entry(1, UserMessage("x")))
    store.append(old, entry(1, UserMessage("x")))
    assert [info.id for info in store.sessions()] == [old, new]
    assert [info.id for info in store.sessions(limit=1)] == [old]
    latest = store.latest("/b")
    assert latest is not None
    assert latest.id == new


def test_a_session_that_nothing_was_said_in_leaves_no_trace(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = store.create()
    store.close()
    with pytest.raises(SessionError, match="There is no session"):
        Store(tmp_path).info(session)


def test_a_kept_text_comes_back_byte_for_byte_under_one_handle(store: Store) -> None:
    session = store.create()
    text = "\r\nline\x00\x1b[31m \udcff ü" * 1000
    assert [store.keep_text(session, text), store.keep_text(session, "b"), store.keep_text(session, text)] == [
        "t1",
        "t2",
        "t1",
    ]
    assert store.text(session, 1) == text
    with pytest.raises(SessionError, match="no text t9"):
        store.text(session, 9)


def test_a_fork_reads_the_texts_of_its_past_and_numbers_its_own_after_them(store: Store) -> None:
    session = store.create()
    store.keep_text(session, "past")
    store.append(session, entry(1, UserMessage("x")))
    fork = store.fork(session)
    assert store.keep_text(session, "elsewhere") == "t2"
    assert store.keep_text(fork, "own") == "t2"
    assert [store.text(fork, 1), store.text(fork, 2), store.text(session, 2)] == ["past", "own", "elsewhere"]


def test_of_a_past_under_one_summary_only_the_places_of_older_ones_are_told(store: Store) -> None:
    session = store.create()
    log = [
        *conversation(1),
        entry(5, summary((1, 2), record_id="a")),
        entry(6, MaskEpoch({3: "a line"})),
        entry(7, Pin("keep this")),
        entry(8, structs.replace(summary((3, 4), record_id="b"), parent_id="a")),
        entry(9, UserMessage("more")),
        entry(10, structs.replace(summary((5, 9), record_id="c"), parent_id="b")),
        entry(11, MaskEpoch({9: "another line"})),
    ]
    store.append(session, *log)
    brief = store.log(session)
    assert [one.seq for one in brief.overlays()] == [5, 7, 8, 10, 11]
    assert brief.overlays()[0].body == summary((1, 2), record_id="a", narrative="")
    store.append(session, entry(12, Undo(10)))
    again = store.log(session)
    assert list(again.overlays()) == [one for one in [*log, entry(12, Undo(10))] if one.message is None]


def test_the_work_to_open_and_resume_does_not_grow_with_the_session(tmp_path: Path) -> None:
    def instructions(turns: int) -> int:
        folder = tmp_path / str(turns)
        store = Store(folder)
        session = store.create()
        store.append(session, *conversation(turns))
        store.append(session, entry(turns * 4 + 1, summary((1, turns * 4 - 4))))
        store.close()
        ticks = 0

        def tick() -> int:
            nonlocal ticks
            ticks += 1
            return 0

        store = Store(folder)
        store.database._connection.set_progress_handler(tick, 1)
        info = store.find(session)
        store.claim(info.id)
        log = store.log(info.id)
        assert len(list(log.overlays())) == 1
        assert log.messages(turns * 4 - 3) == 4
        assert log.tokens(1) == turns * 16
        assert len(list(log.read(turns * 4 - 3))) == 5
        assert len(log.marked("turn_ended", newest=1)) == 0
        return ticks

    assert instructions(2500) <= instructions(25) * 1.1
