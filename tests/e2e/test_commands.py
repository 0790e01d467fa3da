"""The commands of the shell, each as a person would type it, against the real program."""

import json
from pathlib import Path

import pytest

from tests.support.program import Program, json_lines
from tests.support.script import call, say
from tests.support.scripted_server import serving


@pytest.fixture
def program(workspace: Path, tmp_path: Path) -> Program:
    return Program(workspace, tmp_path / "home")


def _talk(program: Program, *prompts: str) -> str:
    """Holds a conversation and gives the id of its session."""
    for number, prompt in enumerate(prompts):
        with serving([say(f"Answer to {prompt}.")]) as server:
            own = Program(program.cwd, program.home, server.url)
            own.ask(prompt, *(["-c"] if number else []))
    return str(json.loads(program.run("sessions", "list", "--json").stdout)[0]["id"])


def test_the_version_is_one_line(program: Program) -> None:
    done = program.run("--version")
    assert (done.stdout, done.stderr, done.returncode) == ("mycode 0.1.0\n", "", 0)


def test_help_names_every_command_and_gives_examples(program: Program) -> None:
    text = program.run("--help").stdout
    for word in (
        "demo",
        "sessions",
        "history",
        "context",
        "tools",
        "permissions",
        "config",
        "trust",
        "doctor",
        "Examples:",
    ):
        assert word in text


def test_a_session_is_listed_shown_searched_renamed_and_deleted(program: Program) -> None:
    session = _talk(program, "tell me about plums", "and pears")
    listed = program.run("sessions", "list").stdout
    shown = program.run("sessions", "show", session).stdout
    found = program.run("sessions", "search", "pears").stdout
    renamed = program.run("sessions", "rename", session, "fruit talk")
    assert "tell me about plums" in listed
    assert "Answer to and pears." in shown
    assert "pears" in found
    assert (renamed.returncode, "fruit talk" in program.run("sessions", "list").stdout) == (0, True)
    assert program.run("sessions", "delete", session).returncode == 2
    assert program.run("sessions", "delete", session, "--yes").returncode == 0
    assert program.run("sessions", "list").stdout == ""
    left = [file for file in (program.home / "mycode").rglob("*") if file.is_file() and b"plums" in file.read_bytes()]
    assert left == []


def test_an_export_comes_back_as_the_same_conversation(program: Program) -> None:
    session = _talk(program, "remember 4711", "what was it")
    first = program.run("sessions", "export", session, "-o", "talk.jsonl")
    imported = program.run("sessions", "import", "talk.jsonl").stdout.strip()
    texts = [
        [line["body"].get("text") for line in json_lines(program.run("history", name, "--full", "--json").stdout)]
        for name in (session, imported)
    ]
    assert first.returncode == 0
    assert imported not in ("", session)
    assert texts[0] == texts[1]


@pytest.mark.parametrize("form", ["md", "html"])
def test_an_export_for_people_holds_what_was_said_and_no_secret(program: Program, form: str) -> None:
    key = "sk-proj-" + "Ab1" * 16
    session = _talk(program, f"my key is {key} and my fruit is plum")
    text = program.run("sessions", "export", session, "--format", form).stdout
    assert "my fruit is plum" in text
    assert key not in text


def test_a_session_that_does_not_exist_is_one_sentence(program: Program) -> None:
    done = program.run("sessions", "show", "nobody")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("mycode: There is no session 'nobody'.")


def test_a_session_is_verified(program: Program) -> None:
    session = _talk(program, "hi")
    done = program.run("sessions", "verify", session)
    assert (done.returncode, done.stderr) == (0, "Whole and unaltered.\n")


def test_history_shows_the_newest_or_everything_or_what_holds_a_word(program: Program) -> None:
    _talk(program, "one plum", "two pears")
    newest = program.run("history", "-n", "1").stdout
    everything = program.run("history", "--full").stdout
    grepped = program.run("history", "--full", "--grep", "PLUM").stdout
    assert ("two pears" in newest, "one plum" in newest) == (True, False)
    assert ("one plum" in everything, "two pears" in everything) == (True, True)
    assert ("one plum" in grepped, "two pears" in grepped) == (True, False)


def test_tools_are_listed_shown_and_run_by_the_same_rules(program: Program) -> None:
    (program.cwd / "a.txt").write_text("plum\n")
    names = [line.split()[0] for line in program.run("tools", "list").stdout.splitlines()]
    shown = program.run("tools", "show", "edit_file").stdout
    read = program.run("tools", "run", "read_file", '{"path": "a.txt"}')
    edit = '{"path": "a.txt", "edits": [{"old": "plum", "new": "pear"}]}'
    refused = program.run("tools", "run", "edit_file", edit)
    applied = program.run("tools", "run", "edit_file", "-", "--permission-mode", "acceptEdits", stdin=edit)
    assert {"read_file", "edit_file", "apply_patch", "execute_bash", "grep", "todo", "ask_user"} <= set(names)
    assert '"old"' in shown
    assert ("plum" in read.stdout, read.returncode) == (True, 0)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "nobody can be asked" in refused.stderr
    assert (applied.returncode, (program.cwd / "a.txt").read_text()) == (0, "pear\n")


def test_a_tool_with_wrong_arguments_says_what_it_takes(program: Program) -> None:
    done = program.run("tools", "run", "read_file", '{"file": "a"}')
    missing = program.run("tools", "run", "no_such", "{}")
    assert (done.returncode, missing.returncode) == (1, 1)
    assert "path" in done.stderr
    assert "There is no tool named no_such" in missing.stderr


def test_a_verdict_is_explained_part_by_part(program: Program) -> None:
    done = program.run("permissions", "check", "git status && rm -rf build", "--json")
    verdict = json.loads(done.stdout)
    assert (done.returncode, verdict["decision"]) == (0, "ask")
    assert [part["decision"] for part in verdict["parts"]] == ["allow", "ask"]
    denied = json.loads(program.run("permissions", "check", "rm x", "--deny", "Bash(rm *)", "--json").stdout)
    assert denied["decision"] == "deny"


def test_what_was_refused_is_in_the_audit_log_and_the_log_is_whole(program: Program) -> None:
    with serving([call("execute_bash", {"command": "touch x"}), say("no")]) as server:
        Program(program.cwd, program.home, server.url).ask("go", "--permission-mode", "dontAsk")
    log = program.run("permissions", "log").stdout
    whole = program.run("permissions", "log", "--verify")
    assert "deny" in log
    assert "touch x" in log
    assert (whole.returncode, whole.stdout) == (0, "The log is whole and unaltered.\n")


def test_settings_are_shown_with_their_origin_and_can_be_set(program: Program) -> None:
    done = program.run("config", "set", "context.auto.trigger_ratio", "0.75")
    shown = program.run("config", "show", "--origin").stdout
    wrong = program.run("config", "set", "model.nmae", "x")
    assert done.returncode == 0
    assert f"context.auto.trigger_ratio = 0.75  # {program.home}/mycode/settings.toml" in shown
    assert wrong.returncode == 52
    assert "model.name = unset" in program.run("config", "keys").stdout


def test_a_broken_settings_file_is_one_sentence_with_its_name(program: Program) -> None:
    (program.home / "mycode").mkdir(parents=True)
    (program.home / "mycode" / "settings.toml").write_text("[model\n")
    done = program.ask("hi")
    assert (done.returncode, done.stdout) == (52, "")
    assert "settings.toml cannot be read" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_project_that_is_not_trusted_changes_nothing_and_it_is_said(program: Program) -> None:
    (program.cwd / ".mycode").mkdir()
    (program.cwd / ".mycode" / "settings.toml").write_text(
        '[model]\nname = "openai/evil"\n[permissions]\ndeny = ["Read"]\n'
    )
    with serving([say("hi")]) as server:
        own = Program(program.cwd, program.home, server.url)
        before = own.ask("hi")
        trusted = program.run("trust")
        after = own.ask("hi", "--output-format", "json")
    assert "is not trusted" in before.stderr
    assert trusted.returncode == 0
    assert "is not trusted" not in after.stderr


def test_the_doctor_names_what_is_there_and_what_is_not(program: Program) -> None:
    done = program.run("doctor")
    assert done.returncode == 0
    for words in ("Python", "No model", "Token counts are exact", "Sandbox"):
        assert words in done.stdout


def test_the_doctor_shows_the_box_that_commands_would_have(program: Program) -> None:
    def told(setting: str) -> str:
        program.env["MYCODE_PERMISSIONS__SANDBOX"] = setting
        return next(line for line in program.run("doctor").stdout.splitlines() if "andbox" in line)

    assert told("off") == "· Sandbox: off (as permissions.sandbox says)"
    assert told("auto").startswith(("✓ Sandbox: ", "· Sandbox: off ("))
    assert told("read-only").endswith(("everything read-only, no network", "or use --sandbox off."))


def test_a_transcript_is_made_to_fit_and_bad_ones_are_one_sentence(program: Program) -> None:
    messages = [{"role": "user", "content": "Fix the parser in src/parser.py"}]
    for number in range(40):
        messages.append(
            {"role": "assistant", "content": f"I looked at src/part_{number}.py and found frob_{number}. " * 8}
        )
        messages.append({"role": "user", "content": "go on"})
    (program.cwd / "t.json").write_text(json.dumps(messages))
    done = program.run("context", "compress", "t.json", "--budget", "900", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["tokens_after"] <= 900 < report["tokens_before"]) == (0, True)
    assert report["messages"][0] == messages[0]
    for text in ("", "nonsense", '{"a": 1}', "[1, 2]", '[{"role": "king", "content": "x"}]'):
        (program.cwd / "bad.json").write_text(text)
        bad = program.run("context", "compress", "bad.json", "--budget", "900")
        assert (bad.returncode, bad.stdout, bad.stderr.count("\n")) == (42, "", 1)


def test_a_transcript_is_inspected(program: Program) -> None:
    (program.cwd / "t.json").write_text(json.dumps([{"role": "user", "content": "hi there"}]))
    plain = program.run("context", "inspect", "t.json").stdout
    data = json.loads(program.run("context", "inspect", "t.json", "--json").stdout)
    assert "1 message, " in plain
    assert (data["messages"], data["roles"][0]["name"]) == (1, "user")


def test_the_demo_ends_well_only_because_the_tests_pass(program: Program) -> None:
    done = program.run("demo", "--plain", "--keep", "kept", timeout=100)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    for words in ("The project's tests pass", "Session Summary", "Session history", "Connect a real model"):
        assert words in done.stdout
    assert "minutes <= FREE_MINUTES" in (program.cwd / "kept" / "meter" / "fees.py").read_text()
    assert "\x1b" not in done.stdout


def test_one_setting_is_printed_and_an_unknown_one_is_told(program: Program) -> None:
    assert program.run("config", "get", "session.persist").stdout == "true\n"
    done = program.run("config", "get", "nosuch.key")
    assert (done.stdout, done.returncode) == ("", 52)
    assert done.stderr == "mycode: There is no setting 'nosuch.key'. `mycode config keys` lists them.\n"


def test_the_doctor_leaves_nothing_behind_in_the_project(program: Program) -> None:
    before = sorted(path.name for path in program.cwd.iterdir())
    assert program.run("doctor").returncode == 0
    assert sorted(path.name for path in program.cwd.iterdir()) == before
