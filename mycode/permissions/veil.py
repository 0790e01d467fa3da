"""Which of many files a search passes over: those that nobody would be shown in silence if they were named alone."""

from __future__ import annotations

from collections.abc import Iterable

from mycode.core.tools import Action, Mode
from mycode.permissions.places import Places
from mycode.permissions.protected import own_environment, secret
from mycode.permissions.rules import Rules, concerns, matches_path


def hidden(
    action: Action, names: Iterable[str], *, content: bool, mode: Mode, rules: Rules, places: Places
) -> frozenset[str]:
    """Those of the files `names` (relative to the folder that `action` reads first) that the action must not show.

    What a rule denies is always left out. Where `content` is shown, so is what holds secrets and what an ask rule is
    about, unless the folder as a whole is of that kind: then the person was asked about it, and said yes.
    """
    folder = action.reads[0]
    denying = [rule for rule in rules.deny if concerns(rule, action)]
    asking = [
        rule for rule in rules.ask if content and concerns(rule, action) and not matches_path(rule, folder, places)
    ]
    allowing = [rule for rule in rules.allow if concerns(rule, action)]
    guarded = content and mode != "bypassPermissions" and secret(folder, places) is None
    found = []
    for name in names:
        path = f"{folder.rstrip('/')}/{name}"
        left_out = (
            own_environment(path)
            or any(matches_path(rule, path, places) for rule in (*denying, *asking))
            or (
                guarded
                and secret(path, places) is not None
                and not any(matches_path(rule, path, places) for rule in allowing)
            )
        )
        if left_out:
            found.append(name)
    return frozenset(found)
