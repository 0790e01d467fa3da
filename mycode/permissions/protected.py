"""Files that no mode lets a tool change or read in silence: what other programs run later, and what holds secrets.

Names are compared without case, trailing dots or letters of no width, everywhere: a file system that folds them would
otherwise open the back door, and elsewhere such names are nobody's loss.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import pairwise

from mycode.core.patterns import pattern
from mycode.permissions.listed import listed
from mycode.permissions.places import Places, components, inside_any


def protected(path: str, places: Places, *, by_shell: bool = False) -> str | None:
    """Why a change of this absolute path needs a person, or None.

    It counts whether or not the file exists. `by_shell` leaves out what commands change every day as part of their
    work: virtual environments and installed packages.
    """
    if inside_any(path, places.private, fold_case=places.fold_case):
        return "it holds mycode's own settings or sessions"
    named = tuple(place for place in places.run_later if place not in places.workspace)
    if inside_any(path, named, fold_case=places.fold_case):
        return "the repository's settings say that git takes programs or settings from it"
    if ":" in path and (why := protected(_STREAM.sub("", path), places, by_shell=by_shell)):
        return why
    names = _folded_names(path)
    if not names:
        return "it is the root of the file system"
    below_home = inside_any(path, (places.home,), fold_case=True)
    for index, name in enumerate(names):
        last = index == len(names) - 1
        if name in _FOLDERS:
            return f"{_FOLDERS[name]} ({name})"
        if not by_shell and name in _ENVIRONMENTS:
            return f"programs are started from there ({name})"
        if "~" in name and re.fullmatch(r"gi(?:t|[0-9a-f]{4})~\d+", name):
            return "it is another spelling of .git"
        if _PYTHON_START.fullmatch(name):
            return f"Python runs it at every start ({name})"
        following = names[index + 1] if not last else ""
        if (name, following) in _PAIRS:
            return f"{_PAIRS[name, following]} ({name}/{following})"
    name = names[-1]
    if name in _FILES:
        return f"{_FILES[name]} ({name})"
    if _LATER_NAME.fullmatch(name):
        return f"{_RUN_LATER} ({name})"
    folder = names[-2] if len(names) > 1 else ""
    if "hook" in folder and name in _HOOKS:
        return f"git may run it ({folder}/{name})"
    if not by_shell and folder in {"bin", "scripts"} and _ENVIRONMENT_PROGRAM.fullmatch(name):
        return f"programs are started from there ({folder}/{name})"
    if folder.endswith(".git") and name in {"config", "config.worktree"}:
        return f"git obeys it ({folder}/{name})"
    if path.endswith("/HEAD") or (places.fold_case and name == "head"):
        return "it makes a repository of its folder, whose settings git obeys"
    if below_home and folder == "bin" and (".local" in names or names[:-2] == _folded_names(places.home)):
        return "programs are started from there"
    return None


def secret(path: str, places: Places) -> str | None:
    """Why the content of this absolute path is not shown to a model without asking, or None."""
    names = _folded_names(path)
    if not names:
        return None
    own = places.session is not None and inside_any(path, (places.session,), fold_case=places.fold_case)
    if not own and inside_any(path, places.private, fold_case=places.fold_case):
        return "it belongs to mycode itself or to another session"
    for name in names:
        if name in _SECRET_FOLDERS:
            return f"{name} holds keys"
    if any(pair in _SECRET_PAIRS for pair in pairwise(names)):
        return "it holds login data"
    name = names[-1]
    if name in _SECRET_FILES or (_SECRET_NAME.fullmatch(name) and not _SAMPLE_NAME.fullmatch(name)):
        return f"{name} may hold secrets"
    return None


def secret_under(pattern: str) -> bool:
    """Whether a shell pattern for a file name may stand for a file with secrets."""
    name = _folded(pattern.rstrip("/").rpartition("/")[2])
    translated = re.escape(name).replace(r"\*", ".*").replace(r"\?", ".")
    translated = re.sub(r"\\\[(.*?)\\\]", ".", translated)
    # A leading star stands for no hidden file.
    names = _EXAMPLES if not name.startswith(("*", "?")) else tuple(one for one in _EXAMPLES if not one.startswith("."))
    return any(re.fullmatch(translated, example) for example in names)


def own_environment(path: str) -> bool:
    """Whether the path is the environment or memory of a process, where keys stand in the clear."""
    names = components(path)
    return len(names) > 2 and names[0] == "proc" and names[-1] in {"environ", "mem", "auxv", "maps", "cmdline"}


def mentions_protected(text: str) -> str | None:
    """A protected place that a text names somewhere, for commands that nobody can read to the end."""
    found = _mentioned().search(text.casefold())
    return found[0] if found else None


def _folded_names(path: str) -> tuple[str, ...]:
    """The names of a path as a file system may take them that folds letters, or takes a backslash for a slash."""
    return tuple(_folded(name) for name in components(path.replace("\\", "/")))


def _folded(name: str) -> str:
    if not name.isascii():
        # Some systems pass over letters of no width; no system tells wide letters and ligatures from plain ones worse.
        name = _IGNORED.sub("", unicodedata.normalize("NFKC", name))
        name = "".join(char for char in name if unicodedata.category(char) != "Cf")
    return name.casefold().rstrip(". ") or name.casefold()


# On Windows' file systems a colon begins the name of a stream of the same file.
_STREAM = pattern(r":[^/]*")
_IGNORED = pattern(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
_RUN_LATER = "other programs run what is in it"
_FOLDERS = {
    ".git": "git runs what its folder says",
    ".mycode": "it steers mycode",
    ".claude": "it steers another agent",
    ".codex": "it steers another agent",
    ".cursor": "it steers another agent",
    ".gemini": "it steers another agent",
    ".continue": "it steers another agent",
    **dict.fromkeys(
        listed(
            ".windsurf .roo .kiro .amazonq .opencode .qwen .factory .trae .clinerules .junie .augment .crush .goose"
            " .openhands .kilocode .cline .amp"
        ),
        "it steers another agent",
    ),
    **dict.fromkeys([".hg", ".jj", ".sl"], "version control runs what its folder says"),
    **dict.fromkeys(listed(".mise .emacs.d .vim .idx .codesandbox .lefthook .helix .nova .oh-my-zsh"), _RUN_LATER),
    **dict.fromkeys([".bashrc.d", ".zsh", ".zshrc.d"], "a shell reads it at start"),
    **dict.fromkeys([".woodpecker", ".tekton", ".semaphore"], "a build server runs it"),
    "git-hooks": "git hooks run from it",
    ".git-hooks": "git hooks run from it",
    ".vscode": "the editor runs tasks from it",
    ".idea": "the editor runs tasks from it",
    ".zed": "the editor runs tasks from it",
    ".fleet": "the editor runs tasks from it",
    ".devcontainer": _RUN_LATER,
    ".husky": "git hooks run from it",
    ".githooks": "git hooks run from it",
    ".circleci": "a build server runs it",
    ".buildkite": "a build server runs it",
    ".ssh": "it holds keys and lets people in",
    ".gnupg": "it holds keys",
    ".direnv": _RUN_LATER,
    ".yarn": "the package manager runs plugins from it",
    ".cargo": _RUN_LATER,
    ".docker": "it holds login data",
    ".kube": "it holds login data",
    ".aws": "it holds keys",
}
_ENVIRONMENTS = frozenset({".venv", "venv", ".tox", ".nox", "site-packages", "dist-packages"})
_PAIRS = {
    (".github", "workflows"): "a build server runs it",
    (".github", "actions"): "a build server runs it",
    (".github", "hooks"): "it steers another agent",
    (".gitea", "workflows"): "a build server runs it",
    (".forgejo", "workflows"): "a build server runs it",
    ("node_modules", ".bin"): "programs are started from there",
    (".config", "fish"): "a shell reads it at start",
    (".config", "systemd"): _RUN_LATER,
    (".config", "autostart"): _RUN_LATER,
    (".config", "environment.d"): _RUN_LATER,
    (".config", "helix"): _RUN_LATER,
    (".config", "tmux"): _RUN_LATER,
    (".config", "zsh"): "a shell reads it at start",
    (".config", "git"): "git runs what it says",
    (".config", "mise"): _RUN_LATER,
    (".config", "nvim"): "the editor runs it",
    (".config", "mycode"): "it steers mycode",
    ("library", "launchagents"): _RUN_LATER,
    ("library", "launchdaemons"): _RUN_LATER,
}
SHELL_FILES = listed(
    ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile"
    " .zlogin .zlogout .kshrc .cshrc .tcshrc .login .inputrc .xprofile .xinitrc .xsession .pam_environment"
)
_FILES = {
    **dict.fromkeys(SHELL_FILES, "a shell reads it at start"),
    **dict.fromkeys([".gitconfig", ".gitmodules", ".gitattributes_global"], "git runs what it says"),
    **dict.fromkeys(
        listed(
            ".envrc .pre-commit-config.yaml .pre-commit-config.yml .tool-versions .autoenv .tmux.conf .screenrc"
            " .exrc .vimrc .nvimrc .nvim.lua .emacs .gdbinit .lldbinit .pythonrc .pythonstartup .pdbrc .irbrc .pryrc"
            " .sqliterc .psqlrc .curlrc .wgetrc .ghci .rprofile .octaverc .perldb .hgrc .jjconfig.toml .overcommit.yml"
            " .devcontainer.json .gitpod.yml .replit"
        ),
        _RUN_LATER,
    ),
    **dict.fromkeys(
        listed(
            ".gitlab-ci.yml .gitlab-ci.yaml .travis.yml .drone.yml .drone.yaml .woodpecker.yml .woodpecker.yaml"
            " azure-pipelines.yml azure-pipelines.yaml bitbucket-pipelines.yml bitbucket-pipelines.yaml jenkinsfile"
            " appveyor.yml .appveyor.yml .cirrus.yml buildspec.yml cloudbuild.yaml circle.yml"
        ),
        "a build server runs it",
    ),
    **dict.fromkeys(
        listed(
            ".npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pnpmfile.mjs .pnp.cjs .pypirc .pip.conf pip.conf uv.toml"
            " poetry.toml .condarc bunfig.toml .bunfig.toml .gemrc"
        ),
        "the package manager takes code or addresses from it",
    ),
    "pyvenv.cfg": "Python obeys it at every start",
    **dict.fromkeys(
        listed(".mcp.json .aider.conf.yml opencode.json opencode.jsonc crush.json .crush.json"),
        "it starts programs for agents",
    ),
    **dict.fromkeys([".netrc", ".git-credentials", ".pgpass"], "it holds login data"),
}

_HOOKS = frozenset(
    listed(
        "applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg"
        " post-commit pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive"
        " post-update reference-transaction push-to-checkout pre-auto-gc post-rewrite sendemail-validate"
        " fsmonitor-watchman p4-changelist p4-prepare-changelist p4-post-changelist p4-pre-submit post-index-change"
    )
)
_ENVIRONMENT_PROGRAM = pattern(r"activate(?:\.\w+|_this\.py)?|deactivate(?:\.bat|\.nu)?|python[0-9.]*|pip[0-9.]*")

_SECRET_FOLDERS = frozenset(
    {".ssh", ".gnupg", ".aws", ".azure", ".password-store", ".kube", ".oci", "keyrings", ".age"}
)
_SECRET_PAIRS = frozenset(
    {
        (".docker", "config.json"),
        (".config", "gcloud"),
        (".config", "gh"),
        (".config", "op"),
        (".config", "rclone"),
        (".cargo", "credentials"),
        (".cargo", "credentials.toml"),
        (".gem", "credentials"),
        (".m2", "settings.xml"),
        (".terraform.d", "credentials.tfrc.json"),
        ("etc", "shadow"),
        ("etc", "sudoers"),
        ("library", "keychains"),
    }
)
_SECRET_FILES = frozenset(
    listed(
        ".netrc _netrc .git-credentials .pgpass .my.cnf .npmrc .pypirc .htpasswd .dockercfg .s3cfg .boto"
        " .vault-token .terraformrc credentials.json .credentials.json oauth_creds.json auth.json"
        " credentials.yml credentials credentials.toml"
        " service-account.json secrets.json secrets.yaml secrets.yml secrets.toml secrets.env secrets"
        " master.key kubeconfig .bash_history .zsh_history .python_history .psql_history .mysql_history"
        " .node_repl_history id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk .envrc"
        " terraform.tfvars"
    )
)
_EXAMPLES = (
    ".env",
    ".env.local",
    ".envrc",
    ".netrc",
    ".npmrc",
    ".ssh",
    ".aws",
    *sorted(_SECRET_FILES),
    "a.pem",
    "a.key",
)
_SECRET_NAME = pattern(
    r"\.?env(?:\..+)?|.+\.env|.+\.(?:pem|key|p12|pfx|jks|keystore|kdbx|asc|gpg|ppk|tfstate)|id_(?:rsa|dsa|ecdsa|ed25519).*"
    r"|service[-_]?account.*\.json|client_secret.*\.json"
)
_SAMPLE_NAME = pattern(
    r".*\.(?:example|sample|template|tmpl|dist|defaults?|schema|test|md|py|ts|js|rs|go|pub)|env(?:\.[jt]s)?|.*\.d\.ts"
)
_LATER_NAME = pattern(
    r".+\.(?:pth|code-workspace)|\.?lefthook(?:-local)?\.(?:ya?ml|toml|json)|\.?mise(?:\..+)?\.toml|\.miserc\.toml"
    r"|\.dir-locals(?:-2)?\.el|\.huskyrc(?:\..+)?|.+-gdb\.(?:py|gdb|scm)"
)
_PYTHON_START = pattern(r"(?:site|user)customize(?:\..+)?")


@cache
def _mentioned() -> re.Pattern[str]:
    names = [name for name in (*_FOLDERS, *_FILES) if name.startswith(".")]
    pairs = ["/".join(pair) for pair in _PAIRS]
    return re.compile(r"(?<![\w-])(?:" + "|".join(re.escape(name) for name in (*names, *pairs)) + r")(?![\w.-])")
