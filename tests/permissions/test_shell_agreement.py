"""What the strict reader takes for understood means the same to a real bash: the same programs with the same words.

No program runs: bash finds none on its PATH, and hands every command line to a handler that writes it down.
"""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from mycode.permissions.shell_grammar import Part, parse


# No slash is in any of these, so that no redirect can leave the folder of the test.
def _split(text: str) -> list[str]:
    return text.split()


_WORDS = _split(
    "ls cat evil a b -x f1 HEAD --y=1 x=1 A=1 LC_ALL=C time nice if then fi do done while for in ! { } [[ ]] case esac"
    " function select coproc 1 12 123 é stash@{0} @{a} ^{b} {} a{} {a,b} {a..c} $x $(evil) `evil` $'q' $\"q\" a=b ] #"
    ' #c a#b % + @ ^ , : - -- . \'"\' "\'" \\ \\; \\| \\& \\# \\\\ \'\' "" \'a\' "$x" "`evil`" "\\$" "!"'
)
_BLANKS = [" ", " ", " ", "  ", "\t", "\n", "\\\n", " \\\n", "\r", "\x0b", "\u3000", "'a b'", '"a;b"', '" #"', "\\ "]
_OPERATORS = _split(
    "&& || | ; & |& ;; ;& > >> < >| &> &>> 2> 2>&1 >&2 >& 1>&2 <> <& >o1 >>o2 << <<< ( ) {fd}> >&- 3>o3 12>o4"
    " 123>o5 >&2"
)
_BUILTINS = (
    "echo cd pwd test [ true false type hash read kill wait jobs fg bg let umask ulimit times alias unalias getopts"
    " shift source command bind caller compgen complete compopt dirs pushd popd disown fc help history local logout"
    " mapfile readarray suspend shopt typeset declare :"
)
_HANDLER = """enable -n {builtins}
command_not_found_handle() {{ builtin printf '%s\\0' "$@" $'\\x01' >> '{log}'; }}
"""


def _text(chance: random.Random) -> str:
    """Some shell: half of it shaped like commands with arguments, half of it anything."""
    shaped = chance.random() < 0.6
    pieces: list[str] = []
    for _ in range(chance.choice([2, 3, 4, 5, 6, 8, 10, 14])):
        if shaped:
            if not pieces or pieces[-1].strip() in {"&&", "||", "|", ";"}:
                pieces.append(chance.choice(["ls", "cat", "evil", "LC_ALL=C ls"]))
            kind = chance.choices([_WORDS, _BLANKS, _OPERATORS], [6, 2, 2])[0]
            pieces.append(chance.choice([" ", " ", ""]) + chance.choice(kind) + chance.choice(["", " "]))
        else:
            pieces.append(chance.choice(chance.choice([_WORDS, _BLANKS, _OPERATORS])))
    return "".join(pieces)


def _as_bash_reads(text: str, folder: Path) -> tuple[list[list[str]], set[str]]:
    """The command lines that bash would run, and the files it opens for writing."""
    work, log, start = folder / "work", folder / "log", folder / "start"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    log.write_bytes(b"")
    start.write_text(_HANDLER.format(builtins=_BUILTINS, log=log))
    environment = {"PATH": "/nowhere", "HOME": str(work), "BASH_ENV": str(start), "LC_ALL": "C.UTF-8"}
    subprocess.run(
        ["/bin/bash", "-c", text],
        cwd=work,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    lines = log.read_bytes().decode().split("\x01\0")[:-1]
    return [line.split("\0")[:-1] for line in lines], {path.name for path in work.iterdir()}


def _as_we_read(parts: tuple[Part, ...]) -> tuple[list[list[str]], set[str]]:
    lines = []
    for part in parts:
        words = [word.value or "" for word in part.words]
        lines.append(words)
        while words[:1] in (["time"], ["--"], ["-p"]):
            words = words[1:]
            lines.append(words)
    targets = {one.target.value or "" for part in parts for one in part.redirects if one.target is not None}
    return lines, targets


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="needs bash")
@pytest.mark.parametrize("seed", range(4))
def test_what_is_understood_is_what_bash_runs(seed: int, tmp_path: Path):
    chance = random.Random(seed)
    understood = 0
    while understood < 60:
        text = _text(chance)
        script = parse(text)
        if script.unclear or not script.parts or any(word.glob for part in script.parts for word in part.words):
            continue
        understood += 1
        lines, targets = _as_we_read(script.parts)
        run, opened = _as_bash_reads(text, tmp_path)

        unseen = [line for line in run if line not in lines and not _assigned(line, lines)]
        assert (text, unseen, opened - targets) == (text, [], set())


def _assigned(line: list[str], lines: list[list[str]]) -> bool:
    """`time A=b ls` sets a variable for ls; we take `A=b` for the program, which is none that is known."""
    return any("=" in known[at - 1] and known[at:] == line for known in lines for at in range(1, len(known)))


@pytest.mark.parametrize(
    "text",
    [
        "sed 123>o p f",  # a stream of a high number, not a word
        "sed >&-p f",  # `>&-` ends there
        "sed >& -p f",
        'ls >&2"\\\\"',  # quotes are taken off twice
        "ls a=~x",  # the home folder goes in there too
        "ls {fd}>o",
        "ls a{b}",
        "ls stash@{0,1}",
        "ls @{a..c}",
    ],
)
def test_what_bash_reads_in_a_way_of_its_own_is_not_taken_for_understood(text: str):
    assert parse(text).unclear
