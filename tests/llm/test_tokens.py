"""How texts are counted, with the tokenizer and without it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mycode
from mycode.llm.tokens import Tokens, estimate

SOURCES = sorted(Path(mycode.__file__).parent.rglob("*.py"))


@pytest.fixture(scope="module", params=["openai/gpt-5", "openai/gpt-4"])
def counter(request: pytest.FixtureRequest) -> Tokens:
    counter = Tokens(request.param)
    counter.load()
    return counter


def test_a_counter_is_exact_once_it_has_loaded() -> None:
    counter = Tokens("openai/gpt-5")
    before = (counter.exact, counter.count("Hello, world."))
    counter.load()
    assert before[0] is False
    assert before[1] > 0
    assert (counter.exact, counter.count("Hello, world.")) == (True, 4)


def test_loading_leaves_the_environment_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "/somewhere/else")
    Tokens("openai/gpt-4").load()
    assert os.environ["TIKTOKEN_CACHE_DIR"] == "/somewhere/else"


def test_marks_of_the_tokenizer_inside_a_text_are_text(counter: Tokens) -> None:
    assert counter.count("<|endoftext|>") > 1


@pytest.mark.parametrize("sign", [" ", "=", "\n", "a"])
def test_a_megabyte_of_one_sign_is_counted(counter: Tokens, sign: str) -> None:
    assert 0 < counter.count(sign * 1_000_000) <= 1_000_000


@given(st.text(max_size=300))
def test_any_text_has_a_count_and_an_estimate(text: str) -> None:
    exact = Tokens("openai/gpt-5")
    exact.load()
    assert (exact.count(text) == 0) == (text == "")
    assert (estimate(text) == 0) == (text == "")


def test_half_a_surrogate_pair_is_counted(counter: Tokens) -> None:
    assert counter.count("broken \ud83d here") > 2
    assert estimate("broken \ud83d here") >= 2


def test_the_estimate_of_a_sessions_worth_of_text_is_within_five_percent(counter: Tokens) -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    assert estimate(text, counter._name) == pytest.approx(counter.count(text), rel=0.05)


@pytest.mark.parametrize(
    "text",
    [
        "Wer später wissen möchte, warum eine Datei geändert wurde, schlägt es in der Geschichte nach. " * 5,
        "Кто позже захочет узнать, почему файл был изменён, найдёт это в истории изменений. " * 5,
        "以后想知道某个文件为什么被修改的人，可以在历史记录里找到原因。" * 5,
        "파일이 왜 바뀌었는지는 기록에서 찾을 수 있습니다. " * 5,
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==" * 5,
        "3f786850e387550fdab836ed7e6dc881de23001b 89e6c98d92887913cadf06b2adb97f26cde4849b " * 5,
    ],
    ids=["german", "russian", "chinese", "korean", "base64", "hex"],
)
def test_other_scripts_and_random_strings_are_estimated_within_a_third(counter: Tokens, text: str) -> None:
    assert estimate(text, counter._name) == pytest.approx(counter.count(text), rel=0.33)


def test_claude_counts_start_above_the_nearest_public_tokenizer() -> None:
    text = "def answer() -> int:\n    return 42\n" * 50
    claude, gpt = Tokens("anthropic/claude-opus-5"), Tokens("openai/gpt-5")
    claude.load()
    gpt.load()
    assert claude.count(text) == round(gpt.count(text) * 1.15)
