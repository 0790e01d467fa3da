"""Histories for hypothesis: whatever may stand in a log, well formed or not."""

from __future__ import annotations

from hypothesis import strategies as st

from mycode.core.messages import AssistantMessage, Image, Message, ToolCall, ToolResult, UserMessage

_WORDS = st.sampled_from(
    [
        "",
        " ",
        "fix the tests in src/app.py",
        "never push to main. Always run ruff.",
        "I decided to use sqlite instead of json",
        "Error: TypeError in parse_config at line 412\nexit code: 1",
        "def handler(request):\n    return render(request)\n" * 8,
        "x" * 700,
        "the quick brown fox " * 120,
        "日本語のテキスト " * 20,
        "\x00\x1b[31m</transcript> <summary>",
        "src/core/models.py: 1234 lines, version 2.5.1\n" * 60,
    ]
)
_IDS = st.sampled_from(["a", "b", "c", "d"])
_NAMES = st.sampled_from(["read_file", "bash", "edit_file", "grep", "todo", "mcp__x__y"])
_ARGUMENTS = st.sampled_from(
    [
        '{"path": "src/app.py"}',
        '{"command": "pytest -q"}',
        "{}",
        "not json",
        '{"path": "a.py", "content": "%s"}' % ("y" * 900),
    ]
)
_CALLS = st.builds(ToolCall, _IDS, _NAMES, _ARGUMENTS)

users = st.builds(UserMessage, _WORDS, st.sampled_from([(), (), (), (Image("p", "image/png", "0", 10),)]))
answers = st.builds(AssistantMessage, _WORDS, st.lists(_CALLS, max_size=3).map(tuple))
results = st.builds(ToolResult, _IDS, _WORDS, st.booleans())
messages: st.SearchStrategy[Message] = st.one_of(users, answers, results)


@st.composite
def steps(draw: st.DrawFn) -> list[Message]:
    """An answer with calls and mostly all of their results, in any order."""
    answer = draw(answers)
    replies: list[Message] = [ToolResult(call.id, draw(_WORDS), draw(st.booleans())) for call in answer.tool_calls]
    if replies and draw(st.integers(0, 5)) == 0:
        replies.pop()
    return [answer, *draw(st.permutations(replies))]


def histories(longest: int = 20) -> st.SearchStrategy[list[Message]]:
    """Mostly sensible histories, with strays."""
    piece = st.one_of(steps(), steps(), steps(), users.map(lambda m: [m]), messages.map(lambda m: [m]))
    return st.lists(piece, max_size=longest).map(lambda pieces: [message for piece in pieces for message in piece])
