import json
from contextlib import closing
from pathlib import Path

from mycode.core.entries import Body, Entry
from mycode.core.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from mycode.core.redact import redact
from mycode.session.store import Store

SECRET = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"


def test_a_log_that_keeps_no_secrets_holds_none_in_words_calls_results_and_texts(tmp_path: Path) -> None:
    bodies: tuple[Body, ...] = (
        UserMessage(f"The key is {SECRET}."),
        AssistantMessage(
            f"I use {SECRET}.",
            (ToolCall("a", "execute_bash", json.dumps({"command": f"curl -u '{SECRET}:' \"x\""})),),
            provider_data={"reasoning": f"They gave {SECRET}"},
        ),
        ToolResult("a", f"charged with {SECRET}"),
    )
    with closing(Store(tmp_path, redact=redact)) as store:
        session = store.create()
        store.append(session, *(Entry(seq, f"e{seq}", 0.0, body, 5) for seq, body in enumerate(bodies, 1)))
        store.keep_text(session, f"whole output {SECRET}")
        entries = list(store.log(session).read(1))
        assert store.verify(session) == []
        assert SECRET not in store.text(session, 1)
    assert SECRET not in str(entries)
    call = entries[1].body.tool_calls[0]  # type: ignore[union-attr]  # it is the answer
    assert set(json.loads(call.arguments)) == {"command"}
    assert all(SECRET.encode() not in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_by_default_the_log_keeps_every_word(tmp_path: Path) -> None:
    with closing(Store(tmp_path)) as store:
        session = store.create()
        store.append(session, Entry(1, "e1", 0.0, UserMessage(f"The key is {SECRET}."), 5))
        assert next(iter(store.log(session).read(1))).body == UserMessage(f"The key is {SECRET}.")
