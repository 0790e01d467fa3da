"""The commands that only look: each program with the options it may have, for a question saved on every `ls`.

An option that is not named here asks. GNU programs take shortened long options, so only whole ones count. A program
that is given by path is not the one in the table.
"""

from __future__ import annotations

from mycode.permissions.lookers import LOOKERS
from mycode.permissions.options import ANY_GLOB, Use, read_spec, use
from mycode.permissions.programs import PROGRAMS, VERSION_ONLY
from mycode.permissions.shell_grammar import Part


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
        return Use()
    table = PROGRAMS.get(name)
    return None if table is None else use(read_spec(table), words, any_glob=name in ANY_GLOB)
