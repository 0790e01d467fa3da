"""What every part of a command is judged by: rules, folders, the disk, with the files that its words may name."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator

from msgspec import Struct

from mycode.core.tools import Mode
from mycode.permissions.ground import Ground
from mycode.permissions.hard_stops import really
from mycode.permissions.places import Look, Places, absolute
from mycode.permissions.rules import Rules
from mycode.permissions.shell_grammar import Redirect, Script, Word, braces_opened


class Scene(Struct, frozen=True):
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


class TooMuchError(Exception):
    """Raised when more would have to be looked at than anybody waits for."""


_MOST_NAMES = 4000


def both(path: str, look: Look) -> tuple[str, str]:
    return path, look(path).path


def repository(cwd: str, scene: Scene) -> str:
    found = scene.ground.repository(cwd)
    return found.root if found is not None else scene.places.start


def named_paths(word: Word, cwd: str, scene: Scene) -> Iterator[str]:
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
            raise TooMuchError
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


def opens(redirect: Redirect) -> bool:
    return redirect.target is not None and redirect.target.value not in {"/dev/null", "/dev/stdout", "/dev/stderr"}
