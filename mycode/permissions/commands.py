"""What permissions say of a shell command: every part of it is judged, and the strictest answer holds."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase as fnmatch

from msgspec import Struct, structs

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
    really,
    removes_named,
    starts_itself,
)
from mycode.permissions.modes import by_mode
from mycode.permissions.offers import offer
from mycode.permissions.options import Use
from mycode.permissions.places import Look, Places, absolute, inside_any
from mycode.permissions.protected import mentions_protected, protected, secret, secret_under
from mycode.permissions.rules import Rule, Rules, covered_words, matches_command, matches_path
from mycode.permissions.shell_grammar import Part, Redirect, Script, Word, braces_opened, parse, pieces
from mycode.permissions.tables import read_only


def _words(text: str) -> tuple[str, ...]:
    """Long lists of names read better as text."""
    return tuple(text.split())


class _Scene(Struct, frozen=True):
    """What every part of one command is judged by; `said` is a forbidden program that it may run unread.

    `names` holds how many names of files were looked at so far.
    """

    mode: Mode
    rules: Rules
    places: Places
    look: Look
    ground: Ground
    boxed: bool
    network: bool
    said: str | None
    script: Script
    variables: dict[str, str]
    names: list[int]

    @property
    def unclear(self) -> str | None:
        """Why nothing of it can be allowed by reading it."""
        if not self.script.unclear:
            return None
        return f"It is not fully understood: {'; '.join(self.script.unclear[:4])}."


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
            raise _TooMuchError
        said = _said_of_forbidden(text, script, rules)
        scene = _Scene(mode, rules, places, look, ground, boxed, network, said, script, variables, [0])
        return _judge_script(text, scene)
    except _TooMuchError:
        reason = "It is too much to be judged: split it, or put it into a file."
        first = next((rule for rule in rules.deny if _matches_some(rule, script.parts[:_MOST_JUDGED], places)), None)
        decision: Decision = "deny" if first else "ask"
        said = first.text if first else None
        return Verdict(decision, reason, said, (VerdictPart(text, decision, reason, said),), None)


class _TooMuchError(Exception):
    """Raised when more would have to be looked at than anybody waits for."""


def _judge_script(text: str, scene: _Scene) -> Verdict:
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


def _stops_as_a_whole(text: str, script: Script, folders: list[tuple[str, ...]], scene: _Scene) -> str | None:
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
_MOST_NAMES = 4000


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
        to = tuple(dict.fromkeys(name for cwd in now for name in _both(moved(inner, places, cwd), look)))
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


def _both(path: str, look: Look) -> tuple[str, str]:
    return path, look(path).path


def _together(judged: list[tuple[VerdictPart, str | None]], unclear: str | None) -> Verdict:
    parts = tuple(part for part, _ in judged)
    worst = min(judged, key=_weight)[0]
    asking = [rule for part, rule in judged if part.decision == "ask"]
    offered = asking[0] if worst.decision == "ask" and len(asking) == 1 and unclear is None else None
    reason = worst.reason
    if worst.decision == "allow" and len(parts) > 1:
        reason = "Every part of it is allowed."
    return Verdict(worst.decision, reason, worst.rule, parts, offered)


def _judge_part(part: Part, cwd: str, scene: _Scene) -> tuple[VerdictPart, str | None]:
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
    writes = any(redirect.writes and _opens(redirect) for redirect in part.redirects)
    if mode == "plan" and (looks is None or writes or scene.unclear is not None):
        return says("deny", by_mode(mode)[1])
    for command in commands:
        if (stop := hard_stop(_with_matches(command, cwd, scene), places, cwd, scene.look)) is not None:
            return says("ask", f"{_FRESH}: {stop}.")
    if (why := _protected(part, commands, looks, cwd, scene)) is not None:
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
        doubt = _against_looking(part, inner, looks, cwd, scene)
        if doubt is None:
            return says("allow", "It only looks at the project.")
    if mode == "auto" and scene.boxed:
        against = _against_the_box(commands, cwd, scene)
        return says("ask", against) if against else says("allow", by_mode(mode, contained=True)[1])
    reason = doubt or f"{_name(part)}, used like this, is not known to only look at things."
    return says("ask", reason, offer=_offer(part, places) if doubt is None and len(commands) == 1 else None)


def _name(part: Part) -> str:
    if not part.words:
        return "An assignment" if part.assignments else "A redirect"
    return part.program or "The program"


# --- rules ------------------------------------------------------------------------------------------------------------


def _first_match(rules: tuple[Rule, ...], commands: list[Part], cwd: str, scene: _Scene) -> Rule | None:
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


def _below_forbidden(part: Part, looks: Use, cwd: str, scene: _Scene) -> str | None:
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
            folder = _repository(cwd, scene)
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


def _may_be_forbidden(commands: list[Part], scene: _Scene) -> str | None:
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


def _touched(command: Part, rule: Rule, cwd: str, scene: _Scene) -> Iterator[str]:
    """Paths that the command may touch in the way the rule is about; links are followed."""
    words = [redirect.target for redirect in command.redirects if redirect.target is not None]
    if rule.family == "edit":
        words = [redirect.target for redirect in command.redirects if redirect.target is not None and redirect.writes]
    if rule.family == "read" or read_only(command) is None:
        words += [word for word in command.words[1:] if not word.best.startswith(("--exclude=", "--exclude-dir="))]
    for word in dict.fromkeys(words):
        yield from _paths(word, cwd, scene)
        if command.program == "git" and ":" in word.best and not re.match(r":(?:/?[!^]|\([^)]*exclude)", word.best):
            # Behind a revision, and behind some signs, names begin at the top of the repository.
            named = re.sub(r"^\([^)]*\)", "", word.best.rpartition(":")[2]).lstrip("/!^")
            yield from _paths(Word(named, named), _repository(cwd, scene), scene)


def _repository(cwd: str, scene: _Scene) -> str:
    found = scene.ground.repository(cwd)
    return found.root if found is not None else scene.places.start


def _paths(word: Word, cwd: str, scene: _Scene) -> Iterator[str]:
    """What files a word may name: itself, what follows `=`, `@` or short options; and where links lead from there."""
    text = word.best
    if not text or len(text) > 4096 or "\0" in text:
        return
    pieces = []
    # Nothing is opened between quotes.
    bare = word.value is None or "{" in re.sub(r"'[^']*'|\"[^\"]*\"", "", word.text)
    for opened in braces_opened(text) if bare else [text]:
        # A lone slash behind a colon ends a script of sed.
        pieces += [opened, *re.split(r"[=@:,]", opened.removesuffix(":/"))[1:]]
        if re.match(r"-[A-Za-z]..", opened):
            pieces += [opened[at:] for at in range(2, min(len(opened), 9))]
    home = scene.places.home
    for piece in dict.fromkeys(pieces):
        if not piece or piece.startswith("-"):
            continue
        scene.names[0] += 1
        if scene.names[0] > _MOST_NAMES:
            raise _TooMuchError
        piece = _own_home(piece, home)
        found = [absolute(piece, cwd, home)]
        if ".." in piece:
            found.append(really(piece, cwd, home, scene.look))
        if (word.glob or word.value is None) and re.search(r"[*?\[]", piece):
            found += scene.ground.matches(absolute(piece, glob.escape(cwd), glob.escape(home))) or ()
        for path in found:
            yield path
            yield scene.look(path).path


def _own_home(piece: str, home: str) -> str:
    """`~me/x` as `~/x`, where the name is that of the home folder."""
    name = piece[1:].partition("/")[0]
    return "~" + piece[1 + len(name) :] if piece.startswith("~") and name == home.rpartition("/")[2] else piece


def _with_matches(part: Part, cwd: str, scene: _Scene) -> Part:
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
    if rule.family not in {"shell", "any"} or any(_opens(redirect) for redirect in part.redirects):
        return False
    if not all(_harmless_assignment(name, value) for name, value in part.assignments) or not part.words:
        return False
    return any(matches_command(rule, one, places) and _names_what_runs(rule, one) for one in (part, inner))


def _offer(part: Part, places: Places) -> str | None:
    rule = offer(part)
    return rule.text if rule is not None and _allows(rule, part, part, places) else None


def _opens(redirect: Redirect) -> bool:
    return redirect.target is not None and redirect.target.value not in {"/dev/null", "/dev/stdout", "/dev/stderr"}


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


_SAFE_VARIABLES = re.compile(
    r"LANG|LANGUAGE|LC_[A-Z]+|TZ|NO_COLOR|FORCE_COLOR|CLICOLOR(?:_FORCE)?|COLUMNS|LINES|CI|RUST_BACKTRACE|PYTHONUNBUFFERED"
    r"|PYTHONDONTWRITEBYTECODE|NODE_ENV|TERM|GIT_OPTIONAL_LOCKS|GIT_TERMINAL_PROMPT"
)


def _harmless_assignment(name: str, value: Word) -> bool:
    return _SAFE_VARIABLES.fullmatch(name) is not None and re.fullmatch(r"[\w.,+@-]*", value.value or "") is not None


# --- what only looks --------------------------------------------------------------------------------------------------


def _against_looking(part: Part, inner: Part, looks: Use, cwd: str, scene: _Scene) -> str | None:
    """Why a command that only looks is asked for all the same, or None."""
    for name, value in part.assignments:
        if not _harmless_assignment(name, value):
            return f"It sets the variable {name}, which may change what programs do."
    shows = list(looks.shows)
    for redirect in part.redirects:
        if not _opens(redirect):
            continue
        if redirect.writes or redirect.target is None:
            return f"It writes to {redirect.target.best if redirect.target else 'a file'}."
        shows.append(redirect.target)
    if looks.folder is not None:
        cwd = absolute(looks.folder.best, cwd, scene.places.home)
    if inner.program == "git" and (why := _against_git(cwd, scene)) is not None:
        return why
    if looks.steered and (why := _steered(inner.program, looks.steered, cwd, scene)) is not None:
        return why
    places = {absolute(word.best, cwd, scene.places.home) for word in looks.deep} if looks.sought else set()
    below = [path for place in places for path in scene.ground.files(place) or ()]
    for word in dict.fromkeys(looks.sought):
        if not word.best.startswith("!") and _aimed_at_secrets(word.best, below, scene):
            return f"{word.best} names files that may hold secrets."
    for word in looks.follows:
        leads = scene.ground.links(absolute(word.best, cwd, scene.places.home))
        if leads is None:
            return f"{word.best} holds more than can be looked at, and links in it would be followed."
        for path in leads:
            if (why := _against_name(path, f"A link in {word.best}", scene, shown=True)) is not None:
                return why
    for word, shown in (*((word, True) for word in shows), *((word, False) for word in looks.names)):
        if (why := _against_path(word, cwd, scene, shown=shown)) is not None:
            return why
    return None


def _aimed_at_secrets(text: str, below: list[str], scene: _Scene) -> bool:
    """Whether a pattern for the files of a search names one with secrets, or of those `below` nothing but such."""
    for pattern in braces_opened(text):
        named = pattern.rpartition("/")[2].casefold()
        if secret(f"/{named}", scene.places) or (named.startswith(".") and secret_under(named)):
            return True
        found = [path for path in below if fnmatch(path.rpartition("/")[2].casefold(), named)]
        if found and all(secret(path, scene.places) for path in found):
            return True
    return False


def _against_git(cwd: str, scene: _Scene) -> str | None:
    """Why git is not let look in this folder unasked: it would run what a repository's settings name."""
    start = scene.places.start
    own = scene.ground.repository(start)
    if cwd not in _both(start, scene.look):
        there = scene.ground.repository(cwd)
        same = (own and own.root) == (there and there.root)
        if not same or scene.look(cwd).kind != "folder":
            return "It goes to another folder first, where git may run what that repository says."
    if own is not None and own.runs is not None:
        return f"git would run what the repository names: {own.runs}."
    return None


def _steered(program: str, names: tuple[str, ...], cwd: str, scene: _Scene) -> str | None:
    """Why even a question about the version may run something of the project."""
    folder = cwd
    while inside_any(folder, scene.places.workspace, fold_case=scene.places.fold_case):
        for name in names:
            if found := scene.ground.matches(f"{glob.escape(folder)}/{name}"):
                return f"{found[0].rpartition('/')[2]} may say which {program} runs, or what it loads first."
        if folder == "/":
            break
        folder = folder.rpartition("/")[0] or "/"
    return None


def _against_path(word: Word, cwd: str, scene: _Scene, *, shown: bool) -> str | None:
    text = word.best
    if text in {"", "-", "/dev/null"}:
        return None
    places = scene.places
    if word.glob:
        fixed = re.split(r"[*?\[]", text)[0].rpartition("/")
        folder = fixed[0] + fixed[1] if fixed[1] else "."
        rest = text[len(fixed[0] + fixed[1]) :]
        if ".." in rest.split("/"):
            return f"{text} may lead out of the project."
        if shown and secret_under(text):
            return f"{text} may name files that hold secrets."
        quoted = re.search(r"[\"'\\]", word.text) is not None and "[" in text
        start = really(folder, cwd, places.home, scene.look) if word.tilde or folder[0] != "~" else cwd
        matches = None if quoted else scene.ground.matches(f"{glob.escape(start.rstrip('/'))}/{rest}")
        if matches is None:
            return f"{text} stands for more than can be looked at."
        for path in matches:
            if (why := _against_name(path, text, scene, shown=shown)) is not None:
                return why
        text = folder
    if not word.tilde and text.startswith("~"):
        text = f"./{text}"
    for path in dict.fromkeys((absolute(text, cwd, places.home), really(text, cwd, places.home, scene.look))):
        if (why := _against_name(path, word.best, scene, shown=shown)) is not None:
            return why
    return None


def _against_name(path: str, text: str, scene: _Scene, *, shown: bool) -> str | None:
    """Why this one absolute path, spelled as `text`, is not looked at unasked."""
    places = scene.places
    seen = scene.look(path)
    names = (path, seen.path)
    if shown and seen.kind == "other":
        return f"{text} is no ordinary file."
    if shown and (why := next((why for name in names if (why := secret(name, places))), None)):
        return f"{text} needs a yes: {why}."
    home = (*places.workspace, *((places.session,) if places.session else ()))
    if not all(inside_any(name, home, fold_case=places.fold_case) for name in names):
        return f"{text} is outside the project."
    return None


# --- what is protected ------------------------------------------------------------------------------------------------


def _protected(part: Part, commands: list[Part], looks: Use | None, cwd: str, scene: _Scene) -> str | None:
    """Why the part would change something that always needs a person, or None."""
    for redirect in dict.fromkeys(one for command in commands for one in command.redirects):
        if redirect.target is None or not redirect.writes or not _opens(redirect):
            continue
        for name in _paths(redirect.target, cwd, scene):
            if why := protected(name, scene.places):
                return f"{redirect.target.best} is protected: {why}."
    if looks is not None:
        return None
    # What carries other commands names the same words again and again.
    known: set[tuple[bool, Word]] = set()
    for command in commands:
        if not command.words or read_only(unwrapped(command)) is not None:
            continue
        script = command.program.rpartition("/")[2] in {"sed", "gsed"}
        for at, word in enumerate(command.words[1:], 1):
            if (script, word) in known or _is_no_path(command, at):
                continue
            known.add((script, word))
            for name in _paths(word, cwd, scene):
                if why := protected(name, scene.places, by_shell=True):
                    return f"{word.best} is protected: {why}."
            if script:
                for file in re.findall(r"[wW]\s*([^\s;}]+)", word.best):
                    if why := protected(absolute(file, cwd, scene.places.home), scene.places, by_shell=True):
                        return f"{file} is protected: {why}."
            if re.search(r"\s|[(;]", word.best) and (place := mentions_protected(word.best)):
                return f"It names the protected place {place}."
    if scene.unclear is not None and (place := mentions_protected(part.text)):
        return f"It names the protected place {place} and is not fully understood."
    return None


def _is_no_path(command: Part, at: int) -> bool:
    """Whether a word is known to be something else than a file: git's HEAD, a method, an expression."""
    name = command.program.rpartition("/")[2]
    word, before = command.words[at].best, command.words[at - 1].best
    if name == "curl":
        return before in {"-X", "--request"}
    return (name == "git" and word == "HEAD") or (name == "gh" and before in {"--jq", "-q", "--template", "-t"})


_NETWORK = frozenset(
    _words(
        "curl wget nc ncat netcat telnet ssh scp sftp ftp rsync ping ping6 dig nslookup host traceroute whois"
        " socat gh glab hub aws gcloud az kubectl helm http https xh lynx w3m links aria2c openssl mail"
        " sendmail smbclient rclone"
    )
)


def _against_the_box(commands: list[Part], cwd: str, scene: _Scene) -> str | None:
    """Why a command in the sandbox is asked for all the same: it shows secrets, or it may carry something out."""
    for command in commands:
        if scene.network and command.program.rpartition("/")[2] in _NETWORK:
            return f"{command.program} uses the network, which the sandbox lets through."
        words = [*command.words[1:], *(one.target for one in command.redirects if one.target is not None)]
        for word in words:
            for name in _paths(word, cwd, scene):
                if why := secret(name, scene.places):
                    return f"{word.best} needs a yes: {why}."
    return None
