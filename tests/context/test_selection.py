import json

from hypothesis import given, settings
from hypothesis import strategies as st

from mycode.context.facts import FactLedger
from mycode.context.passages import Reader
from mycode.context.selection import fold_text, read_digest
from mycode.core.messages import AssistantMessage, Message, ToolCall, ToolResult, UserMessage
from mycode.core.summaries import SummaryRecord


def count(text: str) -> int:
    return len(text.split()) + text.count("_") + text.count("/")


def called(call_id: str, tool: str, **arguments: object) -> AssistantMessage:
    return AssistantMessage("", (ToolCall(call_id, tool, json.dumps(arguments)),))


SESSION: list[tuple[int, Message]] = [
    (1, UserMessage("The parse_header function loses the charset. Fix it in src/http/headers.py.")),
    (2, called("a", "read_file", path="src/http/headers.py")),
    (3, ToolResult("a", "def parse_header(line):\n    return split_params(line)\n" + "UNUSED_VALUE = 1\n" * 40)),
    (4, AssistantMessage("The bug is in split_params: it drops everything after `; charset`.")),
    (5, called("b", "execute_bash", command="pytest tests/test_headers.py")),
    (6, ToolResult("b", "FAILED tests/test_headers.py::test_charset\nexit code: 1", is_error=True)),
]


def fold(
    messages: list[tuple[int, Message]],
    budget: int = 200,
    previous: SummaryRecord | None = None,
    recent: tuple[tuple[int, Message], ...] = (),
) -> str:
    return fold_text(messages, previous=previous, ledger=FactLedger(), budget_tokens=budget, count=count, recent=recent)


def record(digest: str, covers: tuple[int, int] = (1, 6)) -> SummaryRecord:
    return SummaryRecord("s1", 0.0, covers, 0, "rules", "manual", "", digest=digest)


def test_a_fold_reads_as_one_header_per_message_with_its_handle_then_lines_and_names():
    rows = fold(SESSION).split("\n")
    assert rows[0] == "m1 user:"
    assert rows[1] == " The parse_header function loses the charset. Fix it in src/http/headers.py."
    assert "m5 execute_bash pytest tests/test_headers.py:" in rows
    assert "m6 → ❌:" in "\n".join(rows)


def test_a_small_fold_keeps_what_was_said_and_drops_what_only_scrolled_by():
    text = fold(SESSION, budget=40)
    assert "parse_header" in text
    assert "split_params" in text
    assert text.count("UNUSED_VALUE") <= 1


def test_names_that_stay_verbatim_are_not_kept_twice():
    again = AssistantMessage("Now split_params and parse_header keep the charset.")
    assert "split_params" not in fold(SESSION[1:3], budget=12, recent=((4, again),))


def test_recent_messages_keep_their_own_seqs_even_where_the_log_holds_other_entries_between():
    again = AssistantMessage("Now split_params and parse_header keep the charset.")
    ledger = FactLedger().add(4, AssistantMessage("Nothing to see.")).add(7, again)
    text = fold_text(SESSION[1:3], previous=None, ledger=ledger, budget_tokens=12, count=count, recent=((7, again),))
    assert "split_params" not in text


def test_a_second_fold_carries_on_what_the_first_one_kept():
    first = fold(SESSION)
    later: list[tuple[int, Message]] = [
        (7, AssistantMessage("I will change join_params too.")),
        (8, UserMessage("Good.")),
    ]
    text = fold(later, previous=record(first))
    assert all(name in text for name in ("m1 user:", "parse_header", "split_params", "join_params", "m7 agent:"))


def test_a_digest_is_read_back_with_the_roles_and_headers_it_had():
    passages = read_digest(fold(SESSION), Reader())
    assert [(p.seq, p.role) for p in passages if p.seq in {1, 4, 6}] == [(1, "user"), (4, "assistant"), (6, "tool")]
    assert passages[0].title == "m1 user:"


def test_nothing_is_said_where_nothing_fits():
    assert fold(SESSION, budget=3) == ""
    assert fold([]) == ""


@settings(max_examples=60)
@given(st.lists(st.text(alphabet="ab_/.:→ m1\n`\"'", max_size=120), min_size=1, max_size=8), st.integers(0, 120))
def test_a_fold_is_never_longer_than_its_budget_even_three_times_over(texts, budget):
    digest = ""
    for turn in range(3):
        messages: list[tuple[int, Message]] = [(turn * 8 + n, UserMessage(text)) for n, text in enumerate(texts, 1)]
        digest = fold(messages, budget, record(digest) if digest else None)
        assert count(digest) <= budget
