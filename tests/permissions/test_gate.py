"""The gate as the rest of the program meets it."""

import subprocess
import sys
from pathlib import Path

import pytest

from mycode.core.errors import ConfigError
from mycode.core.tools import Action, Verdict, VerdictPart
from mycode.permissions.check import check, report, spelled_out
from mycode.permissions.gate import PermissionGate
from mycode.permissions.paths import find_places, look
from mycode.permissions.places import Places, Seen
from mycode.permissions.protected import protected, secret
from mycode.permissions.rules import make_rules


def run(command: str) -> Action:
    return Action("execute_bash", "execute", command, command=command)


def test_a_remembered_rule_allows_the_same_again_and_nothing_else(workspace: Path):
    gate = PermissionGate("default", None, find_places(workspace))
    verdict = gate.judge(run("frob --all"))
    assert verdict.offer == "Bash(frob --all)"

    gate.remember(verdict.offer)

    assert gate.judge(run("frob --all")).decision == "allow"
    assert gate.judge(run("frob --none")).decision == "ask"
    assert gate.remembered == ("Bash(frob --all)",)


def test_a_remembered_rule_never_beats_one_that_forbids(workspace: Path):
    gate = PermissionGate("default", make_rules(deny=["Bash(frob *)"]), find_places(workspace))

    gate.remember("Bash(frob *)")

    assert gate.judge(run("frob")).decision == "deny"


def test_a_bad_rule_is_not_remembered(workspace: Path):
    gate = PermissionGate("default", None, find_places(workspace))

    with pytest.raises(ConfigError):
        gate.remember("Bash(")
    assert gate.remembered == ()


@pytest.mark.parametrize(
    "command",
    [
        "python run.py",
        "bash x.sh",
        "npx thing",
        "uvx thing",
        "sudo frob",
        "env frob",
        "xargs frob",
        "TOKEN=abc123 frob",
        "frob --password hunter2x9",
        "frob > out",
        "find . -delete",
        "./frob",
        "frob $X",
        "frob | tee x",
        "rm -rf build",
        "curl https://one.example",
        "git -c alias.x=y x",
        "eval frob",
        "source x",
        "npm install x",
        "node x.js",
        "tsx x.ts",
        "sqlite3 x.db .tables",
        "git rebase -x frob HEAD~1",
        "git bisect run frob",
        "git push --force",
        "git push https://me:x1@one.example/a",
        "frob --api-key=x1",
    ],
)
def test_no_rule_is_offered_where_it_would_allow_too_much_or_keep_a_secret(command: str, workspace: Path):
    verdict = PermissionGate("default", None, find_places(workspace)).judge(run(command))

    assert (verdict.decision, verdict.offer) == ("ask", None)


def test_the_mode_may_change_at_any_time(workspace: Path):
    gate = PermissionGate("default", None, find_places(workspace))
    edit = Action("edit_file", "write", "edit a", writes=(f"{workspace.resolve()}/a",))

    decisions = []
    for mode in ("default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"):
        gate.mode = mode
        decisions.append(gate.judge(edit).decision)

    assert decisions == ["ask", "allow", "deny", "ask", "deny", "allow"]


def test_every_verdict_is_told_to_whoever_keeps_the_log(workspace: Path):
    told: list[tuple[str, str, str]] = []
    gate = PermissionGate(
        "plan", None, find_places(workspace), on_verdict=lambda a, v, mode: told.append((a.title, v.decision, mode))
    )

    gate.judge(run("ls"))
    gate.judge(run("touch x"))

    assert told == [("ls", "allow", "plan"), ("touch x", "deny", "plan")]


def test_tools_without_effect_need_no_question(workspace: Path):
    gate = PermissionGate("plan", None, find_places(workspace))

    assert gate.judge(Action("todo", "none", "todo")).decision == "allow"


def test_tools_of_servers_ask_until_a_rule_names_them(workspace: Path):
    call = Action("mcp__files__write", "execute", "mcp__files__write")
    places = find_places(workspace)

    asked = PermissionGate("acceptEdits", None, places).judge(call)

    assert (asked.decision, asked.offer) == ("ask", "mcp__files__write")
    assert PermissionGate("default", make_rules(allow=["mcp__files"]), places).judge(call).decision == "allow"
    assert PermissionGate("default", make_rules(allow=["Bash", "Edit"]), places).judge(call).decision == "ask"


def test_an_action_is_as_good_as_its_worst_path(workspace: Path):
    root = str(workspace.resolve())
    action = Action("apply_patch", "write", "patch", writes=(f"{root}/a.py", f"{root}/.git/hooks/x"))

    verdict = PermissionGate("acceptEdits", None, find_places(workspace)).judge(action)

    assert verdict.decision == "ask"
    assert [part.decision for part in verdict.parts] == ["allow", "ask"]


def test_a_circle_of_links_is_no_file(workspace: Path):
    (workspace / "a").symlink_to("b")
    (workspace / "b").symlink_to("a")

    assert look(str(workspace / "a" / "x")).kind in {"other", "missing"}
    assert look("/dev/null") == Seen("/dev/null", "other")
    assert look(str(workspace)) == Seen(str(workspace.resolve()), "folder")


def test_the_check_explains_part_by_part():
    places = Places(workspace=("/w/project",), home="/home/me")

    verdict = check("ls && curl x", deny=["curl"], places=places)

    assert verdict == Verdict(
        "deny",
        "The rule `Bash(curl *)` forbids it.",
        "Bash(curl *)",
        (
            VerdictPart("ls", "allow", "It only looks at the project."),
            VerdictPart("curl x", "deny", "The rule `Bash(curl *)` forbids it.", "Bash(curl *)"),
        ),
    )
    assert list(report(verdict)) == ["decision", "reason", "rule", "parts", "offer"]
    assert check("a.py", tool="edit_file", mode="acceptEdits", places=places).decision == "allow"
    assert check("https://one.example/", tool="fetch", allow=["one.example"], places=places).decision == "allow"


def test_short_rules_are_spelled_out():
    assert spelled_out("curl", "execute_bash") == "Bash(curl *)"
    assert spelled_out("read ~/.ssh", "read_file") == "Read(~/.ssh)"
    assert spelled_out("one.example", "fetch") == "WebFetch(domain:one.example)"
    assert spelled_out("Bash(git *)", "fetch") == "Bash(git *)"


def test_a_plain_command_is_judged_without_the_shell_grammar():
    code = (
        "import sys; from mycode.permissions.gate import PermissionGate\n"
        "from mycode.permissions.places import Places\n"
        "from mycode.core.tools import Action\n"
        "gate = PermissionGate('default', None, Places(workspace=('/w',), home='/h'))\n"
        "gate.judge(Action('execute_bash', 'execute', 'x', command='git status && ls -la | head'))\n"
        "print(sorted(name for name in sys.modules if name.startswith(('tree_sitter', 'pydantic', 'rich'))))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )

    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("lib/a.pth", "other programs run what is in it (a.pth)"),
        ("lefthook.yml", "other programs run what is in it (lefthook.yml)"),
        ("sitecustomize.py", "Python runs it at every start (sitecustomize.py)"),
        ("notes.txt", None),
    ],
)
def test_it_is_said_why_a_name_is_protected(workspace: Path, name: str, why: str | None):
    assert protected(str(workspace / name), find_places(workspace)) == why


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("id_rsa", "id_rsa may hold secrets"),
        (".env.local", ".env.local may hold secrets"),
        (".env.example", None),
        ("env.ts", None),
    ],
)
def test_it_is_said_why_a_name_may_hold_secrets(workspace: Path, name: str, why: str | None):
    assert secret(str(workspace / name), find_places(workspace)) == why


def test_what_the_settings_of_git_name_as_hooks_is_protected(tmp_path: Path):
    main, tree = tmp_path / "main", tmp_path / "tree"
    (main / ".git/worktrees/tree").mkdir(parents=True)
    (main / ".git/config").write_text(
        '[core]\n\thooksPath = "scripts/git" # ours\n[include]\n  path = ../team.gitconfig\n'
    )
    (main / "team.gitconfig").write_text("[core] hooksPath = shared\n")
    (main / ".git/worktrees/tree/commondir").write_text("../..\n")
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {main}/.git/worktrees/tree\n")

    def decision(root: Path, path: Path) -> str:
        gate = PermissionGate("bypassPermissions", None, find_places(root))
        return gate.judge(Action("create_file", "write", "x", writes=(str(path),))).decision

    asked = [main / "scripts/git/pre-commit", main / "scripts/git", main / "team.gitconfig", main / "shared/pre-push"]
    assert [decision(main, path) for path in asked] == ["ask", "ask", "ask", "ask"]
    assert decision(tree, tree / "scripts/git/pre-push") == "ask"
    assert decision(main, main / "scripts/build") == "allow"


def test_what_is_explained_knows_whether_the_box_has_a_network(workspace: Path):
    places = find_places(workspace)

    def said(subject: str, tool: str, *, network: bool) -> str:
        return check(subject, tool=tool, mode="auto", places=places, boxed=True, network=network).decision

    command, page = ("curl https://one.example", "execute_bash"), ("https://one.example/", "fetch")
    assert [said(*command, network=on) for on in (False, True)] == ["allow", "ask"]
    assert [said(*page, network=on) for on in (False, True)] == ["deny", "ask"]
