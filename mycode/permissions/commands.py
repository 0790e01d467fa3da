"""What permissions say of a shell command: every part of it is judged, and the strictest answer holds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from mycode.core.tools import Decision, Mode, Verdict, VerdictPart
from mycode.permissions.carriers import CARRIERS, SHELLS, carried, unwrapped
from mycode.permissions.hard_stops import FORK_BOMB, hard_stop, moved
from mycode.permissions.modes import by_mode
from mycode.permissions.options import Use
from mycode.permissions.places import Look, Places, absolute, inside_any
from mycode.permissions.protected import mentions_protected, protected, secret, secret_under
from mycode.permissions.rules import Rule, Rules, covered_words, matches_command, matches_path
from mycode.permissions.shell_grammar import Part, Redirect, Script, Word, parse
from mycode.permissions.tables import read_only


def _words(text: str) -> tuple[str, ...]:
    """Long lists of names read better as text."""
    return tuple(text.split())


class _Scene(Struct, frozen=True):
    """What every part of one command is judged by."""

    mode: Mode
    rules: Rules
    places: Places
    look: Look
    boxed: bool
    network: bool
    script: Script
    variables: dict[str, str]

    @property
    def unclear(self) -> str | None:
        """Why nothing of it can be allowed by reading it."""
        if not self.script.unclear:
            return None
        return f"It is not fully understood: {'; '.join(self.script.unclear[:4])}."


def judge_command(
    text: str, *, mode: Mode, rules: Rules, places: Places, look: Look, boxed: bool, network: bool
) -> Verdict:
    """The verdict over a command text, part by part; a rule is offered when exactly one part asks."""
    variables = {"HOME": places.home, "PWD": places.start, "OLDPWD": ""}
    script = parse(text, variables=variables)
    scene = _Scene(mode, rules, places, look, boxed, network, script, variables)
    unclear = scene.unclear
    cwd = places.start
    judged: list[tuple[VerdictPart, str | None]] = []
    for part in script.parts:
        judged.append(_judge_part(part, cwd, scene))
        cwd = moved(unwrapped(part), places, cwd)
    if FORK_BOMB.search(text):
        judged.append((VerdictPart(text, "ask", f"{_FRESH}: it starts itself until the machine stands still."), None))
    if not judged:
        reason = "There is nothing to run." if unclear is None else unclear
        judged.append((VerdictPart(text, "allow" if unclear is None and not text.strip() else "ask", reason), None))
    return _together(judged, unclear)


_ORDER: dict[Decision, int] = {"deny": 0, "ask": 1, "allow": 2}
_FRESH = "This needs a fresh yes in every mode"


def _together(judged: list[tuple[VerdictPart, str | None]], unclear: str | None) -> Verdict:
    parts = tuple(part for part, _ in judged)
    # Of several questions the one about what cannot be undone is the one to put.
    worst = min(parts, key=lambda part: (_ORDER[part.decision], not part.reason.startswith(_FRESH)))
    asking = [offer for part, offer in judged if part.decision == "ask"]
    offer = asking[0] if worst.decision == "ask" and len(asking) == 1 and unclear is None else None
    reason = worst.reason
    if worst.decision == "allow" and len(parts) > 1:
        reason = "Every part of it is allowed."
    return Verdict(worst.decision, reason, worst.rule, parts, offer)


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
        if (stop := hard_stop(command, places, cwd)) is not None:
            return says("ask", f"{_FRESH}: {stop}.")
    if (why := _protected(part, commands, looks, cwd, scene)) is not None:
        return says("ask", why)
    asked = _first_match(rules.ask, commands, cwd, scene)
    if asked is not None:
        return says("ask", f"The rule `{asked.text}` asks.", asked)
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


def _touched(command: Part, rule: Rule, cwd: str, scene: _Scene) -> Iterator[str]:
    """Paths that the command may touch in the way the rule is about; links are followed."""
    words = [redirect.target for redirect in command.redirects if redirect.target is not None]
    if rule.family == "edit":
        words = [redirect.target for redirect in command.redirects if redirect.target is not None and redirect.writes]
    if rule.family == "read" or read_only(command) is None:
        words += command.words[1:]
    for word in words:
        for path in _paths(word, cwd, scene.places):
            yield path
            yield scene.look(path).path


def _paths(word: Word, cwd: str, places: Places) -> Iterator[str]:
    """What file a word may name: itself, or what follows `=`, `@` or a one-letter option."""
    text = word.best
    if not text or len(text) > 4096 or "\0" in text:
        return
    pieces = [text, *re.split(r"[=@:,]", text)[1:]]
    if re.match(r"-[A-Za-z]..", text):
        pieces.append(text[2:])
    for piece in dict.fromkeys(pieces):
        if piece and not piece.startswith("-"):
            yield absolute(piece, cwd, places.home)


def _allows(rule: Rule, part: Part, inner: Part, places: Places) -> bool:
    """Whether an allow rule covers the whole part: no file is written, no variable set, nothing carried unseen."""
    if rule.family not in {"shell", "any"} or any(_opens(redirect) for redirect in part.redirects):
        return False
    if not all(_harmless_assignment(name, value) for name, value in part.assignments) or not part.words:
        return False
    return any(matches_command(rule, one, places) and _names_what_runs(rule, one) for one in (part, inner))


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
    if inner.program == "git" and any(unwrapped(one).program in {"cd", "pushd"} for one in scene.script.parts):
        return "It goes to another folder first, where git may run what that repository says."
    for word, shown in (*((word, True) for word in shows), *((word, False) for word in looks.names)):
        if (why := _against_path(word, cwd, scene, shown=shown)) is not None:
            return why
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
        text = folder
    path = absolute(text, cwd, places.home) if word.tilde or not text.startswith("~") else f"{cwd}/{text}"
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
    for redirect in (one for command in commands for one in command.redirects):
        if redirect.target is None or not redirect.writes or not _opens(redirect):
            continue
        for path in _paths(redirect.target, cwd, scene.places):
            for name in (path, scene.look(path).path):
                if why := protected(name, scene.places):
                    return f"{redirect.target.best} is protected: {why}."
    if looks is not None:
        return None
    for command in commands:
        if not command.words or read_only(unwrapped(command)) is not None:
            continue
        for word in command.words[1:]:
            for path in _paths(word, cwd, scene.places):
                for name in (path, scene.look(path).path):
                    if why := protected(name, scene.places, by_shell=True):
                        return f"{word.best} is protected: {why}."
            if re.search(r"\s|[(;]", word.best) and (place := mentions_protected(word.best)):
                return f"It names the protected place {place}."
    if scene.unclear is not None and (place := mentions_protected(part.text)):
        return f"It names the protected place {place} and is not fully understood."
    return None


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
            for path in _paths(word, cwd, scene.places):
                for name in (path, scene.look(path).path):
                    if why := secret(name, scene.places):
                        return f"{word.best} needs a yes: {why}."
    return None


# --- what is offered --------------------------------------------------------------------------------------------------

_NEVER_OFFERED = frozenset(
    _words(
        "python python2 python3 pypy pypy3 ipython node deno bun ruby irb perl php lua luajit Rscript R julia"
        " awk gawk mawk sed tclsh expect osascript ghci scala groovy jshell elixir iex erl swift racket guile"
        " sbcl clojure make just task rake gradle mvn npm pnpm yarn npx bunx uvx pipx uv poetry pdm hatch rye"
        " bundle cargo go docker podman kubectl find rm dd curl wget ssh scp source . eval exec export declare"
        " alias set trap git-shell vim vi nvim emacs ed ex"
    )
)
_EXACTLY = frozenset(_words("npm pnpm yarn uv poetry cargo go make just task gradle mvn bundle"))


def _offer(part: Part, places: Places) -> str | None:
    """The narrowest rule that would allow exactly this part again, or None where no rule should."""
    name = part.program
    if not part.words or part.assignments or any(_opens(one) for one in part.redirects):
        return None
    if "/" in name or name in CARRIERS or name in SHELLS:
        return None
    values = [word.value or "" for word in part.words]
    if name in _NEVER_OFFERED and not (name in _EXACTLY and values[1:2] and _EXACT_TASK.match(" ".join(values[1:3]))):
        return None
    if re.fullmatch(r"(?:python|pypy|ruby|perl|node|php|lua)[\d.]+", name):
        return None
    from mycode.core.redact import findings

    text = " ".join(_quoted(value) for value in values)
    if findings(part.text) or len(text) > 200 or not re.fullmatch(r"[ -~]+", text):
        return None
    from mycode.permissions.rules import parse_rule

    rule = parse_rule(f"Bash({text})", "allow")
    return rule.text if _allows(rule, part, part, places) else None


_EXACT_TASK = re.compile(r"(?:run )?(?:test|build|check|lint|format|fmt|clippy|typecheck|vet|docs?|clean|ci)(?:\b|$)")


def _quoted(value: str) -> str:
    if re.fullmatch(r"[\w./:,+@%=-]+", value):
        return value
    return "'" + value.replace("'", "'\"'\"'") + "'"
