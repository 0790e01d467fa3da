"""What permissions say of a shell command: every part of it is judged, and the strictest answer holds."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase as fnmatch

from msgspec import structs

from mycode.core.tools import Decision, Mode, Verdict, VerdictPart
from mycode.permissions.carriers import CARRIERS, SHELLS, carried, does_as_told, takes_text, unwrapped
from mycode.permissions.ground import Ground
from mycode.permissions.hard_stops import (
    SPOKEN,
    deletes_inline,
    hard_stop,
    moved,
    names_everything,
    names_some,
    removes_named,
    starts_itself,
)
from mycode.permissions.modes import by_mode
from mycode.permissions.objections import against_change, against_looking, against_the_box, harmless_assignment
from mycode.permissions.offers import offer
from mycode.permissions.options import Use
from mycode.permissions.places import Look, Places, absolute
from mycode.permissions.rules import Rule, Rules, covered_words, matches_command, matches_path
from mycode.permissions.scene import Scene, TooMuchError, both, named_paths, opens, repository
from mycode.permissions.shell_grammar import Part, Script, Word, parse, pieces
from mycode.permissions.tables import read_only


def judge_command(
    text: str, *, mode: Mode, rules: Rules, places: Places, look: Look, ground: Ground, boxed: bool, network: bool
) -> Verdict:
    """The verdict over a command text, part by part; a rule is offered when exactly one part asks."""
    variables = {"HOME": places.home, "PWD": places.start, "OLDPWD": places.start}
    script = parse(text, variables=variables)
    if script.unclear and "<>" in text:
        # A file opened for both is not read by the parser: it counts as one that is written.
        script = structs.replace(
            script, parts=(*script.parts, *parse(text.replace("<>", ">"), variables=variables).parts)
        )
    try:
        words = sum(len(part.words) + len(part.redirects) for part in script.parts)
        if len(script.parts) > _MOST_JUDGED or words > _MOST_WORDS:
            raise TooMuchError
        said = _said_of_forbidden(text, script, rules)
        scene = Scene(mode, rules, places, look, ground, boxed, network, said, script, variables, [0])
        return _judge_script(text, scene)
    except TooMuchError:
        reason = "It is too much to be judged: split it, or put it into a file."
        first = next((rule for rule in rules.deny if _matches_some(rule, script.parts[:_MOST_JUDGED], places)), None)
        decision: Decision = "deny" if first else "ask"
        said = first.text if first else None
        return Verdict(decision, reason, said, (VerdictPart(text, decision, reason, said),), None)


def _judge_script(text: str, scene: Scene) -> Verdict:
    script, places, look = scene.script, scene.places, scene.look
    folders = _folders(script, places, look)
    if any(len(where) > _MOST_FOLDERS for where in folders) or len(dict.fromkeys(folders)) > _MOST_FOLDERS:
        script = Script(script.parts, (*script.unclear, "it changes the folder again and again"))
        scene = structs.replace(scene, script=script)
    unclear = scene.unclear
    judged = []
    known: dict[tuple[Part, str], tuple[VerdictPart, str | None]] = {}
    for part, where in zip(script.parts, folders, strict=True):
        for cwd in where[:_MOST_FOLDERS]:
            if (part, cwd) not in known:
                known[part, cwd] = _judge_part(part, cwd, scene)
        judged.append(min((known[part, cwd] for cwd in where[:_MOST_FOLDERS]), key=_weight))
    if (stop := _stops_as_a_whole(text, script, folders, scene)) is not None:
        judged.append((VerdictPart(text, "ask", f"{_FRESH}: {stop}."), None))
    if starts_itself(text):
        judged.append((VerdictPart(text, "ask", f"{_FRESH}: it starts itself until the machine stands still."), None))
    if not judged:
        reason = "There is nothing to run." if unclear is None else unclear
        judged.append((VerdictPart(text, "allow" if unclear is None and not text.strip() else "ask", reason), None))
    return _together(judged, unclear)


def _stops_as_a_whole(text: str, script: Script, folders: list[tuple[str, ...]], scene: Scene) -> str | None:
    """What cannot be undone and is seen only when the parts are read together."""
    places, look = scene.places, scene.look
    # The parser takes what stands behind some conditions for a part of them.
    misread = "[[" in text or "it cannot be parsed" in script.unclear
    if misread or any(takes_text(one) for part in script.parts for one in (part, unwrapped(part))):
        for piece in pieces(text):
            for at, first in enumerate(piece.words):
                name = first.best.lstrip("!@-+:")
                spoken = structs.replace(piece, words=(Word(name, None, name), *piece.words[at + 1 : at + 40]))
                if spoken.program.rpartition("/")[2] in SPOKEN and (
                    stop := hard_stop(spoken, places, places.start, look)
                ):
                    return stop
    every = [(one, where) for part, where in zip(script.parts, folders, strict=True) for one in (part, unwrapped(part))]
    if any(deletes_inline(one, text) for part in script.parts for one in (part, unwrapped(part))):
        return "it would remove the root of the file system, your home folder or the project"
    removing = {
        how
        for part, _ in every
        for one in (part, *carried(part, scene.variables))
        if (how := removes_named(one, text)) is not None
    }
    if not removing:
        return None
    # A function removes what it is given.
    own = {name for found in re.findall(r"([\w-]{1,60})\s{0,9}\(\)|\bfunction\s+([\w-]{1,60})", text) for name in found}
    for part, where in every:
        if part.program in own and len(part.words) > 1:
            part = structs.replace(part, words=(Word("echo", "echo"), *part.words[1:]))
        for cwd in where[:_MOST_FOLDERS]:
            if (stop := names_everything(part, places, cwd, look)) is not None:
                return stop
    if "input" in removing and not any(names_some(part) for part, _ in every):
        return "it removes folders named by something else"
    return None


_ORDER: dict[Decision, int] = {"deny": 0, "ask": 1, "allow": 2}
_FRESH = "This needs a fresh yes in every mode"


def _weight(judged: tuple[VerdictPart, str | None]) -> tuple[int, bool]:
    """What is strictest comes first; of several questions the one about what cannot be undone is the one to put."""
    return _ORDER[judged[0].decision], not judged[0].reason.startswith(_FRESH)


_MOST_FOLDERS = 12
_MOST_JUDGED = 2000
_MOST_WORDS = 5000


def _matches_some(rule: Rule, parts: Iterable[Part], places: Places) -> bool:
    if rule.spec is None:
        return rule.family in {"shell", "any"}
    return rule.family == "shell" and any(matches_command(rule, part, places) for part in parts if part.words)


def _folders(script: Script, places: Places, look: Look) -> list[tuple[str, ...]]:
    """For each part all folders it may run in: a `cd` may fail, be skipped, or act in a subshell only.

    A program goes up (`..`) from where a link led to, `cd` from the link; both are named.
    """
    every: tuple[str, ...] = (places.start,)
    now = every
    found = []
    for at, part in enumerate(script.parts):
        if part.joint in {";", "||"}:
            now = every
        found.append(now)
        inner = unwrapped(part)
        if inner.program not in {"cd", "pushd", "chdir"} or len(dict.fromkeys(found)) > 2 * _MOST_FOLDERS:
            continue
        to = tuple(dict.fromkeys(name for cwd in now for name in both(moved(inner, places, cwd), look)))
        after = script.parts[at + 1].joint if at + 1 < len(script.parts) else ""
        direct = all(word.value in {"cd", "command", "builtin", "time", "-p"} for word in part.words[:-1])
        if script.unclear or (at == 0 and direct and after != "|" and all(look(one).kind == "folder" for one in to)):
            every = now = to
        elif direct and part.joint in {"", ";", "&&"} and after == "&&":
            now = to
            every = tuple(dict.fromkeys((*every, *to)))
        else:
            every = now = tuple(dict.fromkeys((*every, *to)))
        if len(every) > _MOST_FOLDERS:
            every = now = every[: _MOST_FOLDERS + 1]
    return found


def _together(judged: list[tuple[VerdictPart, str | None]], unclear: str | None) -> Verdict:
    parts = tuple(part for part, _ in judged)
    worst = min(judged, key=_weight)[0]
    asking = [rule for part, rule in judged if part.decision == "ask"]
    offered = asking[0] if worst.decision == "ask" and len(asking) == 1 and unclear is None else None
    reason = worst.reason
    if worst.decision == "allow" and len(parts) > 1:
        reason = "Every part of it is allowed."
    return Verdict(worst.decision, reason, worst.rule, parts, offered)


def _judge_part(part: Part, cwd: str, scene: Scene) -> tuple[VerdictPart, str | None]:
    mode, rules, places = scene.mode, scene.rules, scene.places
    inner = unwrapped(part)
    commands = [part, *([inner] if inner is not part else []), *carried(part, scene.variables)]

    def says(
        decision: Decision, reason: str, rule: Rule | None = None, offer: str | None = None
    ) -> tuple[VerdictPart, str | None]:
        return VerdictPart(part.text, decision, reason, rule.text if rule else None), offer

    forbidden = _first_match(rules.deny, commands, cwd, scene)
    if forbidden is not None:
        return says("deny", f"The rule `{forbidden.text}` forbids it.", forbidden)
    looks = read_only(inner)
    writes = any(redirect.writes and opens(redirect) for redirect in part.redirects)
    if mode == "plan" and (looks is None or writes or scene.unclear is not None):
        return says("deny", by_mode(mode)[1])
    for command in commands:
        if (stop := hard_stop(_with_matches(command, cwd, scene), places, cwd, scene.look)) is not None:
            return says("ask", f"{_FRESH}: {stop}.")
    if (why := against_change(part, commands, looks, cwd, scene)) is not None:
        return says("ask", why)
    asked = _first_match(rules.ask, commands, cwd, scene)
    if asked is not None:
        return says("ask", f"The rule `{asked.text}` asks.", asked)
    if looks is not None and looks.deep and (why := _below_forbidden(inner, looks, cwd, scene)) is not None:
        return says("ask", why)
    blind = mode == "bypassPermissions" or (mode == "auto" and scene.boxed)
    if blind and (why := _may_be_forbidden(commands, scene)) is not None:
        return says("ask", why)
    if mode == "bypassPermissions":
        return says("allow", by_mode(mode)[1])
    doubt = scene.unclear
    if doubt is None and mode != "plan":
        for rule in rules.allow:
            if _allows(rule, part, inner, places):
                return says("allow", f"The rule `{rule.text}` allows it.", rule)
    if doubt is None and looks is not None:
        doubt = against_looking(part, inner, looks, cwd, scene)
        if doubt is None:
            return says("allow", "It only looks at the project.")
    if mode == "auto" and scene.boxed:
        against = against_the_box(commands, cwd, scene)
        return says("ask", against) if against else says("allow", by_mode(mode, contained=True)[1])
    reason = doubt or f"{_name(part)}, used like this, is not known to only look at things."
    return says("ask", reason, offer=_offer(part, places) if doubt is None and len(commands) == 1 else None)


def _name(part: Part) -> str:
    if not part.words:
        return "An assignment" if part.assignments else "A redirect"
    return part.program or "The program"


# --- rules ------------------------------------------------------------------------------------------------------------


def _first_match(rules: tuple[Rule, ...], commands: list[Part], cwd: str, scene: Scene) -> Rule | None:
    """The first rule that forbids or asks, seen through wrappers, and for files named anywhere in the words."""
    for rule in rules:
        if rule.spec is None:
            if rule.family in {"shell", "any"}:
                return rule
        elif rule.family == "shell":
            if any(matches_command(rule, command, scene.places) for command in commands if command.words):
                return rule
        elif rule.family in {"read", "edit"}:
            for command in commands:
                if any(matches_path(rule, path, scene.places) for path in _touched(command, rule, cwd, scene)):
                    return rule
    return None


def _below_forbidden(part: Part, looks: Use, cwd: str, scene: Scene) -> str | None:
    """Why a search through folders asks: a rule speaks of a file in them."""
    rules = [one for one in (*scene.rules.deny, *scene.rules.ask) if one.family == "read" and one.spec]
    if not rules:
        return None
    # Two of the programs read what is hidden, or not theirs, only when told.
    told = r"--hidden|--unrestricted|-\w*[u.]\w*|--no-index|--untracked"
    hidden = part.program not in {"rg", "git"} or any(re.fullmatch(told, word.best) for word in part.words)
    hidden = hidden or any(word.best.rpartition("/")[2].startswith(".") for word in looks.sought)
    if looks.folder is not None:
        cwd = absolute(looks.folder.best, cwd, scene.places.home)
    known: set[str] = set()
    for word in looks.deep:
        folder = absolute(word.best, cwd, scene.places.home)
        if part.program == "git" and scene.look(folder).kind not in {"file", "folder"}:
            # A revision, a pattern, or a name with signs in front: all of the repository may be meant.
            folder = repository(cwd, scene)
        if folder in known:
            continue
        known.add(folder)
        found = scene.ground.files(folder)
        if found is None:
            return f"{word.best} holds more than can be looked at, and rules forbid to read some files."
        for path in found:
            name = path[len(folder) :]
            rule = next((rule for rule in rules if matches_path(rule, path, scene.places)), None)
            if rule is not None and (hidden or "/." not in name) and not _left_out(name, part, looks):
                return f"It would read {name.lstrip('/')} too, of which the rule `{rule.text}` speaks."
    return None


def _left_out(name: str, part: Part, looks: Use) -> bool:
    """Whether the options of a search surely leave this file out; where they could contradict each other, none does."""
    wanted = [word.best for word in looks.sought if not word.best.startswith("!")]
    if part.program == "git":
        return bool(wanted) and all(re.fullmatch(r"\*\.\w+", one) and not name.endswith(one[1:]) for one in wanted)
    if wanted:
        patterns = [pattern.rpartition("/")[2].casefold() for pattern in wanted]
        plain = not any(char in "".join(patterns) for char in "{}\\!")
        return plain and not any(fnmatch(name.rpartition("/")[2].casefold(), pattern) for pattern in patterns)
    without = [word.best.partition("=")[2] for word in part.words if word.best.startswith("--exclude=")]
    without += [word.best[1:] for word in looks.sought]
    return any(fnmatch(name.rpartition("/")[2], pattern) for pattern in without)


def _may_be_forbidden(commands: list[Part], scene: Scene) -> str | None:
    """Why a mode that asks nothing asks: a program that a rule forbids may be run in a way that cannot be read."""
    if not any(rule.family == "shell" and rule.spec for rule in scene.rules.deny):
        return None
    if any(command.words and command.words[0].value is None and command.words[0].text for command in commands):
        return "Which program it runs is not known before, and rules forbid some."
    return f"It may run {scene.said}, which a rule forbids." if scene.said else None


def _said_of_forbidden(text: str, script: Script, rules: Rules) -> str | None:
    """A program that a rule forbids and the text names, where something in it may do what a text says."""
    specs = [rule.spec.split() for rule in rules.deny if rule.family == "shell" and rule.spec]
    names = [re.escape(spec[0].removesuffix(":*")) for spec in specs if spec and "*" not in spec[0].removesuffix(":*")]
    if not names:
        return None
    told = "it defines a function" in script.unclear or re.search(r"`|\$[({]", text) is not None
    if not told and not any(does_as_told(one) for part in script.parts for one in (part, unwrapped(part))):
        return None
    for reading in (text, re.sub(r"`[^`]*`|\$\([^()]*\)|\$\{[^{}]*\}|\$\w", "", text)):
        said = re.search(rf"(?<![\w-])(?:{'|'.join(names)})(?![\w-])", re.sub(r"[\"'\\]", "", reading))
        if said is not None:
            return said[0]
    return None


def _touched(command: Part, rule: Rule, cwd: str, scene: Scene) -> Iterator[str]:
    """Paths that the command may touch in the way the rule is about; links are followed."""
    words = [redirect.target for redirect in command.redirects if redirect.target is not None]
    if rule.family == "edit":
        words = [redirect.target for redirect in command.redirects if redirect.target is not None and redirect.writes]
    if rule.family == "read" or read_only(command) is None:
        words += [word for word in command.words[1:] if not word.best.startswith(("--exclude=", "--exclude-dir="))]
    for word in dict.fromkeys(words):
        yield from named_paths(word, cwd, scene)
        if command.program == "git" and ":" in word.best and not re.match(r":(?:/?[!^]|\([^)]*exclude)", word.best):
            # Behind a revision, and behind some signs, names begin at the top of the repository.
            named = re.sub(r"^\([^)]*\)", "", word.best.rpartition(":")[2]).lstrip("/!^")
            yield from named_paths(Word(named, named), repository(cwd, scene), scene)


def _with_matches(part: Part, cwd: str, scene: Scene) -> Part:
    """The part with the names that its patterns stand for at the end."""
    home = scene.places.home
    patterns = [
        absolute(word.best, glob.escape(cwd), glob.escape(home))
        for word in part.words[1:]
        if (word.glob or word.value is None) and re.search(r"[*?\[]", word.best)
    ]
    stand_for = [scene.ground.matches(pattern) or () for pattern in patterns]
    found = [path for paths in stand_for for path in paths[:200]]
    # Patterns that together take all there is in a folder are as good as a star.
    together = {path for paths in stand_for for path in paths}
    for folder in dict.fromkeys(pattern.rpartition("/")[0] for pattern in patterns):
        every = scene.ground.matches(f"{folder}/*") or ()
        if len(every) > 1 and together.issuperset(every):
            found.append(f"{every[0].rpartition('/')[0]}/*")
    if not found or part.program.rpartition("/")[2] not in {
        "rm",
        "mv",
        "chmod",
        "chown",
        "chgrp",
        "shred",
        "tar",
        "truncate",
    }:
        return part
    if part.program.endswith("mv"):
        return structs.replace(part, words=(part.words[0], *(Word(path, path) for path in found), *part.words[1:]))
    return structs.replace(part, words=(*part.words, *(Word(path, path) for path in found)))


def _allows(rule: Rule, part: Part, inner: Part, places: Places) -> bool:
    """Whether an allow rule covers the whole part: no file is written, no variable set, nothing carried unseen."""
    if rule.family not in {"shell", "any"} or any(opens(redirect) for redirect in part.redirects):
        return False
    if not all(harmless_assignment(name, value) for name, value in part.assignments) or not part.words:
        return False
    return any(matches_command(rule, one, places) and _names_what_runs(rule, one) for one in (part, inner))


def _offer(part: Part, places: Places) -> str | None:
    rule = offer(part)
    return rule.text if rule is not None and _allows(rule, part, part, places) else None


def _names_what_runs(rule: Rule, part: Part) -> bool:
    """A rule for a program that runs others (`xargs *`, `find *`) covers only what it spells out."""
    name = part.program.rpartition("/")[2]
    values = [word.value or "" for word in part.words]
    if rule.spec is None:
        # `Bash` as a whole is a person's word for everything but programs behind programs.
        return name not in CARRIERS and name not in SHELLS and not _executes(values)
    covered = covered_words(rule)
    if name == "find" and _executes(values):
        starts = [at for at, value in enumerate(values) if value in _FIND_RUNS]
        return covered > max(starts) + (0 if values[max(starts)] == "-delete" else 1)
    if name in CARRIERS or name in SHELLS:
        plain = next((at for at, v in enumerate(values) if at and not v.startswith("-") and "=" not in v), len(values))
        return covered > plain or covered == len(values)
    return True


_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"})


def _executes(values: list[str]) -> bool:
    return values[:1] == ["find"] and bool(_FIND_RUNS & set(values))
