"""The first design document: digests by rules, an optional model that can never overflow, a running summary."""

import json

import pytest

from mycode.context import digests
from mycode.context.policy import Policy
from mycode.context.summarizers.lines import OMITTED, TRUNCATED
from mycode.core.errors import Unavailable
from mycode.core.events import Event, SummaryFinished, Warned
from mycode.core.messages import ContextNote, ToolCall, ToolResult
from mycode.core.summaries import SummaryRecord
from tests.designs.profiles import profile
from tests.support.context_doubles import Chat, Quarter, Script

S0 = profile("S0")
S0_LLM = profile("S0", "summary.strategy=llm")
S0_ON = profile("S0", "auto.enabled=true")


def digest(tool: str, output: str, **arguments: object) -> digests.ToolSummary:
    return digests.tool_summary(ToolCall("c", tool, json.dumps(arguments)), ToolResult("c", output))


def record_of(events: list[Event]) -> SummaryRecord:
    body = next(event.entry.body for event in events if isinstance(event, SummaryFinished))
    assert isinstance(body, SummaryRecord)
    return body


def summary_in(chat: Chat) -> str:
    return next(m.text for m in chat.manager.view() if isinstance(m, ContextNote) and m.source == "summary")


def test_its_settings_are_the_literal_ones():
    assert (S0.auto.enabled, S0.summary.strategy, S0.summary.max_summary_tokens) == (False, "rules", 500)
    assert (S0.tool_results.preserve_errors, S0.llm.summary_prompt) == (True, "")


def test_a_file_that_was_read_is_summarized_with_metadata():
    source = "export function hello() {}\nexport const world = 42;\nimport { foo } from 'bar';"
    found = digest("read_file", source, path="src/hello.ts")
    assert (found.tool_name, found.status) == ("read_file", "success")
    assert "Lines: 3" in found.key_facts
    assert "Exports: hello, world" in found.key_facts
    assert "Imports: 1 modules" in found.key_facts
    assert found.metadata["has_exports"] is True
    assert found.metadata["has_imports"] is True


def test_a_command_with_an_error_is_recognized():
    found = digest("execute_bash", "npm test\nError: Module not found\nexit code: 1", command="npm test")
    assert found.status == "error"
    assert "Error: Error: Module not found" in found.key_facts
    assert found.metadata == {"command": "npm test", "exit_code": 1, "output_lines": 3, "has_error": True}


def test_a_digest_is_one_concise_line():
    line = digests.line(digests.ToolSummary("read_file", "read", "success", ("File: /app.ts", "Lines: 100")))
    assert line == "[✓ read_file: File: /app.ts | Lines: 100]"


@pytest.mark.parametrize("tool", ["read_file", "execute_bash", "search_files", "grep", "create_file", "edit_file"])
def test_key_facts_are_found_for_every_kind_of_tool(tool: str):
    arguments = {"path": "a.py", "command": "ls", "pattern": "x", "content": "x = 1", "old": "a", "new": "b"}
    found = digest(tool, "a.py:1:x\nexit code: 0", **arguments)
    assert found.tool_name == tool
    assert found.key_facts
    assert digests.line(found).startswith(f"[✓ {tool}: ")


def test_an_unknown_or_missing_tool_gets_the_default():
    assert digest("frobnicate", "fine").tool_name == "frobnicate"
    assert digests.tool_summary(None, ToolResult("c", "fine")).tool_name == "unknown"


async def test_too_large_a_context_falls_back_to_rules():
    model = Script("never asked")
    chat = Chat(2_000_000, policy=S0_LLM, models=[model])
    for number in range(100):
        chat.say(f"{number} " + "a" * 10_000)
    events = await chat.fold(keep=2)
    record = record_of(events)
    assert (record.strategy, record.usage, model.requests) == ("rules", None, [])
    assert any(isinstance(event, Warned) and "by rules" in event.text for event in events)
    assert "Summarized Context" in record.narrative


async def test_any_error_of_the_model_falls_back_to_rules():
    chat = Chat(200_000, policy=S0_LLM, models=[Script(Unavailable("down"))])
    chat.turns(6, size=400)
    record = record_of(await chat.fold(keep=2))
    assert (record.strategy, record.usage) == ("rules", None)
    assert record.narrative.startswith("--- Summarized Context (")


async def test_summaries_accumulate_with_a_version():
    chat = Chat(200_000, policy=S0)
    versions = []
    for _ in range(2):
        chat.turns(2, size=400)
        versions.append(record_of(await chat.fold(keep=2)).version)
    assert versions == [1, 2]
    assert "[Update 2]" in summary_in(chat)


async def test_a_summary_that_grows_too_long_is_condensed_and_stays_within_its_limit():
    chat = Chat(200_000, policy=S0)
    narratives = []
    for _ in range(2):
        chat.turns(12, size=4_000)
        narratives.append(record_of(await chat.fold(keep=2)).narrative)
    assert [Quarter().count(narrative) <= 500 for narrative in narratives] == [True, True]
    assert narratives[1].startswith("[Condensed history]\n--- Summarized Context (48 items) ---")


async def test_a_summary_is_stored_and_stands_right_after_the_system_prompt():
    chat = Chat(200_000, policy=S0)
    chat.turns(6, size=400)
    record = record_of(await chat.fold(keep=2))
    stored = [entry.body for entry in chat.log.entries if isinstance(entry.body, SummaryRecord)]
    first = chat.manager.view()[0]
    assert stored == [record]
    assert isinstance(first, ContextNote)
    assert first.text.startswith("[Previous Conversation Summary]\n")


async def test_a_new_conversation_has_no_summary():
    chat = Chat(200_000, policy=S0)
    chat.turns(6, size=400)
    await chat.fold(keep=2)
    assert not any(isinstance(message, ContextNote) for message in Chat(200_000, policy=S0).manager.view())


async def test_a_trimmed_conversation_updates_its_summary_when_that_is_on():
    chat = Chat(8_000, policy=S0_ON)
    chat.turns(30, size=2_000)
    trigger = chat.manager.due()
    assert trigger is not None
    record = record_of(await chat.fold(trigger))
    assert record.narrative.startswith("--- Summarized Context (")
    assert chat.manager.usage().tokens < 8_000


@pytest.mark.parametrize(("room", "expected"), [(49, OMITTED), (60, TRUNCATED)])
def test_summarizing_never_causes_an_overflow(room: int, expected: str):
    from mycode.context.facts import FactLedger
    from mycode.context.summarizers import Fold
    from mycode.context.summarizers.lines import tell
    from mycode.core.messages import UserMessage

    messages = tuple((number, UserMessage("word " * 30)) for number in range(1, 40))
    told = tell(Fold(messages, None, FactLedger(), room, Quarter().count, str, form="lines")).narrative
    assert told.endswith(expected)
    assert Quarter().count(told) <= room


def test_a_summary_may_take_a_tenth_of_the_room_at_most():
    from mycode.context.policy import summary_budget

    assert summary_budget(S0, room=100_000, folded=50_000) == 500
    assert summary_budget(S0, room=2_000, folded=50_000) == 200


@pytest.mark.parametrize("policy", [S0, S0_ON], ids=["off", "on"])
async def test_the_agent_can_run_on_and_on_without_passing_the_limit(policy: Policy):
    chat = Chat(6_000, policy=policy)
    for _ in range(120):
        chat.turns(1, size=1_500)
        if (trigger := chat.manager.due()) is not None:
            await chat.fold(trigger)
        assert sum(Quarter().count(m.text) + 4 for m in chat.manager.fit()) <= 6_000
