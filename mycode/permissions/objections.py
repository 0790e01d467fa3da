"""Why a command that seems to need no question gets one: secrets, protected files, links, a project's settings."""

from __future__ import annotations

import glob
import re
from fnmatch import fnmatchcase as fnmatch

from mycode.permissions.carriers import unwrapped
from mycode.permissions.hard_stops import (
    really,
)
from mycode.permissions.listed import listed
from mycode.permissions.options import Use
from mycode.permissions.places import absolute, inside_any
from mycode.permissions.protected import mentions_protected, protected, secret, secret_under
from mycode.permissions.scene import Scene, both, named_paths, opens
from mycode.permissions.shell_grammar import Part, Word, braces_opened
from mycode.permissions.tables import read_only

_SAFE_VARIABLES = re.compile(
    r"LANG|LANGUAGE|LC_[A-Z]+|TZ|NO_COLOR|FORCE_COLOR|CLICOLOR(?:_FORCE)?|COLUMNS|LINES|CI|RUST_BACKTRACE|PYTHONUNBUFFERED"
    r"|PYTHONDONTWRITEBYTECODE|NODE_ENV|TERM|GIT_OPTIONAL_LOCKS|GIT_TERMINAL_PROMPT"
)


def harmless_assignment(name: str, value: Word) -> bool:
    return _SAFE_VARIABLES.fullmatch(name) is not None and re.fullmatch(r"[\w.,+@-]*", value.value or "") is not None


def against_looking(part: Part, inner: Part, looks: Use, cwd: str, scene: Scene) -> str | None:
    """Why a command that only looks is asked for all the same, or None."""
    for name, value in part.assignments:
        if not harmless_assignment(name, value):
            return f"It sets the variable {name}, which may change what programs do."
    shows = list(looks.shows)
    for redirect in part.redirects:
        if not opens(redirect):
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


def _aimed_at_secrets(text: str, below: list[str], scene: Scene) -> bool:
    """Whether a pattern for the files of a search names one with secrets, or of those `below` nothing but such."""
    for pattern in braces_opened(text):
        named = pattern.rpartition("/")[2].casefold()
        if secret(f"/{named}", scene.places) or (named.startswith(".") and secret_under(named)):
            return True
        found = [path for path in below if fnmatch(path.rpartition("/")[2].casefold(), named)]
        if found and all(secret(path, scene.places) for path in found):
            return True
    return False


def _against_git(cwd: str, scene: Scene) -> str | None:
    """Why git is not let look in this folder unasked: it would run what a repository's settings name."""
    start = scene.places.start
    own = scene.ground.repository(start)
    if cwd not in both(start, scene.look):
        there = scene.ground.repository(cwd)
        same = (own and own.root) == (there and there.root)
        if not same or scene.look(cwd).kind != "folder":
            return "It goes to another folder first, where git may run what that repository says."
    if own is not None and own.runs is not None:
        return f"git would run what the repository names: {own.runs}."
    return None


def _steered(program: str, names: tuple[str, ...], cwd: str, scene: Scene) -> str | None:
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


def _against_path(word: Word, cwd: str, scene: Scene, *, shown: bool) -> str | None:
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


def _against_name(path: str, text: str, scene: Scene, *, shown: bool) -> str | None:
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


def against_change(part: Part, commands: list[Part], looks: Use | None, cwd: str, scene: Scene) -> str | None:
    """Why the part would change something that always needs a person, or None."""
    for redirect in dict.fromkeys(one for command in commands for one in command.redirects):
        if redirect.target is None or not redirect.writes or not opens(redirect):
            continue
        for name in named_paths(redirect.target, cwd, scene):
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
            for name in named_paths(word, cwd, scene):
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
    listed(
        "curl wget nc ncat netcat telnet ssh scp sftp ftp rsync ping ping6 dig nslookup host traceroute whois"
        " socat gh glab hub aws gcloud az kubectl helm http https xh lynx w3m links aria2c openssl mail"
        " sendmail smbclient rclone"
    )
)


def against_the_box(commands: list[Part], cwd: str, scene: Scene) -> str | None:
    """Why a command in the sandbox is asked for all the same: it shows secrets, or it may carry something out."""
    for command in commands:
        if scene.network and command.program.rpartition("/")[2] in _NETWORK:
            return f"{command.program} uses the network, which the sandbox lets through."
        words = [*command.words[1:], *(one.target for one in command.redirects if one.target is not None)]
        for word in words:
            for name in named_paths(word, cwd, scene):
                if why := secret(name, scene.places):
                    return f"{word.best} needs a yes: {why}."
    return None
