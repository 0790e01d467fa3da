from mycode.context.facts import FactLedger
from mycode.context.policy import Policy, Summary
from mycode.context.summarizers import Fold
from mycode.context.summarizers.lines import OMITTED, merged, tell
from mycode.core.events import SummaryFinished
from mycode.core.messages import AssistantMessage, ContextNote, Message, ToolResult, UserMessage
from mycode.core.summaries import SummaryRecord
from tests.support.context_doubles import Chat, Quarter, call

MESSAGES: tuple[Message, ...] = (
    UserMessage("Run the tests."),
    call("a", "bash", '{"command": "npm test"}'),
    ToolResult("a", "Error: Module not found\nexit code: 1"),
    AssistantMessage("They fail."),
)


def fold(budget_tokens: int = 1_000, messages: tuple[Message, ...] = MESSAGES) -> Fold:
    numbered = tuple(enumerate(messages, 1))
    return Fold(numbered, None, FactLedger(), budget_tokens, Quarter().count, str, form="lines")


def test_a_header_counts_the_items_and_each_has_its_line():
    lines = tell(fold()).narrative.splitlines()
    assert lines[0] == "--- Summarized Context (4 items) ---"
    assert lines[1:3] == ["[✓ user: Run the tests.] (m1)", "[✓ assistant: called bash] (m2)"]
    assert lines[3].startswith("[❌ bash: Command: npm test | Exit: 1")
    assert len(lines) == 5


def test_an_update_is_numbered_and_too_long_a_history_is_condensed():
    assert merged("one", "two", 2, 100) == "one\n\n[Update 2]\ntwo"
    assert merged("x" * 1_000, "two", 3, 100) == "[Condensed history]\ntwo"


def test_too_little_room_leaves_a_notice_and_too_much_text_is_cut_and_marked():
    assert tell(fold(49)).narrative == OMITTED
    long = tell(fold(60, (UserMessage("word " * 30),) * 20)).narrative
    assert long.endswith("\n[Summary truncated]")
    assert Quarter().count(long) <= 60


def said(first: int, last: int) -> tuple[tuple[int, Message], ...]:
    return tuple((seq, UserMessage(f"Sentence number {seq} of a long talk.")) for seq in range(first, last + 1))


def told(messages: tuple[tuple[int, Message], ...], before: str, budget_tokens: int) -> list[str]:
    record = SummaryRecord("r1", 0.0, (1, 9), 0, "rules", "ratio", before, version=1)
    again = Fold(messages, record if before else None, FactLedger(), budget_tokens, Quarter().count, str, form="lines")
    text = tell(again).narrative
    assert Quarter().count(text) <= budget_tokens
    return text.splitlines()


def test_where_both_are_too_long_the_oldest_lines_go_and_the_newest_update_stays_whole():
    before = "\n".join(told(said(1, 20), "", 1_000))
    lines = told(said(21, 30), before, 330)
    old, new = lines[: lines.index("[Update 2]")], lines[lines.index("[Update 2]") + 1 :]
    assert new == told(said(21, 30), "", 1_000)
    assert old[0] == "[Condensed history]"
    assert old[1:-1] == before.splitlines()[-len(old[1:-1]) :]
    assert 0 < len(old[1:-1]) < 20


def test_an_update_that_is_too_long_alone_loses_its_oldest_lines():
    before = "\n".join(told(said(1, 3), "", 1_000))
    lines = told(said(4, 40), before, 200)
    assert lines[:2] == ["[Condensed history]", "--- Summarized Context (37 items) ---"]
    assert lines[-2:] == ["[✓ user: Sentence number 40 of a long talk.] (m40)", "[Summary truncated]"]


def test_one_line_longer_than_the_room_is_shown_from_its_beginning():
    error = ToolResult("a", "Error: " + "x" * 4_000)
    numbered = ((1, call("a", "bash", '{"command": "%s"}' % ("y" * 400))), (2, error))
    lines = told(numbered, "", 60)
    assert lines[0] == "--- Summarized Context (2 items) ---"
    assert lines[1].startswith("[❌ bash: Command: yyy")
    assert lines[-1] == "[Summary truncated]"


async def test_the_second_summary_in_lines_is_an_update_of_the_first():
    chat = Chat(64_000, policy=Policy(summary=Summary(form="lines")))
    for _ in range(2):
        chat.turns(6, size=4_000)
        events = await chat.fold(keep=2)
        assert isinstance(events[-1], SummaryFinished)
    text = next(m.text for m in chat.manager.view() if isinstance(m, ContextNote))
    assert "--- Summarized Context (" in text
    assert "[Update 2]" in text
