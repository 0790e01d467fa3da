"""Hunks laid on a text give exactly the version they were made from, or are refused."""

from difflib import SequenceMatcher

from hypothesis import assume, given
from hypothesis import strategies as st

from mycode.core.errors import ToolError
from mycode.tools.hunks import apply_hunks
from mycode.tools.patch_format import parse

_LINE = st.sampled_from(["alpha", "beta", "gamma", "", "  beta", "\tgamma"])
_EDIT = st.tuples(
    st.sampled_from(["insert", "change", "delete"]), st.integers(0, 12), st.sampled_from(["NEW", "", "alpha"])
)


def _edited(lines: list[str], edits: list[tuple[str, int, str]]) -> list[str]:
    lines = list(lines)
    for kind, at, line in edits:
        if kind == "insert":
            lines.insert(at, line)
        elif at < len(lines):
            lines[at : at + 1] = [] if kind == "delete" else [line]
    return lines


def _patch(old: list[str], new: list[str], context: int) -> str:
    body = ["*** Begin Patch", "*** Update File: f"]
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(context):
        body.append("@@")
        for kind, i, stop, j, until in group:
            if kind == "equal":
                body += [f" {line}" for line in old[i:stop]]
            else:
                body += [*(f"-{line}" for line in old[i:stop]), *(f"+{line}" for line in new[j:until])]
    return "\n".join([*body, "*** End Patch"])


@given(
    unique=st.lists(st.integers(0, 99).map(str), min_size=1, max_size=4),
    lines=st.lists(_LINE, max_size=10),
    edits=st.lists(_EDIT, min_size=1, max_size=3),
    context=st.integers(1, 3),
    ending=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_a_patch_made_from_two_versions_gives_the_second_or_is_refused(
    unique: list[str], lines: list[str], edits: list[tuple[str, int, str]], context: int, ending: str
) -> None:
    old = [*unique[::2], *lines, *unique[1::2]]
    new = _edited(old, edits)
    assume(new != old)
    (change,) = parse(_patch(old, new, context))
    try:
        text, _ = apply_hunks("".join(line + ending for line in old), change.hunks)
    except ToolError:
        return
    assert text == "".join(line + ending for line in new)
