"""What a summary promises whoever writes it, through many rounds."""

from __future__ import annotations

import json

import msgspec
import pytest

from mycode.context.policy import Auto, Llm, Policy, Summary
from mycode.core.errors import RateLimited, Unavailable
from mycode.core.events import SummaryFinished, SummaryStarted, Warned
from mycode.core.messages import AssistantMessage, ContextNote, ToolResult, UserMessage
from mycode.core.redact import redact
from mycode.core.summaries import SummaryRecord
from tests.support.context_doubles import Chat, Script, call, manual

LLM = Policy(summary=Summary(strategy="llm"))
HYBRID = Policy(summary=Summary(strategy="hybrid"))


def answer(summary: str, **parts: object) -> str:
    return json.dumps({"summary": summary} | parts)


def record_of(events: list[object]) -> SummaryRecord:
    finished = next(event for event in events if isinstance(event, SummaryFinished))
    assert isinstance(finished.entry.body, SummaryRecord)
    return finished.entry.body


def summary_in(chat: Chat) -> str:
    return next(m.text for m in chat.manager.view() if isinstance(m, ContextNote) and m.source == "summary")


def work(chat: Chat, n: int) -> None:
    """A round of work: a rule, a changed file, a command that fails (every fifth time for good), a decision."""
    chat.say(
        UserMessage(f"Round {n}: never delete table_{n}. Change src/part_{n}.py."),
        call(f"e{n}", "edit_file", json.dumps({"path": f"src/part_{n}.py", "old": "a", "new": "b" * 600})),
        ToolResult(f"e{n}", f"edited src/part_{n}.py"),
        call(f"r{n}", "read_file", json.dumps({"path": f"src/part_{n}.py"})),
        ToolResult(f"r{n}", f"def part_{n}():\n" + "    work()\n" * 1500),
        call(f"t{n}", "bash", json.dumps({"command": f"pytest tests/test_{n}.py"})),
        ToolResult(f"t{n}", f"FAILED tests/test_{n}.py::test_it - ValueError: bad_{n}\nexit code: 1", is_error=True),
        AssistantMessage(f"I decided to use strategy_{n} instead of the old one."),
    )
    if n % 5:
        chat.say(
            call(f"u{n}", "bash", json.dumps({"command": f"pytest tests/test_{n}.py"})),
            ToolResult(f"u{n}", "1 passed\nexit code: 0"),
            AssistantMessage("It passes now."),
        )


class LossyModel(Script):
    """A model that drops most facts and makes some up, or gives other rubbish in turn."""


RUBBISH = (
    answer("Some work was done in src/invented_module.py by hallucinated_function().", decisions=["use made_up_lib"]),
    answer("Progress was made."),
    "",
    "not json at all",
    answer("word " * 40_000),
    '{"summary": "cut',
)


@pytest.mark.parametrize("strategy", ["rules", "llm", "hybrid"])
async def test_fifty_rounds_lose_no_changed_file_no_rule_and_no_open_error(strategy):
    models = [Script(*(RUBBISH * 20))]
    policy = Policy(summary=Summary(strategy=strategy))
    chat = Chat(64_000, policy=policy, models=models)
    sizes = []
    for n in range(1, 51):
        work(chat, n)
        record_of(await chat.fold(keep=2))
        view = "\n".join(m.text for m in chat.manager.view())
        for k in range(1, n + 1):
            assert f"src/part_{k}.py" in view, (n, k)
            assert f"never delete table_{k}" in view, (n, k)
            if k % 5 == 0:
                assert f"bad_{k}" in view, (n, k)
        assert "invented_module" not in view
        assert "hallucinated_function" not in view
        assert "made_up_lib" not in view
        sizes.append(chat.manager.usage().tokens)
    assert max(sizes[25:]) < 12_000


@pytest.mark.parametrize("on_oversize", ["chunk", "trim_oldest", "rule_based"])
@pytest.mark.parametrize("strategy", ["rules", "llm", "hybrid"])
async def test_a_term_of_the_beginning_survives_the_second_summary(strategy, on_oversize):
    policy = Policy(summary=Summary(strategy=strategy), llm=Llm(on_oversize=on_oversize, input_cap=400))
    model = Script(answer("Modules were looked at."))
    chat = Chat(64_000, policy=policy, models=[model])
    chat.say("The feature flag is called zebra_mode_v7.", AssistantMessage("Noted: zebra_mode_v7."))
    for _ in range(2):
        chat.turns(6, size=3000)
        await chat.fold()
        assert "zebra_mode_v7" in summary_in(chat)
    if on_oversize == "trim_oldest":
        assert not any("zebra_mode_v7" in request.messages[0].text for request in model.requests[:1])


async def test_what_the_oldest_messages_established_is_told_though_the_model_never_read_them():
    policy = Policy(summary=Summary(strategy="llm"), llm=Llm(on_oversize="trim_oldest", input_cap=400))
    model = Script(answer("Modules were looked at."))
    chat = Chat(64_000, policy=policy, models=[model])
    work(chat, 4)
    work(chat, 5)
    chat.turns(8, size=3000)
    await chat.fold()
    read = model.requests[0].messages[0].text
    told = summary_in(chat)
    for known in ("src/part_4.py", "src/part_5.py", "bad_5", "strategy_4", "tests/test_4.py::test_it"):
        assert known not in read
        assert known in told
    assert "tests/test_4.py" in next(line for line in told.splitlines() if line.startswith("Passed later: "))
    assert "bad_4" not in told.partition("Open errors:")[2].partition("\n\n")[0]


async def test_what_was_left_out_by_hand_is_not_told_as_a_fact_either():
    chat = Chat(64_000)
    chat.say(
        "The switch is secret_switch_9.", AssistantMessage("I decided to use secret_way_9 instead of the old one.")
    )
    chat.turns(8, size=3000)
    chat.log.write(chat.manager.drop([1, 2]).entry)
    for _ in range(2):
        await chat.fold()
        assert "secret_switch_9" not in summary_in(chat)
        assert "secret_way_9" not in summary_in(chat)
        chat.turns(8, size=3000)


async def test_what_a_model_makes_up_is_taken_out_and_reported():
    chat = Chat(64_000, policy=LLM, models=[Script(answer("All is in src/module_1.py. See also src/phantom.py."))])
    chat.turns(8, size=3000)
    record = record_of(await chat.fold())
    assert "src/module_1.py" in record.narrative
    assert "phantom" not in record.narrative
    assert record.verification is not None
    assert record.verification.removed == ("src/phantom.py",)
    assert record.verification.grounding < 1


async def test_what_a_model_leaves_out_is_added_from_the_facts():
    chat = Chat(64_000, policy=LLM, models=[Script(answer("Nothing much."))])
    work(chat, 5)
    chat.turns(6, size=3000)
    record = record_of(await chat.fold())
    assert "src/part_5.py" in record.narrative
    assert "bad_5" in record.narrative
    assert record.verification is not None
    assert record.verification.recall < 1
    assert "src/part_5.py" in record.verification.added


async def test_finished_work_is_not_shown_as_open():
    model = Script(answer("Tests ran.", unresolved=["ValueError: bad_1 in pytest tests/test_1.py"]))
    chat = Chat(64_000, policy=LLM, models=[model])
    work(chat, 1)
    chat.turns(6, size=3000)
    record = record_of(await chat.fold())
    assert record.context.unresolved == ()


async def test_hybrid_has_four_headed_sections():
    chat = Chat(64_000, policy=HYBRID, models=[Script(answer("The work goes on."))])
    work(chat, 5)
    chat.turns(6, size=3000)
    narrative = record_of(await chat.fold()).narrative
    heads = [line for line in narrative.splitlines() if line.startswith("## ")]
    assert heads == ["## Files Referenced", "## Commands Executed", "## Errors Encountered", "## Conversation Summary"]


@pytest.mark.parametrize("failure", [Unavailable("down"), RateLimited("busy"), "", "no json"])
async def test_a_model_that_fails_is_replaced_by_rules_and_the_person_is_told(failure):
    policy = Policy(summary=Summary(strategy="llm"), llm=Llm(backoff_seconds=0))
    chat = Chat(64_000, policy=policy, models=[Script(failure)])
    chat.turns(8, size=3000)
    events = await chat.fold()
    assert [type(event) for event in events] == [SummaryStarted, Warned, SummaryFinished]
    assert record_of(events).strategy == "rules"


async def test_on_failure_keep_changes_nothing():
    policy = Policy(summary=Summary(strategy="llm"), llm=Llm(on_failure="keep", retries=0))
    chat = Chat(64_000, policy=policy, models=[Script(Unavailable("down"))])
    chat.turns(8, size=3000)
    before = chat.manager.view()
    events = await chat.fold()
    assert [type(event) for event in events] == [SummaryStarted, Warned]
    assert chat.manager.view() == before


async def test_on_failure_raise_raises():
    policy = Policy(summary=Summary(strategy="llm"), llm=Llm(on_failure="raise", retries=0))
    chat = Chat(64_000, policy=policy, models=[Script(Unavailable("down"))])
    chat.turns(8, size=3000)
    with pytest.raises(Unavailable):
        await chat.fold()


async def test_after_three_failures_no_model_is_asked_until_a_summary_by_hand_succeeds():
    policy = Policy(summary=Summary(strategy="llm"), llm=Llm(retries=0))
    model = Script("", "", "", answer("fine"))
    chat = Chat(64_000, policy=policy, models=[model])
    for _ in range(5):
        chat.turns(8, size=3000)
        await chat.fold()
    assert len(model.requests) == 3
    chat.turns(8, size=3000)
    assert record_of(await chat.fold(strategy="llm")).strategy == "llm"
    chat.turns(8, size=3000)
    assert record_of(await chat.fold()).strategy == "llm"


async def test_each_record_continues_the_one_before():
    chat = Chat(64_000)
    records = []
    for _ in range(3):
        chat.turns(8, size=3000)
        records.append(record_of(await chat.fold()))
    assert [r.depth for r in records] == [0, 1, 2]
    assert [r.parent_id for r in records] == [None, records[0].id, records[1].id]
    assert [r.version for r in records] == [1, 2, 3]
    assert records[1].covers[0] == records[0].covers[1] + 1


async def test_at_the_depth_limit_the_summary_is_rebuilt_from_the_originals():
    chat = Chat(64_000)
    records = []
    for _ in range(4):
        chat.turns(8, size=3000)
        records.append(record_of(await chat.fold()))
    assert [r.depth for r in records] == [0, 1, 2, 0]
    assert records[3].covers[0] == 1
    assert records[3].parent_id == records[2].id


async def test_at_the_depth_limit_halt_stops_for_good():
    policy = Policy(auto=Auto(on_depth_limit="halt", max_depth=1))
    chat = Chat(64_000, policy=policy)
    chat.turns(8, size=3000)
    record_of(await chat.fold())
    chat.turns(8, size=3000)
    assert [type(event) for event in await chat.fold()] == [Warned]


async def test_a_preview_changes_nothing():
    chat = Chat(64_000)
    chat.turns(8, size=3000)
    before, last = chat.manager.view(), chat.log.last_seq()
    events = await chat.fold(preview=True)
    finished = events[-1]
    assert isinstance(finished, SummaryFinished)
    assert finished.entry.seq == 0
    assert chat.manager.view() == before
    chat.say("on we go")
    assert chat.log.last_seq() == last + 1


async def test_a_stretch_in_the_middle_can_be_folded_and_is_taken_in_later():
    chat = Chat(64_000)
    chat.turns(10, size=3000)
    await chat.fold(first=9, last=20)
    sources = [m.source for m in chat.manager.view() if isinstance(m, ContextNote)]
    assert sources == ["summary"]
    assert chat.manager.view()[0] == UserMessage("Question 1: what does module_1 do?")
    await chat.fold()
    view = chat.manager.view()
    assert isinstance(view[0], ContextNote)
    assert sum(isinstance(m, ContextNote) and m.source == "summary" for m in view) == 1


async def test_no_secret_reaches_a_record():
    chat = Chat(64_000, redact=redact)
    chat.say("Always use OPENAI_API_KEY=sk-proj-abcdefghijklmnopqrstuvwxyz012345 for this.", AssistantMessage("ok"))
    chat.turns(8, size=3000)
    entry = next(e.entry for e in await chat.fold() if isinstance(e, SummaryFinished))
    assert b"abcdefghijklmnop" not in msgspec.json.encode(entry)


async def test_memory_is_read_again_after_a_summary_and_undo_brings_the_old_text_back():
    texts = iter(["old rules", "old rules", "new rules", "newer rules"])
    chat = Chat(64_000, memory=lambda: next(texts))
    chat.turns(8, size=3000)
    before = chat.manager.view()
    assert before[0] == ContextNote("old rules", "memory")
    await chat.fold(manual())
    assert chat.manager.view()[0] == ContextNote("new rules", "memory")
    chat.undo()
    assert chat.manager.view() == before


async def test_a_rebase_by_hand_rebuilds_the_last_summary_from_the_originals():
    chat = Chat(64_000)
    for _ in range(2):
        chat.turns(8, size=3000)
        last = record_of(await chat.fold(keep=2))
    record = record_of(await chat.fold(rebase=True))
    assert record.depth == 0
    assert record.parent_id == last.id
    assert record.covers == (1, last.covers[1])
    assert len(record.message_ids) > len(last.message_ids)


async def test_what_was_left_out_by_hand_does_not_come_back_in_a_summary():
    chat = Chat(64_000)
    chat.say("The code word is xylophone_quartz.", AssistantMessage("Noted."))
    chat.turns(8, size=3000)
    chat.log.write(chat.manager.drop([1]).entry)
    await chat.fold()
    assert "xylophone_quartz" not in summary_in(chat)


async def test_a_title_of_ones_own_names_depth_and_number_of_messages():
    chat = Chat(64_000, policy=Policy(summary=Summary(title="[summary-depth:{depth}, {messages} messages, {x}]")))
    chat.turns(8, size=3000)
    record = record_of(await chat.fold())
    assert summary_in(chat).startswith(f"[summary-depth:0, {len(record.message_ids)} messages, {{x}}]\n")


async def test_a_record_read_back_from_json_is_the_same_record():
    chat = Chat(64_000)
    work(chat, 5)
    chat.turns(8, size=3000)
    record = record_of(await chat.fold())
    assert msgspec.json.decode(msgspec.json.encode(record), type=SummaryRecord) == record
