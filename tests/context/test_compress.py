import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mycode import api
from mycode.context.compress import TITLE, compress
from mycode.context.inspect import describe
from mycode.context.transcripts import read_items, tokens
from mycode.core.errors import InputError

Transcript = list[dict[str, Any]]


def count(text: str) -> int:
    return (len(text) + 3) // 4


def size(messages: Transcript) -> int:
    return sum(tokens(message, count) for message in messages)


def step(n: int, *, lines: int = 30) -> Transcript:
    """One call with its result, OpenAI style."""
    call = {"id": f"c{n}", "type": "function"}
    arguments = json.dumps({"path": f"src/module_{n}.py"})
    body = "\n".join(f"def helper_{n}_{line}(value): return value + {line}" for line in range(lines))
    return [
        {
            "role": "assistant",
            "content": f"I read module_{n} for handle_request_{n}.",
            "tool_calls": [{**call, "function": {"name": "read_file", "arguments": arguments}}],
        },
        {"role": "tool", "tool_call_id": f"c{n}", "content": body},
    ]


def session(steps: int = 12) -> Transcript:
    start: Transcript = [
        {"role": "system", "content": "You are careful."},
        {"role": "user", "content": "Make handle_request_3 faster, but keep src/module_3.py readable."},
    ]
    return start + [message for n in range(steps) for message in step(n)]


def pairs_are_whole(messages: Transcript) -> bool:
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return False
            waiting.discard(message["tool_call_id"])
        elif waiting:
            return False
        else:
            waiting = {call["id"] for call in message.get("tool_calls") or ()}
    return not waiting


def test_a_long_session_fits_and_keeps_its_ends_and_its_names():
    messages = session()
    result = compress(messages, 900, count=count)
    assert size(result) <= 900
    assert result[:2] == messages[:2]
    assert result[2]["content"].startswith(TITLE)
    assert "handle_request_1" in result[2]["content"]
    assert "read_file src/module_2.py" in result[2]["content"]
    assert pairs_are_whole(result)


def test_with_room_enough_the_newest_steps_stay_word_for_word():
    messages = session()
    assert compress(messages, 3500, count=count)[-2:] == messages[-2:]


def test_a_session_that_fits_comes_back_as_it_is():
    messages = session(2)
    assert compress(messages, 100_000, count=count) == messages


def test_a_compressed_session_can_be_compressed_again_without_losing_what_it_kept():
    once = compress(session(), 1500, count=count)
    more = [*once, *(message for n in range(20, 26) for message in step(n))]
    twice = compress(more, 1500, count=count)
    text = json.dumps(twice)
    assert size(twice) <= 1500
    assert text.count(TITLE.split("\n")[0]) == 1
    assert "handle_request_5" in text
    assert "handle_request_21" in text


def test_blocks_come_in_and_go_out_in_their_own_shape():
    messages: Transcript = [{"role": "user", "content": [{"type": "text", "text": "Fix parse_header."}]}]
    for n in range(10):
        use = {"type": "tool_use", "id": f"t{n}", "name": "Read", "input": {"file_path": f"src/part_{n}.ts"}}
        body = "\n".join(f"export const value_{n}_{k} = {k}" for k in range(20))
        messages.append({"role": "assistant", "content": [{"type": "text", "text": f"Now part_{n}."}, use]})
        messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{n}", "content": body}]})
    result = compress(messages, 1000, count=count)
    assert size(result) <= 1000
    assert result[0] == messages[0]
    assert result[-1]["content"][0]["type"] == "tool_result"
    assert result[-2]["content"][1] == messages[-2]["content"][1]
    assert "Read src/part_3.ts" in result[1]["content"]


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        ("hello", "A transcript is a list of messages; this is a text."),
        (["hello"], "Message 0 is a text, not an object with a role and a content."),
        ([{"content": "x"}], "Message 0 has no role; known are system, developer, user, assistant and tool."),
        (
            [{"role": "user", "content": "x"}, {"role": "robot", "content": "x"}],
            "Message 1 has the role 'robot'; known are system, developer, user, assistant and tool.",
        ),
        ([{"role": "user", "content": 5}], "Message 0 has a content that is a number, not text or a list of blocks."),
        (
            [{"role": "user", "content": ["x"]}],
            "Message 0 has a content block that is a text, not an object with a type.",
        ),
        (
            [{"role": "tool", "content": "x"}],
            "Message 0 is a tool result without tool_call_id, so its call cannot be found.",
        ),
        (
            [{"role": "assistant", "tool_calls": [{"id": "a"}]}],
            "Message 0 has a tool call (0) without a function name.",
        ),
        ([{"role": ["user"], "content": "x"}], "Message 0 has a role that is a list, not a text."),
        (
            [{"role": "assistant", "tool_calls": [{"function": {"name": "x"}}]}],
            "Message 0 has a tool call (0) without an id.",
        ),
    ],
)
def test_what_is_no_transcript_gets_one_clear_sentence(messages, sentence):
    with pytest.raises(InputError) as caught:
        compress(messages, 100, count=count)
    assert str(caught.value) == sentence


def test_a_budget_too_small_for_anything_names_the_least_possible():
    with pytest.raises(InputError, match=r"A budget of 20 tokens is too small: at least \d+ are needed here\."):
        compress(session(), 20, count=count)


def test_system_messages_alone_need_no_more_than_their_own_size():
    alone = session(0)[:1]
    with pytest.raises(InputError, match=f"at least {size(alone)} are needed here"):
        compress(alone, size(alone) - 1, count=count)


_LONG = "The quick brown fox jumps over the lazy dog in src/app/main.py. " * 60


@pytest.mark.parametrize("budget", [500, 700, 1000])
@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": _LONG} for _ in range(5)],
        [{"role": "assistant", "content": _LONG}, {"role": "user", "content": "x"}] * 2,
        [{"role": "user", "content": "x"}, {"role": "assistant", "content": None}, {"role": "user", "content": _LONG}],
        [*session(0), *(m for _ in range(9) for m in ({**step(1)[0]}, {**step(1)[1], "content": _LONG}))],
    ],
    ids=["only the person speaks", "long answers", "little before a long request", "the same call id over and over"],
)
def test_where_names_are_few_the_newest_steps_fill_the_room_and_never_more(messages, budget):
    assert size(compress(messages, budget, count=count)) <= budget


@pytest.mark.parametrize(
    ("budget", "mode", "sentence"),
    [
        ("10", "rules", "A budget is a whole number of tokens; this is '10'."),
        (float("nan"), "llm", "A budget is a whole number of tokens; this is nan."),
        (100, "short", "There is no mode 'short': known are rules, llm, hybrid."),
        (100, "llm", "The mode llm asks a model: name one, e.g. model='openai/gpt-5-mini'."),
    ],
)
def test_a_program_that_asks_for_what_cannot_be_gets_one_clear_sentence(budget, mode, sentence):
    with pytest.raises(InputError) as caught:
        api.compress([{"role": "user", "content": "hi"}], budget, mode)
    assert str(caught.value) == sentence


def test_a_mode_that_needs_a_model_is_refused():
    with pytest.raises(InputError, match="The mode 'llm' needs a model"):
        compress(session(), 900, count=count, mode="llm")


messages_strategy = st.lists(
    st.one_of(
        st.text(max_size=300).map(lambda text: [{"role": "user", "content": text}]),
        st.text(max_size=300).map(lambda text: [{"role": "assistant", "content": text}]),
        st.integers(0, 30).map(lambda n: step(n, lines=n)),
        st.integers(0, 30).map(lambda n: step(n)[:1]),
        st.integers(0, 30).map(lambda n: step(n)[1:]),
    ),
    max_size=10,
).map(lambda parts: [message for part in parts for message in part])


@settings(max_examples=80)
@given(messages_strategy, st.integers(60, 3000))
def test_whatever_comes_in_what_goes_out_fits_and_has_whole_pairs(messages, budget):
    result = compress(messages, budget, count=count)
    assert size(result) <= budget
    assert pairs_are_whole(result)
    assert result == compress(messages, budget, count=count)


def test_an_inspection_tells_who_takes_the_room_and_what_stands_twice():
    body = "the same long output " * 20
    transcript = read_items([*session(3), *step(7), {"role": "user", "content": "thanks"}])
    messages = [message for item in transcript for message in item.messages]
    repeated = [*messages[:2], *([messages[2]] * 2), *messages[3:]]
    found = describe(repeated, count, keep=2)
    assert found.messages == len(repeated)
    assert found.tokens == sum(share.tokens for share in found.roles)
    assert found.roles[0].name == "tool results"
    assert [share.name for share in found.tools] == ["read_file"]
    assert found.duplicates == 1
    assert found.maskable_saves > 0
    assert len(body) > 80
