"""A deleted session is gone, and what its forks share is not."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mycode.core.errors import SessionError
from mycode.core.messages import UserMessage
from mycode.session.locks import SessionHeld
from mycode.session.store import Store
from tests.support.entries import conversation, entry


def bytes_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


def counts(store: Store) -> tuple[object, ...]:
    return tuple(
        row[0]
        for table in ("sessions", "entries", "texts", "locks")
        if (row := store.database.row(f"SELECT count(*) FROM {table}"))
    )


def test_nothing_of_a_deleted_session_stays_in_the_files(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = store.create(title="plan of xylophone")
    store.append(session, entry(1, UserMessage("the word is xylophone")))
    store.keep_text(session, "xylophone again")
    assert len(store.search("xylophone")) == 1
    store.delete(session)
    assert counts(store) == (0, 0, 0, 0)
    assert store.search("xylophone") == ()
    with pytest.raises(SessionError, match="There is no session"):
        store.find(session)
    assert store.wipe() == ""
    store.close()
    assert all(b"xylophone" not in file.read_bytes() for file in tmp_path.iterdir())


def test_what_lay_in_unused_pages_before_is_wiped_with_the_deletion(tmp_path: Path) -> None:
    store = Store(tmp_path)
    gone, stays = store.create(), store.create()
    for number in range(1, 400):
        store.append(gone, entry(number, UserMessage(f"the word is xylophone {number} " * 20)))
    store.append(stays, *conversation(3))
    store.keep_text(gone, "xylophone again " * 5_000)
    store.search("xylophone")
    # Pages that another version, or a moment without `secure_delete`, gave back with their words.
    store.database.rows("PRAGMA secure_delete=OFF")
    with store.database.write() as connection:
        connection.execute("DELETE FROM texts")
    assert b"xylophone" in bytes_of(tmp_path)
    before = list(store.log(stays).read(1))
    store.delete(gone)
    assert store.wipe() == ""
    assert b"xylophone" not in bytes_of(tmp_path)
    assert list(store.log(stays).read(1)) == before
    assert store.verify(stays) == []


def test_a_deletion_that_could_not_be_wiped_is_wiped_the_next_time(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = store.create()
    store.append(session, entry(1, UserMessage("the word is xylophone")))
    with closing(sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM entries").fetchone() == (1,)
        store.delete(session)
        store.database.rows("PRAGMA busy_timeout=10")
        assert "sessions.db" in store.wipe()
        assert b"xylophone" in bytes_of(tmp_path)
    store.close()
    again = Store(tmp_path)
    assert again.wipe() == ""
    assert b"xylophone" not in bytes_of(tmp_path)


def test_what_was_said_in_a_deleted_session_is_no_longer_among_the_lines_typed_before(tmp_path: Path) -> None:
    typed = tmp_path / "prompts"
    typed.write_text("\n# 1\n+question 1\n\n# 2\n+question 3\n\n# 3\n+elsewhere\n", "utf-8")
    store = Store(tmp_path / "sessions", typed=typed)
    session = store.create()
    store.append(session, *conversation(3))
    fork = store.fork(session, 2)
    store.delete(session)
    assert typed.read_text("utf-8") == "\n# 1\n+question 1\n\n# 2\n###########\n\n# 3\n+elsewhere\n"
    store.delete(fork)
    assert typed.read_text("utf-8") == "\n# 1\n###########\n\n# 2\n###########\n\n# 3\n+elsewhere\n"
    typed.unlink()
    typed.mkdir()
    again = store.create()
    store.append(again, *conversation(1))
    with pytest.raises(SessionError, match="Nothing was removed"):
        store.delete(again)
    assert store.log(again).last_seq() == 4


def test_a_fork_keeps_its_past_when_its_origin_is_deleted(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = store.create(title="origin")
    store.append(session, *conversation(3))
    store.keep_text(session, "kept")
    fork = store.fork(session, 6)
    store.keep_text(session, "not shared")
    before = list(store.log(fork).read(1))
    store.delete(session)
    assert list(store.log(fork).read(1)) == before
    assert store.text(fork, 1) == "kept"
    assert [info.id for info in store.sessions()] == [fork]
    assert [(found.session_id, found.handle) for found in store.search('"question 2"')] == [(fork, "m5")]
    assert store.search('"question 3"') == ()
    assert store.verify(fork) == []
    store.delete(fork)
    assert counts(store) == (0, 0, 0, 0)


def test_rows_that_take_a_deleted_place_are_indexed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = store.create()
    store.append(first, *conversation(5))
    assert len(store.search("question")) == 5
    store.delete(first)
    second = store.create()
    store.append(second, entry(1, UserMessage("zebra")))
    assert [found.session_id for found in store.search("zebra")] == [second]
    assert store.search("question") == ()


def test_a_session_open_elsewhere_is_not_deleted(tmp_path: Path) -> None:
    store, other = Store(tmp_path), Store(tmp_path)
    session = store.create()
    store.append(session, entry(1, UserMessage("x")))
    with pytest.raises(SessionHeld):
        other.delete(session)
    assert store.log(session).last_seq() == 1


def test_writing_to_a_session_that_was_deleted_meanwhile_says_so(tmp_path: Path) -> None:
    store, other = Store(tmp_path), Store(tmp_path)
    session = store.create()
    store.append(session, entry(1, UserMessage("x")))
    other.claim(session, steal=True)
    other.delete(session)
    with pytest.raises(SessionError, match="was deleted while it was open"):
        store.append(session, entry(2, UserMessage("y")))
    assert counts(other) == (0, 0, 0, 0)
