"""The commands that only look: each program with the options it may have, for a question saved on every `ls`.

An option that is not named here asks. GNU programs take shortened long options, so only whole ones count. A program
that is given by path is not the one in the table.
"""

from __future__ import annotations

from msgspec import structs

from mycode.permissions.lookers import LOOKERS
from mycode.permissions.options import ANY_GLOB, Use, read_spec, use
from mycode.permissions.programs import PROGRAMS, STEERED, VERSION_ONLY
from mycode.permissions.shell_grammar import Part, Word


def read_only(part: Part) -> Use | None:
    """What the command looks at, or None when it is not known to do nothing else.

    Says nothing about redirects, assignments or where the files are.
    """
    if not part.words or any(word.value is None for word in part.words):
        return None
    name = part.words[0].value or ""
    words = part.words[1:]
    if (special := LOOKERS.get(name)) is not None:
        return special(words)
    if name in VERSION_ONLY and [word.value for word in words] in VERSION_ONLY[name]:
        return Use(steered=STEERED.get(name, ()))
    table = PROGRAMS.get(name)
    found = None if table is None else use(read_spec(table), words, any_glob=name in ANY_GLOB)
    if found is None or (name == "strings" and any((word.value or "").startswith("@") for word in words)):
        # The tools of binutils take more words from a file `@name`.
        return None
    places = found.shows or (Word(".", "."),)
    if name in {"rg", "diff"} or found.given & _RECURSIVE.get(name, frozenset()):
        found = structs.replace(found, deep=places)
    follows = name == "diff" or found.given & _FOLLOWING.get(name, frozenset())
    return structs.replace(found, follows=places) if follows else found


# Options by which a program shows what is in all files of a folder; `rg` and `diff` need none for that.
_RECURSIVE: dict[str, frozenset[str]] = dict.fromkeys(
    ("grep", "egrep", "fgrep"), frozenset({"-r", "--recursive", "-R", "--dereference-recursive"})
)
# Options by which a program goes through a folder and reads what links in it lead to.
_FOLLOWING: dict[str, frozenset[str]] = {
    **dict.fromkeys(("grep", "egrep", "fgrep"), frozenset({"-R", "--dereference-recursive"})),
    "rg": frozenset({"-L", "--follow"}),
}
