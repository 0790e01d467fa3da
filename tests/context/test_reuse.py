import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mycode.context import reuse
from mycode.context.names import Names
from mycode.core.messages import AssistantMessage, ToolCall, ToolResult, UserMessage


def passages(*messages):
    names = Names()
    for seq, message in enumerate(messages, 1):
        names.read(seq, message)
    return names


def test_what_the_person_and_the_agent_name_is_likelier_needed_than_what_only_scrolled_by():
    scrolled = "\n".join(f"helper_function_{n} = {n}" for n in range(40))
    likely = reuse.score(
        passages(
            UserMessage("fix parse_header please"),
            AssistantMessage("I look at read_config.", (ToolCall("a", "bash", '{"command": "cat read_config.py"}'),)),
            ToolResult("a", scrolled),
        )
    )
    assert likely["parse_header"] > likely["helper_function_7"]
    assert likely["read_config"] > likely["helper_function_7"]


def test_a_hash_is_less_likely_than_a_symbol_in_the_same_place():
    likely = reuse.score(passages(UserMessage("start"), AssistantMessage("9fceb02d and parse_header")))
    assert likely["9fceb02d"] < likely["parse_header"]


def test_there_is_one_weight_for_each_feature_and_one_intercept():
    values = next(iter(reuse.features(passages(UserMessage("fix parse_header"))).values()))
    assert len(values) == len(reuse.FEATURES) == len(reuse.WEIGHTS) - 1


@settings(max_examples=60)
@given(st.lists(st.text(max_size=200), max_size=8))
def test_every_score_is_a_probability_and_the_same_each_time(texts):
    read_once = passages(*(UserMessage(text) for text in texts))
    likely = reuse.score(read_once)
    assert all(0 <= value <= 1 for value in likely.values())
    assert likely == reuse.score(read_once)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.booleans(), st.text("ab_/.:→ m1\n`\"'P", max_size=90)), max_size=8))
def test_the_score_is_the_logistic_function_of_the_weighted_features(said):
    read_once = passages(*((UserMessage if person else AssistantMessage)(text) for person, text in said))
    found = reuse.features(read_once)
    *weights, intercept = reuse.WEIGHTS
    likely = {
        name: 1 / (1 + math.exp(-intercept - sum(w * v for w, v in zip(weights, values, strict=True))))
        for name, values in found.items()
    }
    assert reuse.score(read_once) == pytest.approx(likely)
