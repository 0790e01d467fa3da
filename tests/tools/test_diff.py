"""A change is shown as a unified diff that says everything and nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from mycode.core.tools import DiffDisplay
from mycode.tools.diff import diff_display


def test_a_change_in_the_middle_has_three_lines_of_context() -> None:
    before = "".join(f"{number}\n" for number in range(1, 11))
    assert diff_display("a", before, before.replace("5\n", "five\n")) == DiffDisplay(
        "a", "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n", 1, 1
    )


def test_a_new_and_a_deleted_file_are_marked() -> None:
    assert diff_display("a", None, "x\n") == DiffDisplay("a", "@@ -0,0 +1 @@\n+x\n", 1, 0, created=True)
    assert diff_display("a", "x\n", None) == DiffDisplay("a", "@@ -1 +0,0 @@\n-x\n", 0, 1, deleted=True)


def test_a_missing_last_line_end_is_seen() -> None:
    assert diff_display("a", "x", "x\n").diff == "@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n"


def test_a_huge_rewrite_is_shown_as_one_block() -> None:
    before, after = ("".join(f"{word} {number}\n" for number in range(12_000)) for word in ("old", "new"))
    display = diff_display("a", before, after)
    assert (display.added, display.removed, display.diff.count("@@ -")) == (12_000, 12_000, 1)


_LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "-x\n", "+y\n"]), max_size=30)


@given(_LINES, _LINES)
def test_applying_a_diff_to_the_old_text_gives_the_new(before: list[str], after: list[str]) -> None:
    display = diff_display("a", "".join(before), "".join(after))
    result, at = [], 0
    for line in display.diff.splitlines(keepends=True):
        if line.startswith("@@ -"):
            first, _, length = line.split()[1][1:].partition(",")
            start = int(first) - (0 if length == "0" else 1)
            result += before[at:start]
            at = start
        elif line[0] in " -":
            assert before[at] == line[1:]
            at += 1
        if line[0] in " +":
            result.append(line[1:])
    assert result + before[at:] == after
