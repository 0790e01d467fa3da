"""Words are found again, wherever they were said."""

from pathlib import Path

import pytest

from mycode.core.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from mycode.core.summaries import Pin
from mycode.session.archive import SessionArchive
from mycode.session.search import SearchIndex, snippet
from mycode.session.store import Store
from tests.support.entries import conversation, entries, entry, summary


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def places(store: Store, session: str, query: str) -> list[str]:
    return sorted(found.handle for found in store.search(query, session_id=session))


def filled(store: Store) -> str:
    session = store.create()
    store.append(
        session,
        *entries(
            UserMessage('Why does load_config fail with "no such key"?'),
            AssistantMessage("I look at the parser.", (ToolCall("1", "grep", '{"pattern": "ConnectionPool"}'),)),
            ToolResult("1", "src/pool.py:12: class ConnectionPool:\nÄpfel und Birnen"),
            Pin("never use tabs"),
            summary((1, 3), narrative="The parser was fixed in src/pool.py."),
        ),
    )
    return session


@pytest.mark.parametrize(
    ("query", "handles"),
    [
        ("load_config", ["m1"]),
        ("parser", ["m2", "s1"]),
        ("PARS", ["m2", "s1"]),
        ("connectionpool", ["m2", "m3"]),
        ("pool.py", ["m3", "s1"]),
        ("src/pool.py:12", ["m3"]),
        ("apfel", ["m3"]),
        ("tabs", ["m4"]),
        ('"such key"', ["m1"]),
        ('"key such"', []),
        ("parser fail", ["m1", "m2", "s1"]),
        ("parser fixed", ["s1"]),
        ("zebra", []),
        ('" OR *', []),
        ("parser) OR (", ["m2", "s1"]),
        ("", []),
        ("→", []),
    ],
)
def test_words_are_found_in_what_was_said_called_and_summarized(store: Store, query: str, handles: list[str]) -> None:
    assert places(store, filled(store), query) == handles


def test_what_was_said_after_a_search_is_found_by_the_next(store: Store) -> None:
    session = filled(store)
    assert places(store, session, "zebra") == []
    store.append(session, entry(6, UserMessage("a zebra")))
    assert places(store, session, "zebra") == ["m6"]


def test_a_search_in_one_session_sees_its_shared_past_and_no_other(store: Store) -> None:
    first, second = filled(store), filled(store)
    store.append(first, entry(6, UserMessage("only here: zebra")))
    fork = store.fork(first, 2)
    store.append(fork, entry(3, UserMessage("fork of the parser")))
    assert places(store, second, "zebra") == []
    assert places(store, fork, "zebra") == []
    assert places(store, fork, "parser") == ["m2", "m3"]
    everywhere = {(found.session_id, found.handle) for found in store.search("parser")}
    assert everywhere == {(first, "m2"), (first, "s1"), (second, "m2"), (second, "s1"), (fork, "m3")}


def test_the_summaries_of_a_fork_keep_their_numbers(store: Store) -> None:
    session = filled(store)
    fork = store.fork(session)
    store.append(fork, entry(6, summary((1, 4), narrative="A zebra was added.")))
    assert places(store, fork, "zebra") == ["s2"]
    assert "zebra" in SessionArchive(store, fork).expand("s2")


def test_whole_texts_behind_a_handle_are_searched_too(store: Store) -> None:
    session = store.create()
    store.keep_text(session, "first\n" * 1000 + "the needle is here\n" + "last\n" * 1000)
    fork = store.fork(session, 0)
    [found] = SessionArchive(store, fork).search("needle")
    assert (found.handle, found.role) == ("t1", "text")
    assert "the needle is here" in found.text


def test_without_an_index_rows_are_scanned(store: Store) -> None:
    session = filled(store)
    index = SearchIndex(store.database, fts=False)
    spans = store.log(session).spans()

    def handles(query: str) -> list[str]:
        return [found.handle for found in index.search(query, [(n, last) for n, _, last in spans], 9)]

    assert handles("Parser") == ["s1", "m2"]
    assert handles('with "no such') == ["m1"]
    assert handles("100%_") == []


def test_a_large_backlog_is_indexed_after_a_turn(store: Store) -> None:
    session = store.create()
    store.append(session, *conversation(10))
    store.index_if_much()
    assert store.database.row("SELECT value FROM settings WHERE name = 'indexed'") is None
    store.append(session, *[entry(seq, UserMessage(f"word{seq}")) for seq in range(41, 700)])
    store.index_if_much()
    assert store.database.row("SELECT value FROM settings WHERE name = 'indexed'") == (699,)
    assert store.database.row("SELECT count(*) FROM words WHERE words MATCH 'word650'") == (1,)


def test_a_snippet_is_one_line_around_the_word() -> None:
    text = "a " * 200 + "\n\tthe needle\n" + "b " * 200
    line = snippet(text, ["NEEDLE"])
    assert line.startswith("…a a")
    assert "the needle b b" in line
    assert line.endswith("…")
    assert "\n" not in line
