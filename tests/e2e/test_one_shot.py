"""One prompt from the shell: what comes out, where, and with which exit code."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mycode.core.usage import Usage
from tests.support.program import Program, json_lines
from tests.support.script import Answer, call, fail, say
from tests.support.scripted_server import serving


@pytest.fixture
def program(workspace: Path, tmp_path: Path) -> Program:
    return Program(workspace, tmp_path / "home")


def _with(program: Program, url: str) -> Program:
    return Program(program.cwd, program.home, url, program.env)


def test_the_answer_alone_is_on_standard_output(program: Program) -> None:
    with serving([say("It is 42.")]) as server:
        done = _with(program, server.url).ask("what is it?")
    assert (done.stdout, done.stderr, done.returncode) == ("It is 42.\n", "", 0)


def test_piped_input_and_prompt_are_joined(program: Program) -> None:
    with serving([say("ok")]) as server:
        _with(program, server.url).ask("explain this", stdin="some diff\n")
        prompt = server.asked[-1].body["messages"][-1]["content"]
    assert "some diff\n\nexplain this" in json.dumps(prompt).encode().decode("unicode_escape")


def test_piped_input_alone_is_a_prompt(program: Program) -> None:
    with serving([say("ok")]) as server:
        done = _with(program, server.url).run("-p", stdin="only this")
    assert (done.stdout, done.returncode) == ("ok\n", 0)


def test_no_prompt_at_all_is_one_sentence(program: Program) -> None:
    done = program.run("-p")
    assert (done.stdout, done.returncode) == ("", 42)
    assert done.stderr == 'mycode: There is no prompt. Give one: mycode -p "...", or pipe it in.\n'


def test_without_a_model_the_three_ways_on_are_shown(program: Program) -> None:
    done = program.ask("hi")
    assert (done.stdout, done.returncode) == ("", 52)
    assert all(words in done.stderr for words in ("Set a key", "local server", "mycode demo"))


def test_tools_run_and_progress_goes_to_standard_error(program: Program) -> None:
    (program.cwd / "a.txt").write_text("secret word: plum\n")
    with serving([call("read_file", {"path": "a.txt"}), say("The word is plum.")]) as server:
        done = _with(program, server.url).ask("which word?")
        sent = json.dumps(server.asked[-1].body["messages"])
    assert (done.stdout, done.returncode) == ("The word is plum.\n", 0)
    assert "· read_file a.txt" in done.stderr
    assert "secret word: plum" in sent


def test_json_is_one_object_with_everything_that_matters(program: Program) -> None:
    with serving([say("Fine.")]) as server:
        done = _with(program, server.url).ask("how?", "--output-format", "json")
    result = json.loads(done.stdout)
    assert {
        key: result[key] for key in ("type", "subtype", "is_error", "result", "num_turns", "permission_denials")
    } == {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": "Fine.",
        "num_turns": 1,
        "permission_denials": [],
    }
    assert result["total_cost_usd"] is None
    assert result["usage"]["output_tokens"] > 0


def test_stream_json_tells_the_whole_turn_line_by_line(program: Program) -> None:
    (program.cwd / "a.txt").write_text("x\n")
    with serving([call("read_file", {"path": "a.txt"}, call_id="c1"), say("Done.")]) as server:
        done = _with(program, server.url).ask("go", "--output-format", "stream-json")
    lines = json_lines(done.stdout)
    assert [(line["type"], line.get("subtype")) for line in lines] == [
        ("system", "init"),
        ("user", None),
        ("assistant", None),
        ("user", None),
        ("assistant", None),
        ("result", "success"),
    ]
    assert all(line["timestamp"].endswith("Z") and line["session_id"] == lines[0]["session_id"] for line in lines)
    assert lines[2]["message"]["content"][-1]["type"] == "tool_use"
    assert lines[3]["message"]["content"][0]["tool_use_id"] == lines[2]["message"]["content"][-1]["id"]


def test_partial_messages_add_up_to_the_answer(program: Program) -> None:
    with serving([say("one two three four")]) as server:
        done = _with(program, server.url).ask("go", "--output-format", "stream-json", "--include-partial-messages")
    deltas = [line["event"]["text"] for line in json_lines(done.stdout) if line["type"] == "stream_event"]
    assert "".join(deltas) == "one two three four"


def test_what_needs_an_approval_ends_with_its_own_code_and_is_not_done(program: Program) -> None:
    with serving([call("execute_bash", {"command": "touch made"}), say("never")]) as server:
        done = _with(program, server.url).ask("make it")
    assert (done.stdout, done.returncode) == ("", 59)
    assert "nobody can be asked" in done.stderr
    assert not (program.cwd / "made").exists()


def test_a_rule_allows_what_it_names(program: Program) -> None:
    with serving([call("execute_bash", {"command": "touch made"}), say("Made.")]) as server:
        done = _with(program, server.url).ask("make it", "--allowed-tools", "Bash(touch made)")
    assert (done.stdout, done.returncode) == ("Made.\n", 0)
    assert (program.cwd / "made").exists()


def test_yolo_allows_it_too_and_accept_edits_allows_edits_only(program: Program) -> None:
    edit = call("create_file", {"path": "new.txt", "content": "x"})
    command = call("execute_bash", {"command": "touch made"})
    with serving([edit, command, say("Both.")]) as server:
        half = _with(program, server.url).ask("do", "--permission-mode", "acceptEdits")
    with serving([command, say("Yes.")]) as server:
        whole = _with(program, server.url).ask("do", "--yolo")
    assert (half.returncode, (program.cwd / "new.txt").exists()) == (59, True)
    assert (whole.returncode, (program.cwd / "made").exists()) == (0, True)


def test_a_denied_tool_shows_in_the_exit_code(program: Program) -> None:
    with serving([call("execute_bash", {"command": "ls"}), say("I could not.")]) as server:
        done = _with(program, server.url).ask("look", "--disallowed-tools", "Bash(ls *)", "--output-format", "json")
    result = json.loads(done.stdout)
    assert (done.returncode, result["subtype"], len(result["permission_denials"])) == (57, "error_permission_denied", 1)


def test_a_disallowed_tool_is_not_offered(program: Program) -> None:
    with serving([say("ok")]) as server:
        _with(program, server.url).ask("hi", "--disallowed-tools", "execute_bash apply_patch")
        names = {tool["function"]["name"] for tool in server.asked[-1].body["tools"]}
    assert names & {"execute_bash", "apply_patch"} == set()
    assert "read_file" in names


def test_the_turn_limit_has_its_code(program: Program) -> None:
    calls = [call("list_files", {"path": "."}), call("search_files", {"pattern": "x"}), say("never")]
    with serving(calls) as server:
        done = _with(program, server.url).ask("go", "--max-turns", "2")
    assert done.returncode == 53


def test_a_budget_for_a_model_without_a_price_is_refused(program: Program) -> None:
    with serving([say("never")]) as server:
        done = _with(program, server.url).ask("go", "--max-budget-usd", "1")
        asked = len(server.asked)
    assert (done.returncode, asked) == (52, 0)


@pytest.mark.parametrize(("status", "code"), [(401, 41), (403, 41), (404, 41), (400, 1)])
def test_an_error_that_will_not_pass_is_told_once(program: Program, status: int, code: int) -> None:
    with serving([fail(status, "no such thing")], repeat=True) as server:
        done = _with(program, server.url).ask("hi")
        asked = len(server.asked)
    assert (done.returncode, asked, done.stdout) == (code, 1, "")
    assert done.stderr.startswith("mycode: ")
    assert "Traceback" not in done.stderr


def test_an_overloaded_provider_is_worth_trying_again_later(program: Program) -> None:
    with serving([fail(529, "overloaded")], repeat=True) as server:
        done = _with(program, server.url).ask("hi", "--set", "model.retry_seconds=0")
    assert done.returncode == 75


def test_a_passing_error_is_retried_and_said(program: Program) -> None:
    with serving([fail(429, "slow down", headers={"Retry-After": "0"}), say("Here.")]) as server:
        done = _with(program, server.url).ask("hi")
    assert (done.stdout, done.returncode) == ("Here.\n", 0)
    assert "Trying again" in done.stderr


def test_the_answer_can_also_go_to_a_file(program: Program) -> None:
    with serving([say("Written.")]) as server:
        done = _with(program, server.url).ask("go", "-o", "answer.txt")
    assert (done.returncode, (program.cwd / "answer.txt").read_text()) == (0, "Written.\n")


def test_another_folder_can_be_worked_in(program: Program, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "here.txt").write_text("x")
    with serving([call("list_files", {}), say("ok")]) as server:
        _with(program, server.url).ask("look", "-C", str(other))
        assert "here.txt" in json.dumps(server.asked[-1].body["messages"])
    missing = program.ask("hi", "-C", "/no/such/folder")
    assert (missing.returncode, missing.stderr) == (
        42,
        "mycode: /no/such/folder cannot be entered: No such file or directory.\n",
    )


def test_a_session_goes_on_where_it_was(program: Program) -> None:
    with serving([say("I will remember.")]) as server:
        _with(program, server.url).ask("my name is Ada")
    with serving([say("Ada.")]) as server:
        _with(program, server.url).ask("what is my name?", "-c")
        texts = json.dumps(server.asked[-1].body["messages"])
    with serving([say("Still Ada.")]) as server:
        _with(program, server.url).ask("sure?", "--resume", "my name is Ada", "--fork-session")
        forked = json.dumps(server.asked[-1].body["messages"])
    assert "my name is Ada" in texts
    assert "my name is Ada" in forked
    assert len(program.run("sessions", "list").stdout.splitlines()) == 2


def test_nothing_is_kept_when_nothing_is_to_be_kept(program: Program) -> None:
    with serving([say("hi")]) as server:
        _with(program, server.url).ask("hi", "--no-session-persistence")
    assert program.run("sessions", "list").stdout == ""


def test_control_sequences_of_a_model_do_not_reach_the_terminal(program: Program) -> None:
    with serving([say("a\x1b]0;owned\x07b\x1b[31mred")]) as server:
        done = _with(program, server.url).ask("hi")
    assert "\x1b" not in done.stdout
    assert "\x07" not in done.stdout


def test_a_recorded_session_plays_back_without_a_server(program: Program) -> None:
    (program.cwd / "a.txt").write_text("x\n")
    with serving([call("read_file", {"path": "a.txt"}), say("It says x.")]) as server:
        first = _with(program, server.url).ask("go", "--record", "tape.jsonl")
    again = program.ask("go", "--replay", "tape.jsonl")
    assert (first.stdout, again.stdout, again.returncode) == ("It says x.\n", "It says x.\n", 0)
    assert "test-key" not in (program.cwd / "tape.jsonl").read_text()


def test_litellm_gives_the_same_answer_as_the_fast_lane(program: Program) -> None:
    (program.cwd / "a.txt").write_text("x\n")
    script = [call("read_file", {"path": "a.txt"}), say("It says x.")]
    outs = []
    for lane in ("direct", "litellm"):
        with serving(script) as server:
            outs.append(_with(program, server.url).ask("go", "--transport", lane, timeout=120))
    assert [(done.stdout, done.returncode) for done in outs] == [("It says x.\n", 0)] * 2


def test_an_interrupt_keeps_what_was_said(program: Program) -> None:
    slow = Answer(text="This will take a long while. " * 20, pause=0.2, piece=10)
    with serving([slow]) as server:
        own = _with(program, server.url)
        running = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "mycode",
                "-p",
                "go",
                "--output-format",
                "stream-json",
                "--include-partial-messages",
            ],
            cwd=own.cwd,
            env=own.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert running.stdout is not None
        for line in running.stdout:
            if "text_delta" in line:
                break
        running.send_signal(signal.SIGINT)
        rest, told = running.communicate(timeout=30)
    ending = json.loads(rest.splitlines()[-1])
    assert (running.returncode, ending["subtype"], ending["exit_code"]) == (130, "error_interrupted", 130)
    assert "Traceback" not in told
    history = program.run("history", "--full").stdout
    assert "This will" in history


def test_two_wrong_options_are_a_usage_error(program: Program) -> None:
    both = program.ask("x", "--yolo", "--permission-mode", "plan")
    unknown = program.run("--no-such-option")
    assert (both.returncode, unknown.returncode) == (2, 2)
    assert "contradict" in both.stderr
    assert "--no-such-option" in unknown.stderr


def test_nothing_heavy_is_loaded_on_the_way_to_the_first_answer(program: Program) -> None:
    watch = (
        "import sys; from mycode.cli.app import run; code = run(sys.argv[1:]);"
        "sys.stderr.write(' '.join(sorted({name.split('.')[0] for name in sys.modules}))); sys.exit(code)"
    )
    with serving([say("hi")]) as server:
        own = _with(program, server.url)
        done = subprocess.run(
            [sys.executable, "-P", "-c", watch, "-p", "hi"],
            cwd=own.cwd,
            env=own.environment(),
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    loaded = set(done.stderr.split())
    assert (done.stdout, done.returncode) == ("hi\n", 0)
    assert (
        loaded & {"litellm", "tiktoken", "prompt_toolkit", "rich", "pydantic", "httpx", "tree_sitter", "anyio"} == set()
    )


def test_a_price_from_the_settings_makes_costs_known_and_a_budget_hold(program: Program) -> None:
    usage = Usage(input_tokens=3000, output_tokens=100)
    prices = ("--set", "model.input_price=1000", "--set", "model.output_price=1000")
    look = call("list_files", {}, usage=usage)
    with serving([say("ok", usage=usage)]) as server:
        known = _with(program, server.url).ask("hi", *prices, "--output-format", "json")
    with serving([look, look, say("never")]) as server:
        held = _with(program, server.url).ask("hi", *prices, "--max-budget-usd", "4")
        asked = len(server.asked)
    assert json.loads(known.stdout)["total_cost_usd"] == pytest.approx(3.1)
    assert (held.returncode, asked) == (56, 1)


def test_an_answer_that_could_not_be_written_is_not_asked_for(program: Program) -> None:
    with serving([say("never said")]) as server:
        done = _with(program, server.url).ask("hi", "-o", str(program.cwd / "nowhere" / "answer.txt"))
        assert server.asked == []
    assert (done.stdout, done.returncode) == ("", 42)
    assert "nowhere/answer.txt cannot be written: there is no such folder." in done.stderr


def test_a_prompt_in_the_place_of_a_command_is_told_how_prompts_are_given(program: Program) -> None:
    done = program.run("fix the bug")
    assert (done.stdout, done.returncode) == ("", 2)
    assert done.stderr == "mycode: There is no command 'fix the bug'. To ask the model: mycode -p 'fix the bug'\n"
    assert "Did you mean `mycode sessions`?" in program.run("session", "list").stderr


def test_a_closed_standard_input_is_no_input(program: Program) -> None:
    with serving([say("ok")]) as server:
        done = _closed(_with(program, server.url), "<&-", "-p", "hi")
    assert (done.stdout, done.stderr, done.returncode) == ("ok\n", "", 0)


def test_a_closed_output_is_no_reason_to_complain_and_gets_nothing(program: Program) -> None:
    (program.cwd / "a.txt").write_text("plum\n")
    with serving([call("execute_bash", {"command": "cat a.txt"}), say("ok")]) as server:
        done = _closed(_with(program, server.url), ">&-", "-p", "hi", "--yolo")
        sent = json.dumps(server.asked[-1].body["messages"])
    assert (done.stdout, done.stderr, done.returncode) == ("", "· execute_bash cat a.txt\n", 0)
    assert "plum" in sent
    for arguments in (["--version"], ["--help"], ["sessions", "list"], ["doctor"]):
        done = _closed(program, ">&-", *arguments)
        assert (done.stderr, done.returncode) == ("", 0), arguments
    assert _closed(program, "2>&-", "no-such-command").returncode == 2


def test_a_pipe_that_nobody_closes_is_waited_for_and_that_is_told(program: Program) -> None:
    with serving([say("ok")]) as server:
        own = _with(program, server.url)
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "mycode", "-p", "hi"],
            cwd=own.cwd,
            env=own.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as running:
            assert running.stderr is not None
            told = running.stderr.readline()
            out, rest = running.communicate("piped\n", timeout=60)
    assert told == "mycode: Waiting for the end of standard input. If there is nothing to pipe in, add `< /dev/null`.\n"
    assert (out, rest, running.returncode) == ("ok\n", "", 0)


def _closed(program: Program, stream: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One run with a stream closed by the shell."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {stream}', "sh", sys.executable, "-P", "-m", "mycode", *arguments],
        cwd=program.cwd,
        env=program.environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
