"""Old text is found exactly or in a form that means the same; everything outside it stays as it was."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mycode.core.errors import ToolError
from mycode.tools.matching import NotFound, find
from mycode.tools.replacing import Applied, apply


def test_an_exact_and_unique_text_is_replaced() -> None:
    assert apply("a = 1\nb = 2\n", "b = 2", "b = 3") == Applied("a = 1\nb = 3\n", "exact", ((2, 2),))


def test_a_text_in_several_places_is_refused_with_their_lines() -> None:
    with pytest.raises(ToolError, match=r"3 places: lines 1, 3, 4\. Quote more"):
        apply("x = 1\ny\nx = 1\nx = 1\n", "x = 1", "x = 2")


def test_overlapping_places_are_ambiguous() -> None:
    with pytest.raises(ToolError, match="2 places"):
        apply("aaa", "aa", "b")


def test_a_looser_form_is_not_tried_because_the_exact_one_is_ambiguous() -> None:
    # but for the shift only one place would fit as whole lines
    with pytest.raises(ToolError, match="2 places: lines 1, 2"):
        apply("  go()\nok = go()\n", "go()", "stop()")


def test_every_place_is_replaced_on_request() -> None:
    assert apply("a b a b a", "a", "cc", replace_all=True).text == "cc b cc b cc"


def test_every_place_is_replaced_whichever_way_its_lines_end() -> None:
    assert apply("a\nb;a\r\nb;", "a\nb", "c\nd", replace_all=True).text == "c\nd;c\r\nd;"


def test_every_place_in_a_looser_form_than_line_ends_is_refused() -> None:
    with pytest.raises(ToolError, match="2 places \\(but for trailing blanks\\)"):
        apply("a \nb\na \nb\n", "a\nb", "c", replace_all=True)


@pytest.mark.parametrize("new", [r"$1 \1 & \g<0> ${x} $& %s {0}", "\\n\\\\"])
def test_new_text_is_literal(new: str) -> None:
    assert apply("x old y", "old", new).text == f"x {new} y"


def test_equal_texts_change_nothing_and_are_refused() -> None:
    with pytest.raises(ToolError, match="same"):
        apply("a", "a", "a")


def test_an_empty_old_text_is_refused() -> None:
    with pytest.raises(ToolError, match="only creates files"):
        apply("a", "", "b")


def test_a_missing_text_is_not_found_even_if_its_words_are_there() -> None:
    with pytest.raises(NotFound):
        apply("def f(a, b):\n    return a\n", "def f(a,  b):", "x")


def test_case_and_inner_blanks_matter() -> None:
    assert find("Name = 1\nname  = 2\n", "name = 1") == []


def test_quoted_line_numbers_are_named_as_the_mistake() -> None:
    with pytest.raises(NotFound, match="line numbers of read_file"):
        apply("a\nb\n", "1\ta\n2\tb", "c")


@pytest.mark.parametrize(("ending"), ["\r\n", "\r"])
def test_line_ends_of_the_file_are_matched_and_given_to_new_lines(ending: str) -> None:
    text = ending.join(["a", "b", "c", ""])
    assert apply(text, "a\nb", "a\nx\ny") == Applied(ending.join(["a", "x", "y", "c", ""]), "line ends", ((1, 3),))


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_lines_added_by_an_exact_match_end_as_those_around(ending: str) -> None:
    text = ending.join(["a", "b", "c"])
    assert apply(text, "b", "x\ny").text == ending.join(["a", "x", "y", "c"])


def test_a_missing_last_line_end_stays_missing() -> None:
    assert apply("a\r\nb", "b", "c\nd").text == "a\r\nc\r\nd"


def test_in_a_mixed_file_kept_lines_keep_their_ends() -> None:
    assert apply("a\nb\r\nc\nd\r\n", "a\nb\nc", "a\nB\nnew\nc").text == "a\nB\nnew\nc\nd\r\n"
    assert apply("a\nb\r\nc\nd\r\n", "b\nc\n", "b\nnew\nc\n").text == "a\nb\r\nnew\r\nc\nd\r\n"


def test_an_empty_line_after_a_lone_carriage_return_stays_a_line() -> None:
    assert apply("a\rb\nc\n", "a\nb\nc", "a\n\nc").text == "a\r\rc\n"


def test_a_match_never_splits_a_line_end() -> None:
    assert apply("a\r\nb\r\n", "\nb", "\nc").text == "a\r\nc\r\n"


def test_a_carriage_return_inside_a_line_is_no_line_end_for_new_text() -> None:
    assert apply("10%\r20%\rdone\nnext\n", "20%\rdone", "a\nb").text == "10%\ra\nb\nnext\n"


def test_trailing_blanks_may_differ_and_untouched_lines_keep_theirs() -> None:
    assert apply("a  \nb\t\nc\n", "a\nb", "a\nB") == Applied("a  \nB\t\nc\n", "trailing blanks", ((1, 2),))


def test_trailing_blanks_of_the_old_text_are_forgiven_at_line_ends_only() -> None:
    assert apply("foo\nbar\n", "foo  \nbar", "x").text == "x\n"
    assert apply("foo\nbar\n", "foo  ", "x").text == "x\nbar\n"
    with pytest.raises(NotFound):
        apply("foo()\nbar\n", "foo  ", "x")


def test_blanks_alone_are_found_exactly_or_not_at_all() -> None:
    assert find("a\n\nb\n", "   ") == []


@pytest.mark.parametrize(
    ("text", "old", "new", "changed"),
    [
        (
            "class A:\n    def f(self):\n        return 1\n",
            "def f(self):\n    return 1\n",
            "def f(self):\n\n    x = 2\n    return x\n",
            "class A:\n    def f(self):\n\n        x = 2\n        return x\n",
        ),
        (
            "if x:\n  a()\n  b()\n",
            "    a()\n    b()",
            "    a()\n    if y:\n        b()",
            "if x:\n  a()\n  if y:\n      b()\n",
        ),
        ("\tone\n\t\ttwo\r\n", "one\n\ttwo", "one\n\tthree", "\tone\n\t\tthree\r\n"),
    ],
)
def test_one_uniform_shift_is_applied_to_old_and_new_alike(text: str, old: str, new: str, changed: str) -> None:
    applied = apply(text, old, new)
    assert (applied.text, applied.form) == (changed, "indentation")


def test_a_shift_that_is_not_the_same_on_every_line_is_refused() -> None:
    with pytest.raises(NotFound):
        apply("    a\n        b\n", "a\n  b", "c")


def test_tabs_are_not_taken_for_blanks() -> None:
    with pytest.raises(NotFound):
        apply("\ta\n\tb\n", "    a\n    b", "c")


def test_shifted_places_must_be_unique_too() -> None:
    with pytest.raises(ToolError, match=r"2 places \(but for indentation\): lines 1, 3"):
        apply("  a\n  b\n    a\n    b\n", "a\nb\n", "c\n")


def test_new_text_that_cannot_be_shifted_along_is_refused() -> None:
    with pytest.raises(ToolError, match="not indented enough"):
        apply("  a\n  b\n", "    a\n    b", "    a\nb")


def test_typographic_quotes_and_dashes_are_matched_and_kept_where_the_text_keeps_them() -> None:
    text = "# “Fast” – don’t\nprint('x')\n"
    old = "# \"Fast\" - don't\nprint('x')"
    assert apply(text, old, "# \"Fast\" - do\nprint('y')") == Applied(
        "# “Fast” – do\nprint('y')\n", "quotes", ((1, 2),)
    )


def test_a_no_break_space_is_no_blank() -> None:
    with pytest.raises(NotFound):
        apply("a\u00a0b\n", "a b", "c")


def test_lines_are_counted_on_the_result() -> None:
    applied = apply("a\nx\na\n", "a", "b\nc", replace_all=True)
    assert applied.lines == ((1, 2), (4, 5))


# Properties

_PIECES = st.sampled_from(["a", "b", "  ", "\t", "\n", "\r\n", "\r", "“", '"', "x = 1", "\u00a0", "é", "$1", "\\1"])
_TEXT = st.lists(_PIECES, max_size=30).map("".join)


@given(before=_TEXT, old=_TEXT.filter(bool), after=_TEXT, new=_TEXT)
def test_what_is_outside_the_replaced_place_never_changes(before: str, old: str, after: str, new: str) -> None:
    text = before + old + after
    spans = find(text, old)
    try:
        applied = apply(text, old, new)
    except ToolError:
        return
    (span,) = spans
    assert applied.text.startswith(text[: span.start])
    assert applied.text.endswith(text[span.end :])
    assert len(applied.text) >= span.start + len(text) - span.end


@given(text=_TEXT, old=_TEXT, new=_TEXT)
def test_whatever_is_asked_the_answer_is_an_edit_or_a_refusal(text: str, old: str, new: str) -> None:
    try:
        applied = apply(text, old, new)
    except ToolError:
        return
    assert applied.text != text
    assert all(1 <= first <= last for first, last in applied.lines)


@given(before=_TEXT, after=_TEXT, old=st.text("abc =", min_size=1), new=st.text("abc =", min_size=1))
def test_an_exact_edit_and_its_reverse_give_the_original(before: str, after: str, old: str, new: str) -> None:
    text = f"{before}<{old}>{after}"
    assume(old != new)
    changed = apply(text, f"<{old}>", f"<{new}>").text
    assert changed == f"{before}<{new}>{after}"
    assert apply(changed, f"<{new}>", f"<{old}>").text == text


def _plain(text: str) -> list[str]:
    return [line.rstrip(" \t") for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]


@given(
    before=_TEXT, old=_TEXT.filter(bool), after=_TEXT, new=st.lists(st.sampled_from("NM \n"), max_size=6).map("".join)
)
def test_what_comes_in_the_place_is_the_new_text_whatever_the_line_ends(
    before: str, old: str, after: str, new: str
) -> None:
    text = before + old + after
    old = old.replace("\r\n", "\n").replace("\r", "\n")
    try:
        applied = apply(text, old, new)
    except ToolError:
        return
    (span,) = find(text, old)
    assert _plain(text[span.start : span.end]) == _plain(old) or span.form in ("indentation", "quotes")
    assert _plain(applied.text[span.start : len(applied.text) - len(text) + span.end]) == _plain(new)


_LINES = st.lists(st.text("ab (=", max_size=6).map(str.rstrip), min_size=1, max_size=6)


@given(
    before=_LINES,
    old=_LINES,
    new=_LINES,
    after=_LINES,
    ending=st.sampled_from(["\n", "\r\n", "\r"]),
    shift=st.sampled_from(["", "  ", "\t"]),
    blanks=st.sampled_from(["", "  "]),
)
def test_a_file_with_other_line_ends_blanks_and_shift_gets_exactly_the_lines_meant(
    before: list[str], old: list[str], new: list[str], after: list[str], ending: str, shift: str, blanks: str
) -> None:
    def laid(lines: list[str], trailing: str = "") -> str:
        return "".join((shift + line if line.strip() else line) + trailing + ending for line in lines)

    text = laid(before) + laid(["@start", *old, "@end"], blanks) + laid(after)
    try:
        applied = apply(text, "\n".join(["@start", *old, "@end"]), "\n".join(["@start", *new, "@end"]))
    except ToolError:
        assert old == new
        return
    assert applied.text.startswith(laid(before) + shift + "@start")
    assert applied.text.endswith(shift + "@end" + blanks + ending + laid(after))
    body = [line.rstrip() for line in applied.text.split(ending)]
    assert body == [
        line.rstrip() for line in (laid(before) + laid(["@start", *new, "@end"]) + laid(after)).split(ending)
    ]
