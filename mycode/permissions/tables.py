"""The commands that only look: each program with the options it may have, for a question saved on every `ls`.

An option that is not named here asks. GNU programs take shortened long options, so only whole ones count. A program
that is given by path is not the one in the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

from msgspec import Struct

from mycode.permissions.shell_grammar import Part, Word


class Use(Struct, frozen=True):
    """What a looking command looks at: files it shows the content of, and files it only names or measures."""

    shows: tuple[Word, ...] = ()
    names: tuple[Word, ...] = ()


def read_only(part: Part) -> Use | None:
    """What the command looks at, or None when it is not known to do nothing else.

    Says nothing about redirects, assignments or where the files are.
    """
    if not part.words or any(word.value is None for word in part.words):
        return None
    name = part.words[0].value or ""
    words = part.words[1:]
    if (special := _SPECIAL.get(name)) is not None:
        return special(words)
    if name in _VERSION_ONLY and [word.value for word in words] in _VERSION_ONLY[name]:
        return Use()
    table = _PROGRAMS.get(name)
    return None if table is None else _use(_spec(table), words, any_glob=name in _ANY_GLOB)


class _Spec(Struct, frozen=True):
    """Allowed options. Values: "" a flag, "value" anything, "path" a file to show, "maybe" only behind `=`."""

    short: dict[str, str]
    long: dict[str, str]
    operands: str
    most: int
    numbers: bool


@cache
def _spec(text: str) -> _Spec:
    """From the short notation: `-abc` flags, `-n:` with a value, `-f@` with a file, `--x`, `--x=`, `--x?`, `-#`.

    After the bar: what operands are (`shows`, `names`, `text`, `none`, `pattern` = one text, then files), `:1` at most.
    """
    options, _, operands = text.partition("|")
    kind, _, most = operands.strip().partition(":")
    short: dict[str, str] = {}
    long: dict[str, str] = {}
    numbers = False
    for option in options.split():
        if option == "-#":
            numbers = True
        elif option.startswith("--"):
            value = {"=": "value", "@": "path", "?": "maybe"}.get(option[-1], "")
            long[option.rstrip("=@?")] = value
        elif option[-1] in ":@":
            short.update(dict.fromkeys(option[1:-1], "value" if option[-1] == ":" else "path"))
        else:
            short.update(dict.fromkeys(option[1:], ""))
    return _Spec(short, long, kind, int(most) if most else 1000, numbers)


# Programs that do no harm with any option, so that a file named like one may stand where a star does.
_ANY_GLOB = frozenset(
    ["ls", "cat", "head", "tail", "wc", "grep", "egrep", "fgrep", "du", "stat", "echo", "md5sum", "sha1sum", "sha256sum", "basename", "dirname"]
)


def _use(spec: _Spec, words: Sequence[Word], *, any_glob: bool = False) -> Use | None:
    shows: list[Word] = []
    operands: list[Word] = []
    given: set[str] = set()
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        value = word.value or ""
        if value == "--":
            operands += waiting
            break
        if word.glob and value[0] in "*?[-":
            if not any_glob or value.startswith("-"):
                return None
            operands.append(word)
            continue
        if not value.startswith("-") or value == "-":
            operands.append(word)
            continue
        if spec.numbers and re.fullmatch(r"-\d+", value):
            continue
        if value.startswith("--"):
            name, sign, inline = value.partition("=")
            wanted = spec.long.get(name)
            if wanted is None or (sign and not wanted) or word.glob:
                return None
            given.add(name)
            if wanted in {"value", "path"}:
                if not sign and not waiting:
                    return None
                argument = Word(inline, inline) if sign else waiting.pop(0)
                if wanted == "path":
                    shows.append(argument)
            continue
        letters = value[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            wanted = spec.short.get(letter)
            if wanted is None or wanted == "maybe" or word.glob:
                return None
            given.add("-" + letter)
            if wanted:
                if not letters and not waiting:
                    return None
                argument = Word(letters, letters) if letters else waiting.pop(0)
                letters = ""
                if wanted == "path":
                    shows.append(argument)
    if len(operands) > spec.most:
        return None
    match spec.operands:
        case "none":
            return None if operands else Use(tuple(shows))
        case "text":
            return Use(tuple(shows), tuple(word for word in operands if word.glob or word.tilde))
        case "plus":
            return Use(tuple(shows)) if all((word.value or "").startswith("+") for word in operands) else None
        case "ps":
            harmless = all(re.fullmatch(r"[auxfw]+", word.value or "") for word in operands)
            return Use() if harmless and not any("env" in (word.value or "") for word in words) else None
        case "names":
            return Use(tuple(shows), tuple(operands))
        case "pattern":
            files = operands if given & {"-e", "-f", "--regexp", "--file", "--files"} else operands[1:]
            return Use((*shows, *files))
        case _:
            return Use((*shows, *operands))


_GREP = (
    "-abcEFGhHiIlLnoqrRsTUvVwxyzZP -ABCdDem: -f@ --basic-regexp --extended-regexp --fixed-strings --perl-regexp --regexp="
    " --file@ --ignore-case --no-ignore-case --invert-match --word-regexp --line-regexp --count --color? --colour?"
    " --files-with-matches --files-without-match --max-count= --only-matching --quiet --silent --no-messages"
    " --byte-offset --with-filename --no-filename --label= --line-number --initial-tab --null --after-context="
    " --before-context= --context= --text --binary-files= --exclude= --exclude-dir= --include= --recursive"
    " --dereference-recursive --line-buffered --null-data -# --help --version | pattern"
)
_SUM = "-bctwz --check --binary --text --tag --zero --quiet --status --strict --warn --ignore-missing -a: --algorithm= | shows"
_TRIVIAL = "| none"

_PROGRAMS: dict[str, str] = {
    "ls": "-aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxX1ZI:w:T: --all --almost-all --author --escape --block-size= --ignore-backups"
    " --color? --directory --dired --classify? --file-type --format= --full-time --group-directories-first --no-group"
    " --human-readable --si --dereference --hide= --hyperlink? --indicator-style= --inode --ignore= --kibibytes --literal"
    " --numeric-uid-gid --quote-name --quoting-style= --reverse --recursive --size --sort= --time= --time-style="
    " --tabsize= --width= --context --zero -I: -w: -T: --help --version | names",
    "dir": "-aAlhR1 | names",
    "tree": "-aACdDfFghilnpqrstuUvxJNQSX -L: -P: -I: --dirsfirst --filesfirst --filelimit= --gitignore --noreport --prune --du"
    " --si --inodes --device --charset= --sort= --timefmt= --matchdirs --ignore-case --version --help | shows",
    "cat": "-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs --show-nonprinting"
    " --help --version | shows",
    "tac": "-br -s: | shows",
    "nl": "-bdfhilnpsvw: | shows",
    "head": "-qvz -nc: --bytes= --lines= --quiet --silent --verbose --zero-terminated -# --help --version | shows",
    "tail": "-qvz -nc: --bytes= --lines= --quiet --silent --verbose --zero-terminated -# --help --version | shows",
    "wc": "-clmwL --bytes --chars --lines --max-line-length --words --total= --help --version | shows",
    "cut": "-nsz -bcdf: --bytes= --characters= --delimiter= --fields= --complement --only-delimited --output-delimiter="
    " --zero-terminated | shows",
    "paste": "-sz -d: --delimiters= --serial --zero-terminated | shows",
    "tr": "-cCdst --complement --delete --squeeze-repeats --truncate-set1 | text",
    "rev": "| shows",
    "sort": "-bdfghiMnRrVcCmsuz -kt: --ignore-leading-blanks --dictionary-order --ignore-case --general-numeric-sort"
    " --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort --random-sort --reverse --sort= --version-sort"
    " --check? --key= --field-separator= --merge --stable --unique --zero-terminated --help --version | shows",
    "uniq": "-cdDiuz -fsw: --count --repeated --all-repeated? --skip-fields= --group? --ignore-case --skip-chars= --unique"
    " --zero-terminated --check-chars= | shows:1",
    "comm": "-123z --check-order --nocheck-order --output-delimiter= --total --zero-terminated | shows",
    "join": "-iz -aejotv12: --check-order --nocheck-order --header | shows",
    "fold": "-bs -w: --bytes --spaces --width= | shows",
    "fmt": "-cstu -wgp: --width= | shows",
    "expand": "-i -t: | shows",
    "unexpand": "-a -t: | shows",
    "column": "-tJxen -scoNHRdOETW: --table --separator= --output-separator= --json | shows",
    "diff": "-abBcdeEiIlnNpPqrstTuwyZ -CFILSUWxX: --normal --brief --report-identical-files --context? --unified? --side-by-side"
    " --width= --left-column --suppress-common-lines --show-c-function --show-function-line= --label= --expand-tabs"
    " --initial-tab --recursive --no-dereference --new-file --exclude= --ignore-case --ignore-tab-expansion"
    " --ignore-trailing-space --ignore-space-change --ignore-all-space --ignore-blank-lines --text"
    " --strip-trailing-cr --minimal --color? --speed-large-files -# | shows",
    "cmp": "-bls -in: --print-bytes --verbose --silent --quiet --ignore-initial= --bytes= | shows",
    "od": "-abcdfhilosvx -AjNStw: --address-radix= --skip-bytes= --read-bytes= --format= --width= | shows",
    "hexdump": "-bcCdovx -nse: | shows",
    "xxd": "-abeEiup -cglos: | shows:1",
    "strings": "-afowd -ntes: --all --print-file-name --bytes= --radix= | shows",
    "base64": "-di -w: --decode --ignore-garbage --wrap= | shows",
    "basenc": "--base64 --base64url --base32 --base16 -d --decode | shows",
    "md5sum": _SUM, "sha1sum": _SUM, "sha224sum": _SUM, "sha256sum": _SUM, "sha384sum": _SUM, "sha512sum": _SUM,
    "shasum": _SUM, "cksum": _SUM, "b2sum": _SUM, "sum": "-rs | shows",
    "stat": "-Ltfx -c: --dereference --file-system --cached= --format= --printf= --terse | names",
    "file": "-bhiIkLNnprsv0E -F: --brief --mime --mime-type --mime-encoding --dereference --no-dereference --separator= | shows",
    "du": "-0abcDhHklLmPsSx -BdtX: --null --all --apparent-size --block-size= --bytes --total --dereference --max-depth="
    " --human-readable --inodes --si --summarize --threshold= --time? --exclude= --one-file-system | names",
    "df": "-ahHiklPTv -Btx: --all --block-size= --human-readable --inodes --local --portability --total --type= --print-type"
    " --output? | names",
    "readlink": "-efmnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline | names",
    "realpath": "-eEmLPqsz --canonicalize-existing --canonicalize-missing --relative-to= --relative-base= --no-symlinks | names",
    "basename": "-az -s: --multiple --suffix= --zero | text",
    "dirname": "-z --zero | text",
    "pwd": "-LP | none",
    "echo": "-neE | text",
    "true": "| text", "false": "| text", ":": "| none",
    "seq": "-w -fs: --format= --separator= --equal-width -# | text",
    "sleep": "| text:1",
    "whoami": _TRIVIAL, "tty": _TRIVIAL, "nproc": "--all | none", "arch": _TRIVIAL, "logname": _TRIVIAL,
    "groups": "| none", "id": "-agGnruz | text:1", "uname": "-asnrvmpio --all | none", "hostname": "-fsdiI | none",
    "uptime": "-ps --pretty --since | none", "free": "-bkmghltvw --human --si --total --wide | none",
    "date": "-uRI --utc --universal --rfc-email --iso-8601? --rfc-3339= -d: --date= | plus",
    "cal": "-135jmsy -ABn: | text",
    "ps": "-aAcdefFHjlLmMNTvVwxyZ -CGgopstuU: --forest --no-headers --sort= --pid= --ppid= --format= | ps",
    "which": "-as --all | text", "type": "-aftpP | text", "whereis": "-bms | text",
    "grep": _GREP, "egrep": _GREP, "fgrep": _GREP,
    "rg": "-acFhHiIlLnNopPqsSuUvVwx. -ABCdEegjmMrtT: -f@ --after-context= --before-context= --context= --binary --case-sensitive"
    " --ignore-case --smart-case --color= --colors= --column --count --count-matches --crlf --debug --encoding= --engine="
    " --regexp= --file@ --files --files-with-matches --files-without-match --fixed-strings --follow --glob= --iglob="
    " --glob-case-insensitive --heading --no-heading --hidden --no-hidden --include-zero --invert-match --json"
    " --line-buffered --line-number --no-line-number --line-regexp --max-columns= --max-columns-preview --max-count="
    " --max-depth= --max-filesize= --mmap --multiline --multiline-dotall --no-config --no-filename --no-ignore"
    " --no-ignore-vcs --no-messages --null --null-data --one-file-system --only-matching --passthru --pcre2 --pretty"
    " --quiet --replace= --sort= --sortr= --stats --text --threads= --trim --type= --type-not= --type-list"
    " --unrestricted --vimgrep --with-filename --word-regexp -# --version --help | pattern",
    "fd": "-aHIiLFgpqus0 -dtEecSjo: --hidden --no-ignore --case-sensitive --ignore-case --glob --fixed-strings --absolute-path"
    " --follow --full-path --max-depth= --min-depth= --exact-depth= --exclude= --type= --extension= --size="
    " --changed-within= --changed-before= --max-results= --print0 --color= | pattern",
    "tokei": "-Cf -est: | names", "cloc": "--quiet --json --by-file | names", "scc": "| names",
    "locale": "-am | none", "getconf": "| text", "lscpu": _TRIVIAL, "lsb_release": "-adircs --all | none",
    "sw_vers": _TRIVIAL,
}  # fmt: skip

_GIT_DIFF = (
    "-pusRabwzMCWq0 -UOSGl: --patch --no-patch --unified= --stat? --numstat --shortstat --dirstat? --summary --patch-with-stat"
    " --name-only --name-status --color? --no-color --color-words? --word-diff? --word-diff-regex= --no-renames"
    " --check --full-index --binary --abbrev? --find-renames? --find-copies? --find-copies-harder --diff-filter= --pickaxe-all"
    " --pickaxe-regex --text --ignore-space-at-eol --ignore-space-change --ignore-all-space --ignore-blank-lines"
    " --inter-hunk-context= --function-context --exit-code --quiet --no-ext-diff --no-textconv --ignore-submodules?"
    " --src-prefix= --dst-prefix= --no-prefix --relative? --minimal --patience --histogram --diff-algorithm= --raw"
    " --compact-summary --merge-base --cached --staged --stat-width= --stat-count= --stat-name-width= -# | revs"
)
_GIT_LOG = _GIT_DIFF.replace("-# | revs", "") + (
    " -gnicEFPLm: --oneline --graph --decorate? --no-decorate --all --branches? --tags? --remotes? --glob= --max-count= --skip="
    " --since= --after= --until= --before= --author= --committer= --grep= --invert-grep --regexp-ignore-case --fixed-strings"
    " --perl-regexp --merges --no-merges --first-parent --reverse --follow --format= --pretty? --abbrev-commit"
    " --no-abbrev-commit --date= --relative-date --show-signature --left-right --cherry-pick --cherry-mark --cherry --boundary"
    " --simplify-by-decoration --full-history --topo-order --date-order --author-date-order --walk-reflogs --notes?"
    " --no-notes --source --mailmap --use-mailmap --no-walk --children --parents --count --ancestry-path --right-only"
    " --left-only --cc --diff-merges= --no-diff-merges --clear-decorations --decorate-refs= -# | revs"
)
_GIT: dict[str, str] = {
    "status": "-sbvuz --short --branch --show-stash --porcelain? --long --verbose --untracked-files? --ignore-submodules?"
    " --ignored? --null --column? --no-column --ahead-behind --no-ahead-behind --renames --no-renames | revs",
    "diff": _GIT_DIFF,
    "log": _GIT_LOG, "show": _GIT_LOG, "whatchanged": _GIT_LOG,
    "shortlog": "-nsecw --numbered --summary --email --all --since= --until= --no-merges --group= --format= | revs",
    "rev-parse": "--abbrev-ref? --short? --show-toplevel --show-prefix --show-cdup --git-dir --absolute-git-dir --git-common-dir"
    " --is-inside-work-tree --is-bare-repository --is-inside-git-dir --verify --quiet --symbolic --symbolic-full-name"
    " --all --branches? --tags? --remotes? --show-superproject-working-tree -q | revs",
    "rev-list": "-n: --max-count= --count --all --oneline --since= --until= --author= --merges --no-merges --first-parent --reverse"
    " --objects --parents --left-right --branches? --tags? -# | revs",
    "ls-files": "-cdmoiksuztvf -xX: --cached --deleted --modified --others --ignored --stage --unmerged --killed --exclude="
    " --exclude-standard --error-unmatch --full-name --abbrev? --deduplicate --eol | revs",
    "ls-tree": "-drtlz --long --name-only --name-status --object-only --full-name --full-tree --abbrev? --format= | revs",
    "cat-file": "-tspe --batch-check? | revs",
    "blame": "-bcefklnpstwC -LSM: --root --show-stats --porcelain --line-porcelain --incremental --date= --abbrev= | revs",
    "annotate": "-L: | revs",
    "describe": "--all --tags --long --always --dirty? --abbrev= --match= --exclude= --exact-match --first-parent --contains | revs",
    "name-rev": "--tags --refs= --all --name-only --always | revs",
    "merge-base": "-a --all --octopus --is-ancestor --fork-point --independent | revs",
    "for-each-ref": "--count= --sort= --format= --points-at= --merged? --no-merged? --contains? | revs",
    "show-ref": "-dhs --head --heads --branches --tags --dereference --hash? --verify --abbrev? -q --quiet --exists | revs",
    "show-branch": "-ar --all --remotes --list --no-color | revs",
    "count-objects": "-vH --verbose --human-readable | none",
    "check-ignore": "-qvnz --quiet --verbose --non-matching --no-index | revs",
    "check-attr": "-az --all --cached | revs",
    "diff-tree": _GIT_DIFF.replace("-# | revs", "") + " -rtmcs --root --no-commit-id --pretty? -# | revs",
    "diff-files": _GIT_DIFF, "diff-index": _GIT_DIFF,
    "grep": "-aciEFGHhIlLnopPqrvwW -ABCmef: --cached --untracked --no-index --ignore-case --word-regexp --invert-match --line-number"
    " --column --files-with-matches --name-only --files-without-match --count --extended-regexp --fixed-strings"
    " --perl-regexp --break --heading --show-function --function-context --context= --and --or --not --all-match"
    " --max-depth= --only-matching --color? --no-color --full-name --quiet -# | revs",
    "branch": "-arvil --all --remotes --list --verbose --show-current --merged? --no-merged? --contains? --no-contains?"
    " --points-at= --sort= --format= --column? --no-column --color? --no-color --abbrev= --ignore-case | listing",
    "tag": "-ln --list --sort= --format= --merged? --no-merged? --contains? --points-at= --column? -# | listing",
    "remote": "-v --verbose | remote",
    "stash": "| stash",
    "worktree": "| worktree",
    "reflog": "| reflog",
    "config": "--get --get-all --local --global --show-origin --show-scope --type= --bool --int --path --null -z | config",
    "version": "--build-options | none",
}  # fmt: skip

_VERSIONS = {
    **dict.fromkeys(
        ["python", "python3", "pip", "pip3", "uv", "ruff", "mypy", "pytest", "black", "flake8", "pylint", "poetry", "pdm", "hatch", "pipx", "tox", "nox", "node", "npm", "pnpm", "yarn", "bun", "deno", "tsc", "eslint", "prettier", "cargo", "rustc", "rustup", "gcc", "g++", "clang", "clang++", "cc", "make", "cmake", "ninja", "meson", "ruby", "gem", "bundle", "perl", "php", "composer", "docker", "podman", "git", "gh", "bash", "zsh", "sh", "jq", "rg", "fd", "curl", "wget", "tar", "gzip", "unzip", "sqlite3", "psql", "mysql", "redis-cli", "kubectl", "helm", "terraform", "ghc", "stack", "swift", "kotlin", "scala", "sbt", "gradle", "mvn", "dotnet", "R", "julia", "lua", "luajit", "erl", "elixir", "ocaml", "opam", "zig", "nim", "crystal", "dart", "flutter", "ssh", "vim", "nvim", "emacs", "tmux", "rsync", "openssl", "ffmpeg", "pandoc", "pre-commit", "hyperfine", "tree", "grep", "sed", "awk", "gawk", "find", "ls"],
        [["--version"]],
    ),
}
_VERSION_ONLY: dict[str, list[list[str]]] = {
    **_VERSIONS,
    "python": [["--version"], ["-V"], ["-VV"]],
    "python3": [["--version"], ["-V"], ["-VV"]],
    "node": [["--version"], ["-v"]],
    "npm": [["--version"], ["-v"]],
    "ruby": [["--version"], ["-v"]],
    "perl": [["--version"], ["-v"]],
    "php": [["--version"], ["-v"]],
    "go": [["version"]],
    "java": [["-version"], ["--version"]],
    "javac": [["-version"], ["--version"]],
    "rustc": [["--version"], ["-V"], ["-vV"]],
    "cargo": [["--version"], ["-V"]],
    "pip": [["--version"], ["-V"]],
    "ssh": [["-V"]],
    "lua": [["-v"]],
    "tmux": [["-V"]],
    "openssl": [["version"]],
}


def _git(words: Sequence[Word]) -> Use | None:
    rest = list(words)
    while rest and rest[0].value in {"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"}:
        rest.pop(0)
    if [word.value for word in rest] in (["--version"], ["version"]):
        return Use()
    table = _GIT.get(rest[0].value or "") if rest and not rest[0].glob else None
    if table is None:
        return None
    spec, name, rest = _spec(table), rest[0].value, rest[1:]
    values = [word.value or "" for word in rest]
    plain = [value for value in values if not value.startswith("-")]
    match spec.operands:
        case "revs":
            found = _use(_Spec(spec.short, spec.long, "shows", 1000, spec.numbers), rest)
            if found is None:
                return None
            # `git diff --no-index` and pathspecs outside read any file; revisions are harmless as paths go.
            return Use(() if name == "grep" and "--no-index" not in values else found.shows, ())
        case "listing":
            found = _use(_Spec(spec.short, spec.long, "text", 1000, spec.numbers), rest)
            lists = any(
                re.match(r"-[a-z]*l|--list|--(?:no-)?contains|--(?:no-)?merged|--points-at", value) for value in values
            )
            return found if found is not None and (lists or not plain) else None
        case "remote":
            return Use() if plain in ([], *([["get-url", name] for name in plain[1:2]])) and _use(
                _Spec(spec.short, spec.long, "text", 2, numbers=False), rest) is not None else None  # fmt: skip
        case "stash":
            return Use() if (values[:1] == ["list"] and len(values) == 1) or (
                values[:1] == ["show"] and all(v in {"-p", "--stat", "--name-only"} or re.fullmatch(r"stash@\{\d+\}|\d+", v)
                for v in values[1:])) else None  # fmt: skip
        case "worktree":
            return Use() if values in (["list"], ["list", "--porcelain"]) else None
        case "reflog":
            if values[:1] and values[0] in {"expire", "delete", "exists", "drop", "write"}:
                return None
            return _git([Word("log", "log"), *(rest[1:] if values[:1] == ["show"] else rest)])
        case "config":
            reads = {"--get", "--get-all"} & set(values)
            harmless = all(re.fullmatch(r"(?i)user\.(?:name|email)|remote\.[\w.-]+\.url|branch\..*|init\..*|core\.(?:editor|bare|"
                           r"autocrlf|filemode|ignorecase)|pull\..*|push\.default", value) for value in plain)  # fmt: skip
            found = _use(_Spec(spec.short, spec.long, "text", 1, numbers=False), rest)
            return found if found is not None and len(plain) == 1 and harmless and (reads or len(values) == 1) else None
        case _:
            return _use(spec, rest)


_FIND_TESTS = frozenset(
    ["-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-type", "-xtype", "-size", "-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-newer", "-anewer", "-cnewer", "-user", "-group", "-uid", "-gid", "-perm", "-links", "-inum", "-samefile", "-maxdepth", "-mindepth", "-regextype", "-printf", "-fstype", "-lname", "-ilname", "-used", "-newermt"]
)
_FIND_FLAGS = frozenset(
    ["-print", "-print0", "-ls", "-prune", "-empty", "-readable", "-writable", "-executable", "-true", "-false", "-not", "-and", "-or", "-a", "-o", "!", "(", ")", ",", "-depth", "-mount", "-xdev", "-nouser", "-nogroup", "-daystart", "-follow", "-noleaf", "-warn", "-nowarn", "-quit"]
)


def _find(words: Sequence[Word]) -> Use | None:
    rest = list(words)
    starts: list[Word] = []
    while rest and rest[0].value in {"-H", "-L", "-P"}:
        rest.pop(0)
    while rest and not (rest[0].value or "").startswith("-") and rest[0].value not in {"(", "!", ","}:
        starts.append(rest.pop(0))
    while rest:
        word = rest.pop(0)
        if word.value in _FIND_TESTS and rest and not (word.glob or rest[0].glob):
            rest.pop(0)
        elif word.value not in _FIND_FLAGS or word.glob:
            return None
    return None if any(word.glob and (word.value or "")[0] in "*?[" for word in starts) else Use(names=tuple(starts))


_SED_ADDRESS = r"(?:\d+|\$|/(?:[^/\\\n]|\\[^\n])*/I?)"
_SED_COMMAND = (
    rf"\s*(?:{_SED_ADDRESS}(?:\s*,\s*(?:{_SED_ADDRESS}|[+~]\d+))?\s*!?\s*)?"
    r"(?:[pdq=]|s/(?:[^/\\\n]|\\[^\n])*/(?:[^/\\\n]|\\[^\n])*/[gpiI0-9]*|s\|(?:[^|\\\n]|\\[^\n])*\|(?:[^|\\\n]|\\[^\n])*\|[gpiI0-9]*"
    r"|s,(?:[^,\\\n]|\\[^\n])*,(?:[^,\\\n]|\\[^\n])*,[gpiI0-9]*|s#(?:[^#\\\n]|\\[^\n])*#(?:[^#\\\n]|\\[^\n])*#[gpiI0-9]*)?\s*"
)


def _sed(words: Sequence[Word]) -> Use | None:
    """Printing, deleting and replacing lines on the way out; no `e`, `w`, `r`, no script from a file, not in place."""
    scripts: list[str] = []
    operands: list[Word] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        value = word.value or ""
        if value in {"-e", "--expression"} and rest:
            scripts.append(rest.pop(0).value or "")
        elif value in {
            "-n",
            "-E",
            "-r",
            "-nE",
            "-En",
            "-nr",
            "-rn",
            "-s",
            "-u",
            "-z",
            "--quiet",
            "--silent",
            "--regexp-extended",
        }:
            continue
        elif value == "-ne" and rest:
            scripts.append(rest.pop(0).value or "")
        elif value.startswith("-") and value != "-":
            return None
        else:
            operands.append(word)
    if not scripts and operands:
        scripts.append(operands.pop(0).value or "")
    if any(word.glob and (word.value or "")[0] in "*?[" for word in operands):
        return None
    safe = all(
        re.fullmatch(rf"{_SED_COMMAND}(?:;{_SED_COMMAND})*", line) for script in scripts for line in script.split("\n")
    )
    return Use(tuple(operands)) if scripts and safe else None


def _awk(words: Sequence[Word]) -> Use | None:
    """Programs that pick and print fields; nothing that runs, reads or writes anything else."""
    rest = list(words)
    while rest and (value := rest[0].value or "").startswith("-"):
        if value == "-F" and len(rest) > 1:
            rest = rest[2:]
        elif re.fullmatch(r"-F.{1,4}", value):
            rest = rest[1:]
        elif value == "-v" and len(rest) > 1 and re.fullmatch(r"[a-z_]\w*=[\w.,:/ -]*", rest[1].value or ""):
            rest = rest[2:]
        else:
            return None
    if not rest or rest[0].glob:
        return None
    program = rest[0].value or ""
    harmless = re.fullmatch(r"[\w\s$,;:.\"'+*/%(){}=!<&^~\[\]\\?#-]*", program)
    forbidden = re.search(
        r"system|getline|close|fflush|func|ENVIRON|ARG|PROCINFO|SYMTAB|FUNCTAB|printf\s*>|<\s*[\"$(]|@", program
    )
    operands = rest[1:]
    if not harmless or forbidden or any(word.glob and (word.value or "")[0] in "*?[" for word in operands):
        return None
    if any("=" in (word.value or "") for word in operands):
        return None
    return Use(tuple(operands))


def _jq(words: Sequence[Word]) -> Use | None:
    found = _use(
        _spec("-cCMrjaSsneR --compact-output --color-output --monochrome-output --raw-output --join-output --ascii-output"
              " --sort-keys --slurp --null-input --exit-status --raw-input --tab --indent= | pattern"), words)  # fmt: skip
    filters = [word.value or "" for word in words if not (word.value or "").startswith("-")]
    unsafe = not filters or re.search(
        r"\benv\b|\$ENV|\binput_filename|\bimport\b|\binclude\b|\bdebug\b|\bgetpath/", filters[0]
    )
    return None if unsafe else found


def _printf(words: Sequence[Word]) -> Use | None:
    values = [word.value or "" for word in words]
    return Use() if values and not values[0].startswith("-") and "%n" not in values[0] else None


def _test(words: Sequence[Word]) -> Use | None:
    """`test` and `[`: files, strings and numbers; not `-v`, which evaluates what it is given."""
    values = [word.value or "" for word in words]
    if values[-1:] == ["]"]:
        values.pop()
    flags = {value for value in values if re.fullmatch(r"-[a-zA-Z]+", value)}
    known = set(["-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-n", "-z", "-a", "-o", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef", "-S", "-p"])
    literal = not any(re.search(r"[\[\]`$]", value) for value in values)
    return Use() if flags <= known and literal else None


def _command(words: Sequence[Word]) -> Use | None:
    return Use() if words and words[0].value in {"-v", "-V"} and len(words) > 1 else None


def _cd(words: Sequence[Word]) -> Use | None:
    return (
        Use(names=tuple(words))
        if len(words) == 1 and not words[0].glob and words[0].value != "-" and words[0].value
        else None
    )


_SPECIAL: dict[str, Callable[[Sequence[Word]], Use | None]] = {
    "git": _git,
    "find": _find,
    "sed": _sed,
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "jq": _jq,
    "printf": _printf,
    "test": _test,
    "[": _test,
    "command": _command,
    "cd": _cd,
}
