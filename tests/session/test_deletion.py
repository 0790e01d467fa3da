"""A deleted session is gone, and what its forks share is not."""

from pathlib import Path

import pytest

from mycode.core.errors import SessionError
from mycode.core.messages import UserMessage
from mycode.session.locks import SessionHeld
from mycode.session.store import Store
from tests.support.entries import conversation, entry


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
    store.close()
    assert all(b"xylophone" not in file.read_bytes() for file in tmp_path.iterdir())


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
