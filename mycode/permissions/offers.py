"""Which rule a question offers to remember: the narrowest that helps, and none for runners or secrets."""

from __future__ import annotations

import re

from mycode.permissions.carriers import CARRIERS, SHELLS
from mycode.permissions.listed import listed
from mycode.permissions.rules import Rule, parse_rule
from mycode.permissions.shell_grammar import Part

_NEVER_OFFERED = frozenset(
    listed(
        "python python2 python3 pypy pypy3 ipython node deno bun ruby irb perl php lua luajit Rscript R julia"
        " awk gawk mawk sed tclsh expect osascript ghci scala groovy jshell elixir iex erl swift racket guile"
        " sbcl clojure make just task rake gradle mvn npm pnpm yarn npx bunx uvx pipx uv poetry pdm hatch rye"
        " bundle cargo go docker podman kubectl find rm dd curl wget ssh scp source . eval exec export declare"
        " alias set trap git-shell vim vi nvim emacs ed ex"
        " tsx ts-node esno java dotnet jupyter sqlite3 psql mysql mariadb m4 dc bc ansible ansible-playbook vagrant nim"
        " crystal v zig dart flutter electron stack cabal dune lein mix sbt bazel buck pants invoke fab tox nox claude"
        " codex gemini uvicorn gunicorn flask celery rsync tee kotlin groovysh ocaml raku hatch"
    )
)
_EXACTLY = frozenset(listed("npm pnpm yarn uv poetry cargo go make just task gradle mvn bundle"))


def offer(part: Part) -> Rule | None:
    """The narrowest rule that would allow exactly this part again, or None where no rule should."""
    name = part.program
    if not part.words or part.assignments:
        return None
    if "/" in name or name in CARRIERS or name in SHELLS:
        return None
    values = [word.value or "" for word in part.words]
    if name in _NEVER_OFFERED and not (name in _EXACTLY and values[1:2] and _EXACT_TASK.match(" ".join(values[1:3]))):
        return None
    if re.fullmatch(r"(?:python|pypy|ruby|perl|node|php|lua)[\d.]+", name):
        return None
    if name == "git" and _RUNS_OR_LOSES.search(" ".join(values)):
        return None
    if any(_GIVEN_AWAY.search(value) for value in values):
        return None
    from mycode.core.redact import findings

    text = " ".join(_quoted(value) for value in values)
    if findings(part.text) or len(text) > 200 or not re.fullmatch(r"[ -~]+", text):
        return None
    return parse_rule(f"Bash({text})", "allow")


_EXACT_TASK = re.compile(r"(?:run )?(?:test|build|check|lint|format|fmt|clippy|typecheck|vet|docs?|clean|ci)(?:\b|$)")


# What git runs for others, and what it takes away for good.
_RUNS_OR_LOSES = re.compile(
    r"^git (?:.* )?(?:config|bisect|submodule|filter-branch|difftool|mergetool|clean|rebase .*(?:-x|--exec)"
    r"|reset .*--hard|push .*(?:--force|-f\b|\+))"
)
# A password in an address, or right behind an option.
_GIVEN_AWAY = re.compile(r"://[^/@\s]*:[^/@\s]+@|(?i:pass(?:w(?:or)?d|phrase)?|secret|token|api[_-]?key)[=:]")


def _quoted(value: str) -> str:
    if re.fullmatch(r"[\w./:,+@%=-]+", value):
        return value
    return "'" + value.replace("'", "'\"'\"'") + "'"
