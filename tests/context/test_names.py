import json
from array import array

from hypothesis import given, settings
from hypothesis import strategies as st

from mycode.context import reuse
from mycode.context.facts import FactLedger
from mycode.context.names import LEVELS, Names
from mycode.context.selection import fold_text, select
from mycode.core.messages import AssistantMessage, Message, ToolCall, ToolResult, UserMessage
from mycode.core.summaries import SummaryRecord

WORDS = (
    "parse_header",
    "src/http/headers.py",
    "http.headers",
    "Retry",
    "--quiet",
    "`split_params`",
    "if",
    "the",
    "503",
)
lines = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
texts = st.lists(lines, max_size=4).map("\n".join)


@st.composite
def conversations(draw: st.DrawFn) -> list[tuple[int, Message]]:
    """Prompts, answers with a call, and results, in an order that comes."""
    said: list[Message] = []
    for number in range(draw(st.integers(1, 3))):
        said += [
            UserMessage(draw(texts)),
            AssistantMessage(draw(texts), (ToolCall(f"c{number}", "bash", json.dumps({"command": draw(lines)})),)),
            ToolResult(f"c{number}", draw(texts)),
        ]
    return list(enumerate(said, 1))


def told(said: list[tuple[int, Message]]) -> FactLedger:
    ledger = FactLedger()
    calls: dict[str, ToolCall] = {}
    for seq, message in said:
        if isinstance(message, AssistantMessage):
            calls.update((call.id, call) for call in message.tool_calls)
        ledger = ledger.add(seq, message, calls.get(message.call_id) if isinstance(message, ToolResult) else None)
    return ledger


def count(text: str) -> int:
    return len(text.split()) + text.count("_") + text.count("/")


def fold(said: list[tuple[int, Message]], ledger: FactLedger, budget: int, digest: str = "", keep: int = 0) -> str:
    previous = SummaryRecord("s1", 0.0, (1, 1), 0, "rules", "manual", "", digest=digest) if digest else None
    cut = len(said) - keep
    return fold_text(said[:cut], previous=previous, ledger=ledger, budget_tokens=budget, count=count, recent=said[cut:])


@settings(max_examples=25, deadline=None)
@given(conversations(), st.integers(10, 200), st.integers(0, 3))
def test_a_fold_is_the_same_whether_its_messages_were_gathered_as_they_came_or_are_read_now(said, budget, keep):
    digest = fold(said, FactLedger(), 60)
    assert fold(said, told(said), budget, digest, keep) == fold(said, FactLedger(), budget, digest, keep)
    # What stayed after an earlier fold is read again, what came since is known.
    assert fold(said, told(said[3:]), budget, digest, keep) == fold(said, FactLedger(), budget, digest, keep)


@settings(max_examples=25, deadline=None)
@given(conversations(), st.integers(10, 200))
def test_a_ledger_from_before_does_not_know_what_was_said_since(said, budget):
    before = told(said[:3])
    later = before
    for seq, message in said[3:]:
        later = later.add(seq, message)
    assert fold(said[:3], before, budget) == fold(said[:3], FactLedger(), budget)
    assert [before.passage(seq) is None for seq, _ in said] == [False] * 3 + [True] * (len(said) - 3)
    assert None not in [later.passage(seq) for seq, _ in said]


@settings(max_examples=60, deadline=None)
@given(st.lists(texts, min_size=1, max_size=6), st.integers(10, 200))
def test_lines_that_wait_until_their_rank_is_reached_are_chosen_as_if_they_had_not_waited(said, budget):
    def chosen(*, waiting: bool) -> str:
        names = Names()
        for seq, text in enumerate(said, 1):
            names.read(seq, UserMessage(text))
        if not waiting:
            first = array("q", (number for level in names.levels for number in level))
            names.levels = [first, *(array("q") for _ in LEVELS[1:])]
        return select(names, range(len(said)), reuse.score(names), budget, count, shown=(), handles=True)

    assert chosen(waiting=True) == chosen(waiting=False)


def test_an_earlier_fold_counts_as_what_was_said_before():
    names = Names()
    names.read(7, UserMessage("parse_header and split_params"))
    reader = names.reader.branch()
    earlier = ((1, "fix parse_header"), (2, "in src/http/headers.py"))
    joined = names.after([reader.read(seq, UserMessage(text)) for seq, text in earlier], reader)
    assert {text: use.messages for text, use in joined.uses.items()} == {
        "parse_header": [-2, 0],
        "src/http/headers.py": [-1],
        "split_params": [0],
    }
    assert [joined.passages[number].seq for number in (-2, -1, 0)] == [1, 2, 7]
    assert {text: use.messages for text, use in names.uses.items()} == {"parse_header": [0], "split_params": [0]}
