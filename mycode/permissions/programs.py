"""The programs that only look, with every option they may have; the notation is that of `options.read_spec`."""

from __future__ import annotations

from mycode.permissions.listed import listed

_GREP = (
    "-abcEFGhHiIlLnoqrRsTUvVwxyzZP -ABCem: -f@ --basic-regexp --extended-regexp"
    " --fixed-strings --perl-regexp --regexp="
    " --file@ --ignore-case --no-ignore-case --invert-match --word-regexp --line-regexp --count --color? --colour?"
    " --files-with-matches --files-without-match --max-count= --only-matching --quiet --silent --no-messages"
    " --byte-offset --with-filename --no-filename --label= --line-number --initial-tab --null --after-context="
    " --before-context= --context= --text --binary-files= --exclude= --exclude-dir= --include% --recursive"
    " --dereference-recursive --line-buffered --null-data -# --help --version | pattern"
)
_SUM = (
    "-bctwz --check --binary --text --tag --zero --quiet --status --strict --warn --ignore-missing -a: --algorithm="
    " | shows"
)
_TRIVIAL = "| none"

PROGRAMS: dict[str, str] = {
    "ls": "-aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxX1Z -IwT: --all --almost-all --author --escape"
    " --block-size= --ignore-backups"
    " --color? --directory --dired --classify? --file-type --format= --full-time --group-directories-first --no-group"
    " --human-readable --si --dereference --hide= --hyperlink? --indicator-style= --inode"
    " --ignore= --kibibytes --literal"
    " --numeric-uid-gid --quote-name --quoting-style= --reverse --recursive --size --sort= --time= --time-style="
    " --tabsize= --width= --context --zero --help --version | names",
    "dir": "-aAlhR1 | names",
    "tree": "-aACdDfFghilnpqrstuUvxJNQSX -L: -P: -I: --dirsfirst --filesfirst --filelimit= --gitignore"
    " --noreport --prune --du"
    " --si --inodes --device --charset= --sort= --timefmt= --matchdirs --ignore-case --version --help | shows",
    "cat": "-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs"
    " --show-nonprinting"
    " --help --version | shows",
    "tac": "-br -s: | shows",
    "nl": "-p -bdfhilnsvw: | shows",
    "head": "-qvz -nc: --bytes= --lines= --quiet --silent --verbose --zero-terminated -# --help --version | shows",
    "tail": "-qvz -nc: --bytes= --lines= --quiet --silent --verbose --zero-terminated -# --help --version | shows",
    "wc": "-clmwL --bytes --chars --lines --max-line-length --words --total= --help --version | shows",
    "cut": "-nsz -bcdf: --bytes= --characters= --delimiter= --fields= --complement --only-delimited"
    " --output-delimiter="
    " --zero-terminated | shows",
    "paste": "-sz -d: --delimiters= --serial --zero-terminated | shows",
    "tr": "-cCdst --complement --delete --squeeze-repeats --truncate-set1 | text",
    "rev": "| shows",
    "sort": "-bdfghiMnRrVcCmsuz -kt: --ignore-leading-blanks --dictionary-order --ignore-case --general-numeric-sort"
    " --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort --random-sort"
    " --reverse --sort= --version-sort"
    " --check? --key= --field-separator= --merge --stable --unique --zero-terminated --help --version | shows",
    "uniq": "-cdDiuz -fsw: --count --repeated --all-repeated? --skip-fields= --group? --ignore-case"
    " --skip-chars= --unique"
    " --zero-terminated --check-chars= | shows:1",
    "comm": "-123z --check-order --nocheck-order --output-delimiter= --total --zero-terminated | shows",
    "join": "-iz -aejotv12: --check-order --nocheck-order --header | shows",
    "fold": "-bs -w: --bytes --spaces --width= | shows",
    "fmt": "-cstu -wgp: --width= | shows",
    "expand": "-i -t: | shows",
    "unexpand": "-a -t: | shows",
    "column": "-tJxen -scoNHRdOETW: --table --separator= --output-separator= --json | shows",
    "diff": "-abBcdeEiIlnNpPqrstTuwyZ -CFILSUWx: -X@ --normal --brief --report-identical-files --context?"
    " --unified? --side-by-side"
    " --width= --left-column --suppress-common-lines --show-c-function --show-function-line= --label= --expand-tabs"
    " --initial-tab --recursive --no-dereference --new-file --exclude= --ignore-case --ignore-tab-expansion"
    " --ignore-trailing-space --ignore-space-change --ignore-all-space --ignore-blank-lines --text"
    " --strip-trailing-cr --minimal --color? --speed-large-files -# | shows",
    "cmp": "-bls -in: --print-bytes --verbose --silent --quiet --ignore-initial= --bytes= | shows",
    "od": "-abcdfhilosvx -AjNt: --address-radix= --skip-bytes= --read-bytes= --format= --width= | shows",
    "hexdump": "-bcCdovx -nse: | shows",
    "xxd": "-abeEiup -cglos: | shows:1",
    "strings": "-afowd -ntes: --all --print-file-name --bytes= --radix= | shows",
    "base64": "-di -w: --decode --ignore-garbage --wrap= | shows",
    "basenc": "--base64 --base64url --base32 --base16 -d --decode | shows",
    "md5sum": _SUM,
    "sha1sum": _SUM,
    "sha224sum": _SUM,
    "sha256sum": _SUM,
    "sha384sum": _SUM,
    "sha512sum": _SUM,
    "shasum": _SUM,
    "cksum": _SUM,
    "b2sum": _SUM,
    "sum": "-rs | shows",
    "stat": "-Ltfx -c: --dereference --file-system --cached= --format= --printf= --terse | names",
    "file": "-bhiIkLNnprsv0E -F: --brief --mime --mime-type --mime-encoding --dereference"
    " --no-dereference --separator= | shows",
    "du": "-0abcDhHklLmPsSx -BdtX: --null --all --apparent-size --block-size= --bytes --total"
    " --dereference --max-depth="
    " --human-readable --inodes --si --summarize --threshold= --time? --exclude= --one-file-system | names",
    "df": "-ahHiklPTv -Btx: --all --block-size= --human-readable --inodes --local --portability"
    " --total --type= --print-type"
    " --output? | names",
    "readlink": "-efmnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline | names",
    "realpath": "-eEmLPqsz --canonicalize-existing --canonicalize-missing --relative-to= --relative-base="
    " --no-symlinks | names",
    "basename": "-az -s: --multiple --suffix= --zero | text",
    "dirname": "-z --zero | text",
    "pwd": "-LP | none",
    "true": "| text",
    "false": "| text",
    ":": "| none",
    "seq": "-w -fs: --format= --separator= --equal-width -# | text",
    "sleep": "| text:1",
    "whoami": _TRIVIAL,
    "tty": _TRIVIAL,
    "nproc": "--all | none",
    "arch": _TRIVIAL,
    "logname": _TRIVIAL,
    "groups": "| none",
    "id": "-agGnruz | text:1",
    "uname": "-asnrvmpio --all | none",
    "hostname": "-fsdiI | none",
    "uptime": "-ps --pretty --since | none",
    "free": "-bkmghltvw --human --si --total --wide | none",
    "date": "-uR -I? --utc --universal --rfc-email --iso-8601? --rfc-3339= -d: --date= | plus",
    "cal": "-135jmsy -ABn: | text",
    "which": "-as --all | text",
    "type": "-aftpP | text",
    "whereis": "-bms | text",
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    "rg": "-acFhHiIlLnNopPqsSuUvVwx. -ABCdEejmMrtT: -g% -f@ --after-context= --before-context="
    " --context= --binary --case-sensitive"
    " --ignore-case --smart-case --color= --colors= --column --count --count-matches --crlf"
    " --debug --encoding= --engine="
    " --regexp= --file@ --files --files-with-matches --files-without-match --fixed-strings --follow --glob% --iglob%"
    " --glob-case-insensitive --heading --no-heading --hidden --no-hidden --include-zero --invert-match --json"
    " --line-buffered --line-number --no-line-number --line-regexp --max-columns= --max-columns-preview --max-count="
    " --max-depth= --max-filesize= --mmap --multiline --multiline-dotall --no-config --no-filename --no-ignore"
    " --no-ignore-vcs --no-messages --null --null-data --one-file-system --only-matching --passthru --pcre2 --pretty"
    " --quiet --replace= --sort= --sortr= --stats --text --threads= --trim --type= --type-not= --type-list"
    " --unrestricted --vimgrep --with-filename --word-regexp -# --version --help | pattern",
    "fd": "-aHIiLFgpqus0 -dtEecSjo: --hidden --no-ignore --case-sensitive --ignore-case --glob"
    " --fixed-strings --absolute-path"
    " --follow --full-path --max-depth= --min-depth= --exact-depth= --exclude= --type= --extension= --size="
    " --changed-within= --changed-before= --max-results= --print0 --color= | pattern",
    "tokei": "-Cf -est: | names",
    "cloc": "--quiet --json --by-file | names",
    "scc": "| names",
    "locale": "-am | none",
    "getconf": "| text",
    "lscpu": _TRIVIAL,
    "lsb_release": "-adircs --all | none",
    "sw_vers": _TRIVIAL,
}

_GIT_DIFF = (
    "-pusRabwzMCWq0 -USGl: --patch --no-patch --unified= --stat? --numstat --shortstat"
    " --dirstat? --summary --patch-with-stat"
    " --name-only --name-status --color? --no-color --color-words? --word-diff? --word-diff-regex= --no-renames"
    " --check --full-index --binary --abbrev? --find-renames? --find-copies?"
    " --find-copies-harder --diff-filter= --pickaxe-all"
    " --pickaxe-regex --text --ignore-space-at-eol --ignore-space-change --ignore-all-space --ignore-blank-lines"
    " --inter-hunk-context= --function-context --exit-code --quiet --no-ext-diff --no-textconv --ignore-submodules?"
    " --src-prefix= --dst-prefix= --no-prefix --relative? --minimal --patience --histogram --diff-algorithm= --raw"
    " --compact-summary --merge-base --cached --staged --stat-width= --stat-count= --stat-name-width= -# | revs"
)
_GIT_LOG = _GIT_DIFF.replace("-# | revs", "") + (
    " -gicEFPm -n: -L@ --oneline --graph --decorate? --no-decorate --all --branches? --tags?"
    " --remotes? --glob= --max-count= --skip="
    " --since= --after= --until= --before= --author= --committer= --grep= --invert-grep"
    " --regexp-ignore-case --fixed-strings"
    " --perl-regexp --merges --no-merges --first-parent --reverse --follow --format= --pretty? --abbrev-commit"
    " --no-abbrev-commit --date= --relative-date --show-signature --left-right --cherry-pick"
    " --cherry-mark --cherry --boundary"
    " --simplify-by-decoration --full-history --topo-order --date-order --author-date-order --walk-reflogs --notes?"
    " --no-notes --source --mailmap --use-mailmap --no-walk --children --parents --count --ancestry-path --right-only"
    " --left-only --cc --diff-merges= --no-diff-merges --clear-decorations --decorate-refs= -# | revs"
)
GIT: dict[str, str] = {
    "status": "-sbvz -u? --short --branch --show-stash --porcelain? --long --verbose --untracked-files?"
    " --ignore-submodules?"
    " --ignored? --null --column? --no-column --ahead-behind --no-ahead-behind --renames --no-renames | revs",
    "diff": _GIT_DIFF,
    "log": _GIT_LOG,
    "show": _GIT_LOG,
    "whatchanged": _GIT_LOG,
    "shortlog": "-nsecw --numbered --summary --email --all --since= --until= --no-merges --group= --format= | revs",
    "rev-parse": "--abbrev-ref? --short? --show-toplevel --show-prefix --show-cdup --git-dir"
    " --absolute-git-dir --git-common-dir"
    " --is-inside-work-tree --is-bare-repository --is-inside-git-dir --verify --quiet --symbolic --symbolic-full-name"
    " --all --branches? --tags? --remotes? --show-superproject-working-tree -q | revs",
    "rev-list": "-n: --max-count= --count --all --oneline --since= --until= --author= --merges --no-merges"
    " --first-parent --reverse"
    " --objects --parents --left-right --branches? --tags? -# | revs",
    "ls-files": "-cdmoiksuztvf -x: -X@ --cached --deleted --modified --others --ignored --stage --unmerged"
    " --killed --exclude="
    " --exclude-standard --error-unmatch --full-name --abbrev? --deduplicate --eol | revs",
    "ls-tree": "-drtlz --long --name-only --name-status --object-only --full-name --full-tree --abbrev?"
    " --format= | revs",
    "cat-file": "-tspe --batch-check? | revs",
    "blame": "-bcefklnpstwCM -L: -S@ --root --show-stats --porcelain --line-porcelain --incremental"
    " --date= --abbrev= | revs",
    "annotate": "-L: | revs",
    "describe": "--all --tags --long --always --dirty? --abbrev= --match= --exclude= --exact-match"
    " --first-parent --contains | revs",
    "name-rev": "--tags --refs= --all --name-only --always | revs",
    "merge-base": "-a --all --octopus --is-ancestor --fork-point --independent | revs",
    "for-each-ref": "--count= --sort= --format= --points-at= --merged? --no-merged? --contains? | revs",
    "show-ref": "-dhs --head --heads --branches --tags --dereference --hash? --verify --abbrev? -q --quiet"
    " --exists | revs",
    "show-branch": "-ar --all --remotes --list --no-color | revs",
    "count-objects": "-vH --verbose --human-readable | none",
    "check-ignore": "-qvnz --quiet --verbose --non-matching --no-index | revs",
    "check-attr": "-az --all --cached | revs",
    "diff-tree": _GIT_DIFF.replace("-# | revs", "") + " -rtmcs --root --no-commit-id --pretty? -# | revs",
    "diff-files": _GIT_DIFF,
    "diff-index": _GIT_DIFF,
    "grep": "-aciEFGHhIlLnopPqrvwW -ABCme: -f@ --cached --untracked --no-index --ignore-case"
    " --word-regexp --invert-match --line-number"
    " --column --files-with-matches --name-only --files-without-match --count --extended-regexp --fixed-strings"
    " --perl-regexp --break --heading --show-function --function-context --context= --and --or --not --all-match"
    " --max-depth= --only-matching --color? --no-color --full-name --quiet -# | pattern",
    "branch": "-arvil --all --remotes --list --verbose --show-current --merged? --no-merged? --contains?"
    " --no-contains?"
    " --points-at= --sort= --format= --column? --no-column --color? --no-color --abbrev= --ignore-case | listing",
    "tag": "-ln --list --sort= --format= --merged? --no-merged? --contains? --points-at= --column? -# | listing",
    "remote": "-v --verbose | remote",
    "stash": "| stash",
    "worktree": "| worktree",
    "reflog": "| reflog",
    "config": "--get --get-all --local --global --show-origin --show-scope --type= --bool --int --path"
    " --null -z | config",
    "version": "--build-options | none",
}

_VERSIONED = frozenset(
    listed(
        "python python3 pip pip3 uv ruff mypy pytest black flake8 pylint poetry pdm hatch pipx tox nox node"
        " npm pnpm yarn bun deno tsc eslint prettier cargo rustc rustup gcc g++ clang clang++ cc make cmake"
        " ninja meson ruby gem bundle perl php composer docker podman git gh bash zsh sh jq rg fd curl wget"
        " tar gzip unzip sqlite3 psql mysql redis-cli kubectl helm terraform ghc stack swift kotlin scala sbt"
        " gradle mvn dotnet R julia lua luajit elixir ocaml opam zig nim crystal dart flutter ssh vim nvim"
        " emacs tmux rsync openssl ffmpeg pandoc pre-commit hyperfine tree grep sed awk gawk find ls"
    )
)
VERSION_ONLY: dict[str, list[list[str]]] = {
    **{name: [["--version"]] for name in _VERSIONED},
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

# Files beside a command that say which version of it runs or what it loads first, even if asked for its version.
STEERED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("cargo", "rustc", "rustup"), ("rust-toolchain", "rust-toolchain.toml")),
    "yarn": (".yarnrc", ".yarnrc.yml", "package.json"),
    "pnpm": (".pnpmfile.cjs", ".npmrc", "package.json"),
    "bun": ("bunfig.toml",),
    "bundle": ("Gemfile", ".bundle"),
    "composer": ("composer.json",),
    "mvn": (".mvn",),
    "gradle": ("gradle.properties",),
    "sbt": (".sbtopts", ".jvmopts", "project"),
    "dotnet": ("global.json",),
    "stack": ("stack.yaml",),
    "swift": (".swift-version",),
    "terraform": (".terraform", "*.tf"),
    "tox": ("toxfile.py", "tox.ini", "pyproject.toml", "setup.cfg"),
    "nox": ("noxfile.py",),
    "flake8": (".flake8", "tox.ini", "setup.cfg"),
    "poetry": ("poetry.toml", "pyproject.toml"),
    "pdm": (".pdm-plugins", "pdm.toml", "pyproject.toml"),
    "hatch": ("hatch.toml", "pyproject.toml"),
    "pytest": ("conftest.py", "test*/conftest.py", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "py*.toml"),
}
