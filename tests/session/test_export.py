"""A session leaves as a file, harmless and without secrets, and comes back as it was."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings

from mycode.core.entries import Entry, Note, Unknown
from mycode.core.errors import InputError
from mycode.core.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from mycode.core.redact import redact
from mycode.session.export import export_text
from mycode.session.importing import import_text
from mycode.session.store import Store
from tests.support.entries import conversation, entries, entry, logs, summary

_HEAD = '{"type":"session","format":1,"id":"a","created":1}\n'
SECRET = "ghp_" + "a1B2c3D4e5" * 4


def same(text: str) -> str:
    return text


@settings(max_examples=25)
@given(log=logs)
def test_an_exported_session_comes_back_equal(log: list[Entry], tmp_path_factory: pytest.TempPathFactory) -> None:
    log = [*log, entry(len(log) + 1, UserMessage("at least this"))]
    store, other = Store(tmp_path_factory.mktemp("one")), Store(tmp_path_factory.mktemp("two"))
    session = store.create(cwd="/work", title="My work", model="m")
    store.append(session, *log)
    texts = ["whole\r\ntext \udcff", "another"]
    for text in texts:
        store.keep_text(session, text)
    exported = export_text(store, session, "jsonl", redact=same)
    back = import_text(other, exported)
    assert back == session
    assert list(other.log(back).read(1)) == log
    assert [text for _, text in other.texts(back)] == texts
    before, after = store.info(session), other.info(back)
    assert (after.cwd, after.title, after.model, after.created, after.messages, after.tokens) == (
        "/work",
        "My work",
        "m",
        before.created,
        before.messages,
        before.tokens,
    )
    assert export_text(other, back, "jsonl", redact=same) == exported
    store.close()
    other.close()


def test_an_import_beside_the_original_gets_an_id_of_its_own(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = store.create()
    store.append(session, *conversation(2))
    copy = import_text(store, export_text(store, session, "jsonl", redact=same))
    assert copy != session
    assert list(store.log(copy).read(1)) == list(store.log(session).read(1))


def test_a_fork_is_exported_with_its_past_and_its_handles(tmp_path: Path) -> None:
    store, other = Store(tmp_path / "1"), Store(tmp_path / "2")
    session = store.create()
    store.append(session, *conversation(2))
    store.keep_text(session, "past")
    fork = store.fork(session, 4)
    store.append(fork, entry(5, UserMessage("own")))
    store.keep_text(session, "elsewhere")
    store.keep_text(fork, "own text")
    back = import_text(other, export_text(store, fork, "jsonl", redact=same))
    assert list(other.log(back).read(1)) == list(store.log(fork).read(1))
    assert list(other.texts(back)) == list(store.texts(fork)) == [(1, "past"), (2, "own text")]


def secretive(store: Store) -> str:
    session = store.create(cwd="/home/me/app", title="Deploy <b>now</b>")
    store.append(
        session,
        *entries(
            UserMessage(f"use {SECRET}\x1b]0;title\x07 <script>alert(1)</script>"),
            AssistantMessage("I run it.", (ToolCall("c1", "execute_bash", json.dumps({"command": f"echo {SECRET}"})),)),
            ToolResult("c1", f"```\n{SECRET}\n\x1b[2Jgone\n", is_error=True),
            summary((1, 3), narrative=f"A key {SECRET} was used."),
            Unknown('{"kind":"later","text":"x"}'),
        ),
    )
    store.keep_text(session, f"whole {SECRET}")
    return session


@pytest.mark.parametrize("form", ["jsonl", "md", "html"])
def test_no_secret_and_no_control_character_leaves(tmp_path: Path, form: str) -> None:
    store = Store(tmp_path)
    text = export_text(store, secretive(store), form, redact=redact)  # type: ignore[arg-type]  # one of the three
    assert SECRET not in text
    assert text.count("[redacted:github-token]") >= 4
    assert "\x1b" not in text
    assert "\x07" not in text


def test_a_masked_export_can_be_imported(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = import_text(store, export_text(store, secretive(store), "jsonl", redact=redact))
    assert store.verify(session) == []
    [call] = [one.body for one in store.log(session).read(2, 3)]
    assert isinstance(call, AssistantMessage)
    assert call.tool_calls[0].id == "c1"


def test_html_is_inert(tmp_path: Path) -> None:
    store = Store(tmp_path)
    text = export_text(store, secretive(store), "html", redact=redact)
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<title>Deploy &lt;b&gt;now&lt;/b&gt;</title>" in text
    assert "src=" not in text.replace("style-src", "")
    assert "default-src 'none'" in text


def test_markdown_shows_who_said_what_and_fences_cannot_be_closed_from_inside(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = store.create(title="Talk", cwd="/w", session_id="abcd")
    store.append(
        session,
        *entries(
            UserMessage("hello\n# not a heading"),
            AssistantMessage("**Hi.**", (ToolCall("c", "grep", '{"pattern":"x"}'),)),
            ToolResult("c", "```\ninside\n```"),
            summary((1, 3), narrative="Greetings."),
        ),
    )
    text = export_text(store, session, "md", redact=same)
    assert text.partition("\n\n")[2].partition("\n")[2] == (
        "\n## You\n\nm1 · 2026-09-21 14:13:21 UTC\n\n> hello\n> # not a heading\n"
        "\n## mycode\n\nm2 · 2026-09-21 14:13:22 UTC\n\n**Hi.**\n\n`grep`\n\n"
        '```\n{"pattern":"x"}\n```\n'
        "\nResult · m3 · 2026-09-21 14:13:23 UTC\n\n````\n```\ninside\n```\n````\n"
        "\n**Summary s1 of m1-m3** · m4 · 2026-09-21 14:13:24 UTC\n\n> Greetings.\n"
    )


def test_paths_are_rewritten_whole_names_only(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = store.create(cwd="/home/me/app")
    store.append(
        session,
        *entries(
            UserMessage("see /home/me/app/x.py, /home/me/application and /mnt/home/me/app"),
            AssistantMessage("", (ToolCall("/home/me", "read_file", '{"path":"/home/me/lib/a.py"}'),)),
        ),
    )
    exported = export_text(store, session, "jsonl", redact=same)
    copy = import_text(store, exported, mapping={"/home/me": "/Users/me", "/home/me/app": "/src/"})
    first, second = [one.body for one in store.log(copy).read(1)]
    assert store.info(copy).cwd == "/src"
    assert first == UserMessage("see /src/x.py, /Users/me/application and /mnt/home/me/app")
    assert second == AssistantMessage("", (ToolCall("/home/me", "read_file", '{"path":"/Users/me/lib/a.py"}'),))


def test_a_list_of_chat_messages_becomes_a_session(tmp_path: Path) -> None:
    store = Store(tmp_path)
    chat = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Look. Then tell."}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "function": {"name": "ls", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "a.py"},
        {"role": "assistant", "content": "One file."},
    ]
    bodies = [
        Note("imported_system", {"text": "Be brief."}),
        UserMessage("Look. Then tell."),
        AssistantMessage("", (ToolCall("1", "ls", "{}"),), "tool_calls"),
        ToolResult("1", "a.py"),
        AssistantMessage("One file."),
    ]
    for text in (json.dumps(chat), json.dumps({"messages": chat}), "\n".join(json.dumps(one) for one in chat)):
        session = import_text(store, text)
        assert [one.body for one in store.log(session).read(1)] == bodies
        assert (store.info(session).title, store.info(session).messages) == ("Look", 4)
        assert store.verify(session) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The file is empty"),
        ("{nonsense", "Line 1 is not JSON"),
        ('[{"role":"user","content":"x"}, 3]', "Message 1"),
        ("[]", "holds no messages"),
        ("3", "list of messages"),
        ('{"type":"session","format":99,"id":"a","created":1}', "newer mycode"),
        (_HEAD + '{"type":"entry"}', "Line 2 cannot be understood"),
        (
            _HEAD + '{"type":"entry","seq":2,"id":"x","at":1,"sha256":"","body":{}}',
            "Line 2 holds entry 2 where 1 should be",
        ),
        (
            _HEAD + '{"type":"entry","seq":1,"id":"x","at":1,"sha256":"00","body":{"kind":"user","text":"hi"}}',
            "Line 2 was altered",
        ),
    ],
)
def test_a_bad_file_gets_one_clear_sentence_and_leaves_nothing(tmp_path: Path, text: str, message: str) -> None:
    store = Store(tmp_path)
    with pytest.raises(InputError, match=message):
        import_text(store, text)
    assert store.database.row("SELECT count(*) FROM sessions") == (0,)
