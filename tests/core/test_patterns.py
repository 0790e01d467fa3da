"""A pattern that is compiled late behaves as one that was compiled at once."""

import re

from hypothesis import given
from hypothesis import strategies as st

from mycode.core.patterns import pattern


@given(st.text(alphabet="ab1 ", max_size=30))
def test_a_late_pattern_finds_what_a_compiled_one_finds(text: str) -> None:
    late, early = pattern(r"([ab]+)(\d)", re.IGNORECASE), re.compile(r"([ab]+)(\d)", re.IGNORECASE)
    assert late.findall(text) == early.findall(text)
    assert late.sub("x", text) == early.sub("x", text)
    assert (late.search(text) is None) == (early.search(text) is None)
    assert (late.pattern, late.groups) == (early.pattern, early.groups)
