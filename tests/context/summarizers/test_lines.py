from mycode.context.facts import FactLedger
from mycode.context.policy import Policy, Summary
from mycode.context.summarizers import Fold
from mycode.context.summarizers.lines import OMITTED, merged, tell
from mycode.core.events import SummaryFinished
from mycode.core.messages import AssistantMessage, ContextNote, Message, ToolResult, UserMessage
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


async def test_the_second_summary_in_lines_is_an_update_of_the_first():
    chat = Chat(64_000, policy=Policy(summary=Summary(form="lines")))
    for _ in range(2):
        chat.turns(6, size=4_000)
        events = await chat.fold(keep=2)
        assert isinstance(events[-1], SummaryFinished)
    text = next(m.text for m in chat.manager.view() if isinstance(m, ContextNote))
    assert "--- Summarized Context (" in text
    assert "[Update 2]" in text
