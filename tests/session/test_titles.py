"""Titles come from what was first said."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycode.core.redact import redact
from mycode.core.visible import display_width
from mycode.session.titles import title_of


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Fix the failing test in app.py, please. Then commit.", "Fix the failing test in app.py, please"),
        ("What does this do? I wonder.", "What does this do?"),
        ("\n\n```\n# Plan\n- rename things", "Plan"),
        ("use v1.2 of e.g. numpy", "use v1.2 of e.g. numpy"),
        ("修复解析器。然后测试。", "修复解析器"),
        ("修复解析器" * 20, "修复解析器" * 5 + "修复解析…"),
        ("", ""),
        ("--- ***", ""),
        ("a\x1b[31mred\x1b[0m\tword", "ared word"),
    ],
)
def test_a_title_is_the_first_sentence_on_one_line(text: str, title: str) -> None:
    assert title_of(text, lambda same: same) == title


def test_a_title_holds_no_secret() -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    assert title_of(f"log in with {secret} now", redact) == "log in with [redacted:github-token] now"


@given(st.text(max_size=400))
def test_a_title_is_one_line_of_at_most_sixty_columns(text: str) -> None:
    title = title_of(text, redact)
    assert display_width(title) <= 60
    assert title == " ".join(title.split())
    assert not {unicodedata.category(char) for char in title} & {"Cc", "Cs", "Zl", "Zp"}
