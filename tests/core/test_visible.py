"""Foreign text reaches no terminal as it came."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycode.core.visible import display_width, in_json, one_line, plain, revealed


def test_ordinary_text_of_every_script_stays_as_it_is():
    text = (
        "def f(x):\n\treturn 'größe' # 日本語 عربى עברית हिन्दी é 👍🏽 👩\u200d💻 ❤\ufe0f 1\ufe0f\u20e3 نمی\u200cخواهم\n"
    )

    assert plain(text) == text
    assert revealed(text) == text


@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("\x1b[1;35mpink\x1b[m", "pink"),
        ("\x1b[3J\x1b[1;1H$ all tests passed", "$ all tests passed"),
        ("\x9b1mbold", "bold"),
        ("\x1b]2;owned\x07", "␛]2;owned␇"),
        ("\x1b]52;c;cm0=\x1b\\", "␛]52;c;cm0=␛\\"),
        ("\x1bP+q544e\x1b\\", "␛P+q544e␛\\"),
        ("\x1b_Gf=24;AA\x1b\\", "␛_Gf=24;AA␛\\"),
        ("\x90q\x9c", "<U+0090>q<U+009C>"),
        ("\x1bcgone", "gone"),
        ("\x1b(0lqqk", "lqqk"),
        ("safe\rrm -rf", "safe␍rm -rf"),
        ("dos\r\nends\r\n", "dos\nends\n"),
        ("back\x08\x08", "back␈␈"),
        ("nul\x00del\x7f", "nul␀del␡"),
        ("user\u202etxt.exe", "user<U+202E>txt.exe"),
        ("a\u2066b\u2069", "a<U+2066>b<U+2069>"),
        ("pass\u200bword", "pass<U+200B>word"),
        ("x\u200dy", "x<U+200D>y"),
        ("a\ufe0fb", "a<U+FE0F>b"),
        ("\U000e0048\U000e0049", "<U+E0048><U+E0049>"),
        ("smuggled\U000e0150", "smuggled<U+E0150>"),
        ("rm\U00013430x\U00016fe4y\U0001d159", "rm<U+13430>x<U+16FE4>y<U+1D159>"),
        ("line\u2028break", "line<U+2028>break"),
        ("lone\ud800", "lone\ufffd"),
        ("\x1b[", "␛["),
    ],
)
def test_what_is_hidden_is_dropped_or_shown(hostile: str, harmless: str):
    assert plain(hostile) == harmless


def test_what_a_person_approves_hides_nothing_behind_an_escape():
    assert revealed("ls\x1b[;rm -rf build") == "ls␛[;rm -rf build"


def test_a_line_is_cut_at_whole_letters():
    assert one_line("fix\n  the   parser", 80) == "fix the parser"
    assert one_line("fix the parser", 8) == "fix the…"
    assert one_line("日本語テスト", 5) == "日本…"
    assert one_line("日本語", 6) == "日本語"
    assert one_line("e\u0301e\u0301e\u0301", 3) == "e\u0301e\u0301e\u0301"
    assert one_line("日本", 1) == "…"
    assert one_line("anything", 0) == ""
    assert one_line("anything", -3) == ""


def test_width_counts_columns():
    assert display_width("abc") == 3
    assert display_width("日本 ok") == 7
    assert display_width("e\u0301") == 1
    assert display_width("👍") == 2
    assert display_width("❤\ufe0f") == 2


@given(st.text(st.characters(), max_size=80))
def test_no_control_character_survives(text: str):
    shown = plain(text)

    assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t"]
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u200b")
    assert plain(shown) == shown
    shown.encode()


@given(st.text(max_size=60), st.integers(-2, 40))
def test_a_line_never_passes_its_width(text: str, width: int):
    line = one_line(text, width)

    assert "\n" not in line
    assert display_width(line) <= max(width, 0)


@given(st.text())
def test_json_with_hidden_signs_escaped_is_the_same_value(text: str) -> None:
    shown = in_json(json.dumps(text, ensure_ascii=False))
    assert json.loads(shown) == text
    assert plain(shown) == shown
