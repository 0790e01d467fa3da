"""Long output is cut in the middle, at line ends, and says where the whole is."""

from hypothesis import given
from hypothesis import strategies as st

from mycode.tools.output import clip
from tests.support.tool_doubles import MemoryArchive


def test_short_output_passes_untouched_and_is_not_kept() -> None:
    archive = MemoryArchive()
    assert clip("\x1b[31mred\x1b[0m", 100, archive.keep) == "\x1b[31mred\x1b[0m"
    assert archive.texts == []


def test_head_and_tail_are_whole_lines_and_the_gap_is_counted() -> None:
    text = "".join(f"line {number}\n" for number in range(1, 101))
    shown = clip(text, 260, MemoryArchive().keep)
    assert shown == (
        "".join(f"line {number}\n" for number in range(1, 14))
        + "… 80 lines omitted, whole text: history_expand t1\n"
        + "".join(f"line {number}\n" for number in range(94, 101))
    )


def test_one_endless_line_is_cut_by_characters() -> None:
    shown = clip("x" * 10_000, 300, MemoryArchive().keep)
    assert shown == "x" * 120 + "\n… 9,800 characters omitted, whole text: history_expand t1\n" + "x" * 80


@given(st.text(st.characters(codec="utf-8") | st.just("\n"), max_size=2000), st.integers(-5, 2500))
def test_what_is_shown_fits_and_what_is_kept_is_whole(text: str, limit: int) -> None:
    archive = MemoryArchive()
    shown = clip(text, limit, archive.keep)
    assert len(shown) <= max(limit, 120)
    assert archive.texts == ([] if shown == text else [text])
