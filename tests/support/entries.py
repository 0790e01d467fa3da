"""Entries for tests: built by hand, or any at all by hypothesis."""

from hypothesis import strategies as st

from mycode.core.entries import Body, Checkpoint, Entry, Grant, Note, Unknown
from mycode.core.messages import AssistantMessage, Image, ToolCall, ToolResult, UserMessage
from mycode.core.summaries import Drop, MaskEpoch, Pin, SummaryContext, SummaryRecord, Undo, Verification
from mycode.core.usage import Usage
from mycode.session.entries import MESSAGE, sealed, sort_of

NOON = 1_790_000_000.0


def entry(seq: int, body: Body, *, tokens: int | None = None) -> Entry:
    """An entry as it is read back: hash included, a message counted as four tokens unless said otherwise."""
    if tokens is None:
        tokens = 4 if sort_of(body) == MESSAGE else 0
    return sealed(Entry(seq, f"e{seq}", NOON + seq, body, tokens))


def entries(*bodies: Body) -> list[Entry]:
    return [entry(seq, body) for seq, body in enumerate(bodies, 1)]


def call(call_id: str, name: str = "read_file", arguments: str = '{"path":"app.py"}') -> AssistantMessage:
    return AssistantMessage("", (ToolCall(call_id, name, arguments),), "tool_calls")


def conversation(turns: int) -> list[Entry]:
    """Four rows a turn: a prompt, a call, its result, an answer."""
    bodies: list[Body] = []
    for turn in range(1, turns + 1):
        bodies += [
            UserMessage(f"question {turn}"),
            call(f"c{turn}"),
            ToolResult(f"c{turn}", f"result {turn}"),
            AssistantMessage(f"answer {turn}"),
        ]
    return entries(*bodies)


def summary(covers: tuple[int, int], *, narrative: str = "What was done.", record_id: str = "s") -> SummaryRecord:
    return SummaryRecord(record_id, NOON, covers, 1, "rules", "manual", narrative)


_texts = st.text(max_size=60)
_usages = st.builds(
    Usage, st.integers(0, 10**6), st.integers(0, 10**5), cost_usd=st.none() | st.floats(0, 9, allow_nan=False)
)
_images = st.lists(st.builds(Image, _texts, st.just("image/png"), _texts, st.integers(0, 99)), max_size=2).map(tuple)
_data = st.dictionaries(_texts, st.none() | st.booleans() | st.integers(-(2**60), 2**60) | _texts, max_size=3)
_seqs = st.integers(1, 500)

bodies: st.SearchStrategy[Body] = st.one_of(
    st.builds(UserMessage, _texts, _images),
    st.builds(
        AssistantMessage,
        _texts,
        st.lists(st.builds(ToolCall, _texts, _texts, _texts), max_size=3).map(tuple),
        st.sampled_from(["stop", "tool_calls", "length", "refusal"]),
        _texts,
        st.none() | _usages,
        _data,
    ),
    st.builds(ToolResult, _texts, _texts, st.booleans(), _images),
    st.builds(
        SummaryRecord,
        _texts,
        st.floats(0, 2e9),
        st.tuples(_seqs, _seqs),
        st.integers(0, 9),
        st.sampled_from(["rules", "llm", "hybrid"]),
        st.sampled_from(["ratio", "manual", "emergency"]),
        _texts,
        key_points=st.lists(_texts, max_size=2).map(tuple),
        context=st.builds(SummaryContext, decisions=st.lists(_texts, max_size=2).map(tuple)),
        verification=st.none() | st.builds(Verification, st.floats(0, 1), st.floats(0, 1)),
        usage=st.none() | _usages,
    ),
    st.builds(MaskEpoch, st.dictionaries(_seqs, _texts, max_size=3), st.integers(0, 99), st.integers(0, 99)),
    st.builds(Undo, _seqs),
    st.builds(Drop, st.lists(_seqs, max_size=3).map(tuple), st.booleans()),
    st.builds(Pin, _texts, st.sampled_from(["person", "message", "constraint"]), st.none() | _seqs),
    st.builds(Grant, _texts, _texts, st.sampled_from(["once", "always", "no"]), _texts, st.none() | _texts),
    st.builds(Checkpoint, _texts, st.integers(0, 99)),
    st.builds(Note, _texts, _data),
    st.builds(Unknown, st.sampled_from(['{"kind":"hologram","size":3}', '{"kind":"unknown"}', "[1,2]"])),
)

logs: st.SearchStrategy[list[Entry]] = st.lists(bodies, max_size=25).map(lambda found: entries(*found))
