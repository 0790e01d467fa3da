"""The box for commands: what it promises where it works, and what is said where it does not."""

import subprocess
import sys
from pathlib import Path

import pytest

from mycode.core.errors import SandboxError
from mycode.permissions.sandbox import Bubblewrap, NoSandbox, Seatbelt, detect
from mycode.permissions.seals import ABSENT, Held
from mycode.permissions.seatbelt import seatbelt_profile

GIT = ("git", "-c", "user.name=me", "-c", "user.email=me@example.com")


@pytest.fixture
def project() -> Path:
    """A repository in the folder of the test."""
    folder = Path.cwd() / "project"
    (folder / ".git/hooks").mkdir(parents=True)
    (folder / ".git/config").write_text("[core]\n")
    (folder / "a.txt").write_text("a\n")
    return folder


def boxed_run(project: Path, command: str, kind: str = "auto") -> subprocess.CompletedProcess[str]:
    box = detect(kind, project, home=Path.home())  # type: ignore[arg-type]  # a literal handed through
    argv = box.wrap(("bash", "-c", command), str(project))
    try:
        return subprocess.run(argv, cwd=project, capture_output=True, text=True, timeout=30, check=False)
    finally:
        box.ended()


def test_no_box_changes_nothing_and_says_so(project: Path):
    box = detect("off", project)

    assert (box.active, box.state) == (False, "off (as permissions.sandbox says)")
    assert box.wrap(("ls", "-l"), str(project)) == ("ls", "-l")


def test_auto_gives_a_working_box_or_a_reason(project: Path):
    box = detect("auto", project)

    done = subprocess.run(
        box.wrap(("echo", "ran"), str(project)), capture_output=True, text=True, timeout=30, check=False
    )

    assert done.stdout == "ran\n"
    assert box.state.startswith("off (") != box.active


def test_a_box_asked_for_by_name_is_given_or_refused_aloud(project: Path):
    if detect("auto", project).active:
        assert detect("read-only", project).state.endswith("everything read-only, no network")
    else:
        with pytest.raises(SandboxError, match="A sandbox was asked for"):
            detect("read-only", project)


@pytest.mark.parametrize(
    "command",
    [
        "echo x > .git/hooks/pre-commit",
        "echo x >> .git/config",
        "mv .git .other",
        "mkdir -p .mycode && echo x > .mycode/settings.toml",
        "echo x > ../outside.txt",
        "ln -s .. up && echo x > up/outside.txt",
    ],
)
def test_inside_the_box_nothing_outside_changes_nor_what_runs_later(command: str, project: Path):
    active = detect("auto", project).active

    done = boxed_run(project, command)

    escaped = [
        path
        for path in ("../outside.txt", ".mycode/settings.toml", ".git/hooks/pre-commit", ".other")
        if (project / path).exists()
    ]
    grown = (project / ".git/config").exists() and (project / ".git/config").read_text() != "[core]\n"
    assert (escaped, grown) == ([], False) if active else (done.returncode == 0)


def test_the_workspace_is_writable_and_keys_are_hidden(project: Path):
    (Path.home() / ".ssh").mkdir()
    (Path.home() / ".ssh/id").write_text("key")
    (Path.home() / ".netrc").write_text("login")
    active = detect("auto", project).active

    done = boxed_run(project, "echo b > b.txt; cat ~/.ssh/id ~/.netrc 2>/dev/null")

    assert (project / "b.txt").read_text() == "b\n"
    assert done.stdout == ("" if active else "keylogin")


def test_a_read_only_box_writes_nothing(project: Path):
    if detect("auto", project).active:
        assert boxed_run(project, "cat a.txt; echo x > a.txt", "read-only").stdout == "a\n"
    assert (project / "a.txt").read_text() == "a\n"


def test_a_box_cuts_the_network_and_sees_only_its_own_processes(project: Path):
    active = detect("auto", project).active

    networks = "cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' \\n'"
    done = boxed_run(project, f"{networks}; ls -d /proc/[0-9]* | wc -l")

    if active:
        interfaces, _, count = done.stdout.partition("lo")
        assert (interfaces, int(count) < 12) == ("", True)
    else:
        assert done.returncode == 0


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_command_in_the_box_leaves_nothing_of_the_box_behind(project: Path):
    for name in (".idea", ".husky/_", ".direnv"):
        (project / name).mkdir(parents=True)
    (project / ".husky/_").rmdir()
    before = everything(project)
    program = (
        "import os; from pathlib import Path; from mycode.permissions.sandbox import detect\n"
        "detect('auto', Path.cwd()).wrap(('true',), '.'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program], cwd=project, check=False)
    left = everything(project) - before

    box = detect("auto", project, home=Path.home())
    boxed_run(project, "echo x > .idea/tasks.xml")
    box.ended()

    assert {".vscode", ".github", ".github/workflows"} <= left or not box.active
    assert everything(project) - {".idea/tasks.xml"} == before
    assert not box.active or not (project / ".idea/tasks.xml").exists()


@pytest.mark.parametrize(
    "command",
    [
        "mkdir -p .vscode && echo x > .vscode/tasks.json",
        "mkdir -p .github/workflows; echo x > .github/workflows/ci.yml",
        "echo x > .envrc",
        "echo x > .mcp.json",
        "mkdir -p .claude && echo x > .claude/settings.json",
        "mkdir -p .opencode/plugin && echo x > .opencode/plugin/start.ts",
        "mkdir -p .github/hooks && echo x > .github/hooks/start.json",
        "rm -rf .husky; mkdir -p .husky && echo x > .husky/pre-push",
        "echo x > .git/hooks/post-commit",
        "echo ../elsewhere > .git/commondir",
        "echo x > .npmrc",
        "echo x > scripts/pre-commit",
        "echo x >> more.config",
        "echo x > .git/modules/lib/hooks/post-checkout",
        "echo 'gitdir: ../evil' > lib/.git",
        "mv tools old; mkdir -p tools/git; echo x > tools/git/post-merge",
        "mv lib other; mkdir lib; echo 'gitdir: ../evil' > lib/.git",
        "rm -f .npmrc; mv scripts other; mkdir scripts; echo x > scripts/pre-commit",
    ],
)
def test_what_runs_later_outside_neither_changes_nor_comes_to_be(command: str, project: Path):
    if not detect("auto", project).active:
        pytest.skip("there is no box here")
    named = "[core]\n\thooksPath = scripts\n\thooksPath = tools/git\n[include]\n\tpath = ../more.config\n"
    (project / ".git/config").write_text(named)
    (project / ".git/modules/lib/hooks").mkdir(parents=True)
    for name in (".git/modules/lib/HEAD", ".npmrc", "scripts/pre-commit", "more.config", "lib/.git"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("mine")
    (project / ".git/modules/lib/config").write_text("[core]\n\tworktree = ../../../lib\n")
    (project / "tools/git").mkdir(parents=True)
    (project / "tools/git/post-merge").write_text("mine")
    before = {path: path.read_text() for path in project.rglob("*") if path.is_file()}

    boxed_run(project, command)

    after = {path: path.read_text() for path in project.rglob("*") if path.is_file()}
    assert {path: text for path, text in after.items() if path.suffix != ".held"} == before


def test_hooks_and_settings_that_git_would_take_are_not_made_in_the_box(project: Path):
    if not detect("auto", project).active:
        pytest.skip("there is no box here")
    (project / ".git/config").write_text("[core]\n\thooksPath = team\n[include]\n\tpath = ../more.config\n")
    before = everything(project)

    boxed_run(project, "mkdir -p team && echo x > team/pre-commit; echo x > more.config; echo x > a.txt")

    assert everything(project) == before | {"more.config.held"}


@pytest.mark.parametrize(
    "command",
    [
        "rm .claude && mkdir .claude && echo x > .claude/settings.json",
        "rm .git/hooks && mkdir .git/hooks && echo x > .git/hooks/pre-commit",
        "ln -sfn elsewhere .claude; mkdir elsewhere",
        "rm .envrc; echo x > .envrc",
        "echo x > missing",
        "rm .github; mkdir -p .github/workflows; echo x > .github/workflows/ci.yml",
        "mkdir -p gh/workflows; echo x > gh/workflows/ci.yml",
        "rm scripts; mkdir scripts; echo x > scripts/pre-commit",
        "mkdir -p team; echo x > team/pre-push",
        "mkdir -p .git/commondir.held/x missing.held/x; echo x > .git/commondir; echo x > missing",
        "echo x > .git/modules/lib/commondir; mkdir .git/modules/lib/hooks; echo x > .git/modules/lib/hooks/pre-push",
    ],
)
def test_links_to_what_runs_later_lead_where_they_led(command: str, project: Path):
    if not detect("auto", project).active:
        pytest.skip("there is no box here")
    (project / ".git/config").write_text("[core] hooksPath = scripts\n[include] path = ../shared.config\n")
    (project / "shared.config").write_text("[core]\n\thooksPath = team\n")
    for name in ("agents/rules.md", "tools/pre-commit", "hk/post-merge", "gh/CODEOWNERS", ".git/modules/lib/HEAD"):
        (project / name).parent.mkdir(parents=True)
        (project / name).write_text("mine")
    (project / ".git/hooks").rmdir()
    targets = {".claude": "agents", ".git/hooks": "../hk", ".envrc": "missing", ".github": "gh", "scripts": "tools"}
    for name, target in targets.items():
        (project / name).symlink_to(target)
    before = everything(project)

    boxed_run(project, command)

    left = {name for name in everything(project) - before if ".held" not in name}
    assert left <= {"elsewhere", "team"}
    assert {name: str((project / name).readlink()) for name in targets} == targets
    assert not (project / "team/pre-push").exists()


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_repository_put_inside_another_in_the_box_is_not_looked_into(version: int):
    outer, other = Path.cwd() / "outer", Path.cwd() / "other"
    for folder in (outer, other, outer / "old"):
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        subprocess.run([*GIT, "commit", "-q", "--allow-empty", "-m", "x"], cwd=folder, check=True)
    subprocess.run(["git", "add", "old"], cwd=outer, check=True, capture_output=True)
    if not detect("auto", outer).active:
        pytest.skip("there is no box here")
    program = f"touch {outer}/ran; false"
    intent = "git add -N later; " if version == 3 else ""
    command = (
        f"git config -f old/.git/config core.fsmonitor '{program}'; git clone -q old new && cd new && "
        f"git config core.fsmonitor '{program}'; cd ..; git add new; ln -s {other} link; touch later; {intent}"
        f"git update-index --add --cacheinfo 160000,$(git -C new rev-parse HEAD),link --index-version {version}; "
        "git ls-files -s"
    )

    said = boxed_run(outer, command)
    subprocess.run(["git", "status"], cwd=outer, check=False, capture_output=True)

    assert [line[:6] for line in said.stdout.splitlines() if line[-5:] != "later"] == ["160000"] * 3
    assert not (outer / "ran").exists()
    assert [(outer / "new" / name).exists() for name in (".git", ".git.held")] == [False, True]
    assert (other / ".git").exists()


@pytest.mark.parametrize(
    ("where", "command"),
    [
        ("inner", "git config -f store/config core.fsmonitor 'touch ran; false'"),
        ("inner", "mv store old; cp -r old store; git config -f store/config core.fsmonitor 'touch ran; false'"),
        ("tree", "rm tree/.git; git init -q tree; git config -f tree/.git/config core.fsmonitor 'touch ran; false'"),
        ("apart", "git config -f own/config core.fsmonitor 'touch ran; false'"),
    ],
)
def test_repositories_whose_own_folder_is_elsewhere_in_the_workspace_keep_their_settings(where: str, command: str):
    outer = Path.cwd() / "outer"
    for folder in (outer, outer / "inner"):
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        subprocess.run([*GIT, "commit", "-q", "--allow-empty", "-m", "x"], cwd=folder, check=True)
    (outer / "inner/.git").rename(outer / "store")
    (outer / "inner/.git").write_text("gitdir: ../store\n")
    subprocess.run(["git", "add", "inner"], cwd=outer, check=True, capture_output=True)
    subprocess.run(["git", "worktree", "add", "-q", "tree"], cwd=outer, check=True, capture_output=True)
    if where == "apart":
        (outer / ".git").rename(outer / "own")
        (outer / ".git").write_text("gitdir: own\n")
    if not detect("auto", outer).active:
        pytest.skip("there is no box here")

    boxed_run(outer, command)
    for folder in (outer, outer / "inner", outer / "tree"):
        subprocess.run(["git", "status"], cwd=folder, check=False, capture_output=True)

    assert list(outer.rglob("ran")) == []


def test_what_is_put_aside_does_not_wait_for_a_command_in_the_background(project: Path):
    box = detect("auto", project, home=Path.home())
    if not box.active:
        pytest.skip("there is no box here")
    box.wrap(("true",), str(project))

    subprocess.run(box.wrap(("sh", "-c", "echo x > HEAD"), str(project)), check=True)
    box.ended()
    left = everything(project)
    box.ended()

    assert {"HEAD", "HEAD.held", ".mycode"} & left == {"HEAD.held", ".mycode"}


def test_what_lies_behind_a_link_outside_is_not_put_aside(tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "work/there").mkdir(parents=True)
    held = Held()
    held.hold([], [tmp_path / "work/there/config"])
    (tmp_path / "work/there").rmdir()
    (tmp_path / "work/there").symlink_to(tmp_path / "mine")
    (tmp_path / "mine/config").write_text("mine")

    held.release()

    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["config"]


def test_a_place_that_could_not_be_held_is_put_aside_when_the_command_has_ended(tmp_path: Path):
    held = Held()
    (tmp_path / "full").write_text("no folder can be made below a file, as on a full disk")
    place = tmp_path / "full/.vscode"
    held.hold([place], [])
    (tmp_path / "full").unlink()
    (tmp_path / "full").mkdir()
    place.write_text("made meanwhile")

    held.release()

    assert [path.name for path in (tmp_path / "full").iterdir()] == [".vscode.held"]


def test_the_whole_disk_is_no_workspace_for_a_box():
    box = detect("auto", Path("/"))

    assert box.state == "off (the workspace is the whole disk, and nothing would be outside it)"
    with pytest.raises(SandboxError, match="whole disk"):
        detect("workspace-write", Path("/"))


def test_a_folder_without_a_repository_does_not_become_one_in_the_box():
    folder = Path.cwd() / "plain"
    folder.mkdir()
    if not detect("auto", folder).active:
        pytest.skip("there is no box here")

    boxed_run(folder, "mkdir -p .git && printf '[core]\\nfsmonitor = touch x' > .git/config; echo ok > a.txt")

    assert everything(folder) == {"a.txt"}


@pytest.mark.parametrize("spoil", ["true", "rm .git/HEAD", "rm -r .git/refs", "mv .git/objects old"])
def test_a_folder_is_not_taken_for_a_repository_whose_settings_came_from_the_box(spoil: str):
    folder = Path.cwd() / "plain"
    folder.mkdir()
    if spoil != "true":
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    if not detect("auto", folder).active:
        pytest.skip("there is no box here")
    settings = "[core]\nbare = false\nrepositoryformatversion = 0\nworktree = .\nfsmonitor = touch ran; false"

    boxed_run(folder, f"{spoil}; mkdir objects refs; echo ref: refs/heads/main > HEAD; echo '{settings}' > config")
    subprocess.run(["git", "status"], cwd=folder, check=False, capture_output=True)

    assert not (folder / "ran").exists()
    assert {"HEAD.held", "config", "objects", "refs"} <= everything(folder)


def test_settings_of_a_repository_without_files_of_its_own_stay_as_they_are():
    folder = Path.cwd() / "bare"
    subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True)
    (folder / "config").write_text("[core]\n")
    if not detect("auto", folder).active:
        pytest.skip("there is no box here")

    boxed_run(folder, "echo x >> config; echo x > hooks/pre-receive; echo .. > commondir; echo ok > description")

    assert (folder / "config").read_text() == "[core]\n"
    assert not (folder / "hooks/pre-receive").exists()
    assert not (folder / "commondir").exists()
    assert (folder / "description").read_text() == "ok\n"


def test_places_are_held_until_the_last_box_of_any_program_ends(project: Path):
    box = detect("auto", project, home=Path.home())
    other = detect("auto", project, home=Path.home())
    if not (box.active and other.active):
        pytest.skip("there is no box here")
    box.wrap(("true",), str(project))
    box.wrap(("true",), str(project))
    other.wrap(("true",), str(project))
    held = []
    for ending in (box, box, other):
        ending.ended()
        held.append((project / ".mycode").exists())

    assert held == [True, True, False]


def test_whichever_of_two_programs_ends_last_takes_the_places_away(tmp_path: Path):
    place = tmp_path / ".github/workflows"
    first, second = Held(), Held()
    first.hold([place], [])
    second.hold([place], [])

    first.release()
    assert place.is_dir()
    second.release()

    assert list(tmp_path.iterdir()) == []


def test_a_place_that_somebody_fills_meanwhile_is_theirs_like_any_other_folder(tmp_path: Path):
    place = tmp_path / ".vscode"
    (tmp_path / "usual").mkdir()
    held = Held()
    held.hold([place], [])
    (place / "settings.json").write_text("mine")
    held.release()
    mode = place.stat().st_mode
    (place / "settings.json").unlink()
    held.hold([place], [])
    held.release()

    assert mode == (tmp_path / "usual").stat().st_mode
    assert place.is_dir()


def test_a_home_that_is_the_workspace_keeps_what_its_shells_read(monkeypatch: pytest.MonkeyPatch):
    home = Path.cwd() / "home"
    (home / ".config/fish").mkdir(parents=True)
    (home / ".bashrc").write_text("mine")
    monkeypatch.setenv("HOME", str(home))
    if not detect("auto", home).active:
        pytest.skip("there is no box here")

    boxed_run(home, "echo x > .bashrc; echo x > .zshenv; echo x > .config/fish/config.fish; echo ok > a.txt")

    assert everything(home) == {".bashrc", ".config", ".config/fish", "a.txt"}
    assert (home / ".bashrc").read_text() == "mine"


def test_a_home_inside_the_workspace_keeps_what_its_shells_read_whatever_its_spelling(project: Path):
    (project / "people/me").mkdir(parents=True)
    (project / "people/me/.bashrc").write_text("mine")
    (project.parent / "home").symlink_to(project / "people")
    box = detect("auto", project, home=project.parent / "home/me")
    if not box.active:
        pytest.skip("there is no box here")

    command = "cd people/me; echo x > .bashrc; echo x > .zshenv"
    subprocess.run(box.wrap(("sh", "-c", command), str(project)), check=False)
    box.ended()

    assert everything(project / "people") == {"me", "me/.bashrc"}
    assert (project / "people/me/.bashrc").read_text() == "mine"


def test_a_login_made_after_the_start_is_hidden_too(project: Path):
    box = detect("auto", project, home=Path.home())
    if not box.active:
        pytest.skip("there is no box here")
    (Path.home() / ".netrc").write_text("login")

    done = subprocess.run(
        box.wrap(("cat", str(Path.home() / ".netrc")), str(project)), capture_output=True, text=True, check=False
    )
    box.ended()

    assert done.stdout == ""


def test_what_bubblewrap_is_told(tmp_path: Path):
    root, keys = str(tmp_path / "project"), str(tmp_path / "keys")
    Path(root).mkdir()
    Path(keys).mkdir()

    box = Bubblewrap(
        "/usr/bin/bwrap", "workspace-write", (root,), network=False, hidden=(keys,), home=tmp_path / "home"
    )
    argv = box.wrap(("ls",), root)
    box.ended()

    sealed = [f"{root}/{name}" for name in sorted(ABSENT)]
    assert argv == (
        "/usr/bin/bwrap",
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
        *("--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--tmpfs", "/run", "--bind", root, root),
        *("--bind", f"{root}/.github", f"{root}/.github"),
        *(word for path in sealed for word in ("--ro-bind", path, path)),
        *("--tmpfs", keys),
        *("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--chdir", root, "--", "ls"),
    )


def test_the_profile_for_macos():
    profile = seatbelt_profile(
        "workspace-write", ('/w/my "p"',), network=False, hidden=("/home/me/.ssh",), kept=("/x",)
    )

    names = (*(".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir"), *ABSENT[1:])
    names += (".npmrc", ".yarnrc", ".yarnrc.yml", ".pre-commit-config.yaml", ".gitmodules", ".gitlab-ci.yml")
    kept = " ".join(f'(subpath "/w/my \\"p\\"/{name}")' for name in names)
    assert profile == (
        "(version 1)\n"
        "(deny default)\n"
        "(allow process-exec process-fork sysctl-read ipc-posix-shm ipc-posix-sem pseudo-tty)\n"
        "(allow signal (target same-sandbox))\n"
        '(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo")'
        ' (global-name "com.apple.system.logger") (global-name "com.apple.logd")'
        ' (global-name "com.apple.system.notification_center") (global-name "com.apple.cfprefsd.agent")'
        ' (global-name "com.apple.cfprefsd.daemon"))\n'
        "(allow file-read*)\n"
        '(allow file-write* (literal "/dev/null") (literal "/dev/tty"))\n'
        '(allow file-write* (subpath "/private/tmp") (subpath "/private/var/folders"))\n'
        '(allow file-write* (subpath "/w/my \\"p\\""))\n'
        '(deny file-write* (literal "/w/my \\"p\\"/.git"))\n'
        f"(deny file-write* {kept})\n"
        '(deny file-write* (subpath "/x"))\n'
        '(deny file-read* file-write* (subpath "/home/me/.ssh"))\n'
        "(deny network*)\n"
    )
    assert "com.apple.trustd.agent" in seatbelt_profile("read-only", ("/w",), network=True, hidden=())
    box = Seatbelt("/usr/bin/sandbox-exec", "read-only", ("/w",), network=True, hidden=(), home=Path("/home/me"))
    assert box.state == "seatbelt, everything read-only, network open"
    assert box.wrap(("ls",), "/w")[:2] == ("/usr/bin/sandbox-exec", "-p")
    assert NoSandbox("because").state == "off (because)"
