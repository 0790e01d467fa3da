"""The change of one file as a person reads it: a unified diff without file header."""

from __future__ import annotations

from mycode.core.tools import DiffDisplay

_CONTEXT = 3
_COMPARED_LINES = 20_000  # beyond this, finding the smallest diff would take seconds
_NO_NEWLINE = "\\ No newline at end of file\n"


def diff_display(path: str, before: str | None, after: str | None) -> DiffDisplay:
    """What to show for a change; None stands for a file that is not there."""
    old, new = _lines(before or ""), _lines(after or "")
    head, tail = _shared(old, new), 0
    tail = _shared(old[head:][::-1], new[head:][::-1])
    # the equal ends, but for the lines of context, are not compared again
    skip, drop = max(0, head - _CONTEXT), max(0, tail - _CONTEXT)
    diff = _unified(old[skip : len(old) - drop], new[skip : len(new) - drop], skip)
    added = sum(line.startswith("+") for line in diff)
    removed = sum(line.startswith("-") for line in diff)
    return DiffDisplay(path, "".join(diff), added, removed, created=before is None, deleted=after is None)


def _lines(text: str) -> list[str]:
    lines = [line + "\n" for line in text.split("\n")]
    if lines[-1] == "\n":
        return lines[:-1]
    lines[-1] += _NO_NEWLINE
    return lines


def _shared(old: list[str], new: list[str]) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(old), len(new)))


def _unified(old: list[str], new: list[str], skip: int) -> list[str]:
    from difflib import SequenceMatcher

    if len(old) + len(new) > _COMPARED_LINES:
        groups = [[("replace", 0, len(old), 0, len(new))]]
    else:
        matcher = SequenceMatcher(None, old, new, autojunk=len(old) + len(new) > 1000)
        groups = [list(group) for group in matcher.get_grouped_opcodes(_CONTEXT)]
    diff: list[str] = []
    for group in groups:
        first, last = group[0], group[-1]
        diff.append(f"@@ -{_range(first[1], last[2], skip)} +{_range(first[3], last[4], skip)} @@\n")
        for kind, i, stop, j, until in group:
            if kind == "equal":
                diff += [" " + line for line in old[i:stop]]
            else:
                diff += ["-" + line for line in old[i:stop]]
                diff += ["+" + line for line in new[j:until]]
    return diff


def _range(start: int, stop: int, skip: int) -> str:
    length = stop - start
    first = skip + start + (1 if length else 0)
    return str(first) if length == 1 else f"{first},{length}"
