"""The box for commands: what it promises where it works, and what is said where it does not."""

import subprocess
from pathlib import Path

import pytest

from mycode.core.errors import SandboxError
from mycode.permissions.sandbox import Bubblewrap, NoSandbox, Seatbelt, detect
from mycode.permissions.seatbelt import seatbelt_profile


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
    return subprocess.run(argv, cwd=project, capture_output=True, text=True, timeout=30, check=False)


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


def test_what_bubblewrap_is_told(tmp_path: Path):
    root, keys = str(tmp_path / "project"), str(tmp_path / "keys")
    Path(root).mkdir()
    Path(keys).mkdir()

    argv = Bubblewrap("/usr/bin/bwrap", "workspace-write", (root,), network=False, hidden=(keys,)).wrap(("ls",), root)

    assert argv == (
        "/usr/bin/bwrap",
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/run"),
        *("--bind", root, root, "--tmpfs", f"{root}/.mycode", "--remount-ro", f"{root}/.mycode", "--tmpfs", keys),
        *("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--chdir", root, "--", "ls"),
    )


def test_the_profile_for_macos():
    profile = seatbelt_profile("workspace-write", ('/w/my "project"',), network=False, hidden=("/home/me/.ssh",))

    assert profile == (
        "(version 1)\n"
        "(deny default)\n"
        "(allow process-exec process-fork signal sysctl-read mach-lookup ipc-posix-shm)\n"
        "(allow file-read*)\n"
        '(allow file-write* (literal "/dev/null") (literal "/dev/tty"))\n'
        '(allow file-write* (subpath "/private/tmp") (subpath "/private/var/folders"))\n'
        '(allow file-write* (subpath "/w/my \\"project\\""))\n'
        '(deny file-write* (subpath "/w/my \\"project\\"/.git/hooks") (subpath "/w/my \\"project\\"/.git/config")'
        ' (subpath "/w/my \\"project\\"/.mycode") (subpath "/w/my \\"project\\"/.vscode")'
        ' (subpath "/w/my \\"project\\"/.idea")'
        ' (subpath "/w/my \\"project\\"/.husky") (subpath "/w/my \\"project\\"/.githooks")'
        ' (subpath "/w/my \\"project\\"/.github/workflows") (subpath "/w/my \\"project\\"/.envrc"))\n'
        '(deny file-read* file-write* (subpath "/home/me/.ssh"))\n'
        "(deny network*)\n"
    )
    box = Seatbelt("/usr/bin/sandbox-exec", "read-only", ("/w",), network=True, hidden=())
    assert box.state == "seatbelt, everything read-only, network open"
    assert box.wrap(("ls",), "/w")[:2] == ("/usr/bin/sandbox-exec", "-p")
    assert NoSandbox("because").state == "off (because)"
