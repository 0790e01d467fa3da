"""Commands run in groups of their own: their output comes whole, and nothing of them outlives what they were for."""

import asyncio
import os
import resource
from pathlib import Path

import pytest

from mycode.core.errors import ToolError
from mycode.core.tools import CommandDisplay
from mycode.tools.processes import HEAD_BYTES, TAIL_BYTES, Processes, child_environment
from mycode.tools.shell import ExecuteBash, ExecuteBashArgs, ShellJob, ShellJobArgs


@pytest.fixture
def processes(workspace: Path) -> Processes:
    return Processes(workspace, os.environ, lambda argv, _cwd: argv)


async def _text(processes: Processes, command: str, timeout: float = 20.0) -> str:
    output = await ExecuteBash(processes).run(ExecuteBashArgs(command, timeout), lambda _text: None)
    return output.text


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


async def _gone(pid: int) -> bool:
    for _ in range(200):
        if not _alive(pid):
            return True
        await asyncio.sleep(0.01)
    return False


async def test_output_and_exit_code_come_in_a_fixed_form(processes: Processes) -> None:
    assert await _text(processes, "echo one; echo two >&2; exit 3") == "one\ntwo\nexit code: 3"
    assert await _text(processes, "true") == "exit code: 0"


async def test_commands_run_in_the_project_without_input(processes: Processes, workspace: Path) -> None:
    assert await _text(processes, "pwd; cat; echo end") == f"{workspace.resolve()}\nend\nexit code: 0"


async def test_progress_is_told_while_it_runs(processes: Processes) -> None:
    told: list[str] = []
    await ExecuteBash(processes).run(ExecuteBashArgs("printf 'h\\303\\244'; printf 'llo'"), told.append)
    assert "".join(told) == "hällo"


async def test_a_command_over_its_time_is_stopped_with_everything_it_started(processes: Processes) -> None:
    text = await _text(processes, "sleep 300 & echo $!; sleep 300", timeout=0.5)
    pid = int(text.split()[0])
    assert text.endswith("stopped after 0.5 s; nothing of it runs any more")
    assert await _gone(pid)


@pytest.mark.parametrize("start", ["sleep 300 &", "sleep 300 & disown;", "setsid sleep 300 &", "nohup sleep 300 &"])
async def test_a_finished_command_leaves_nobody_behind(processes: Processes, start: str) -> None:
    text = await _text(processes, f"{start} echo pid $!")
    pid = int(text.split("pid ")[1].split()[0])
    assert text.endswith("exit code: 0")
    assert await _gone(pid)


async def test_cancelling_kills_the_whole_group(processes: Processes, workspace: Path) -> None:
    task = asyncio.create_task(_text(processes, "sleep 300 & echo $! > pid; sleep 300", timeout=100))
    file = workspace / "pid"
    while not (file.exists() and file.read_text().strip()):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await _gone(int(file.read_text()))


async def test_a_flood_is_drained_and_only_its_ends_are_kept(processes: Processes) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ended = await processes.run("yes 0123456789 | head -c 200000000; echo the end", 60, lambda _text: None)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert ended.exit_code == 0
    assert ended.output.startswith("0123456789\n")
    assert ended.output.endswith("the end\n")
    assert ended.dropped > 200_000_000 - HEAD_BYTES - 2 * TAIL_BYTES - 100
    assert grown < 100


async def test_binary_output_is_decoded_with_replacement(processes: Processes) -> None:
    assert await _text(processes, "printf '\\377\\376ok'") == "\ufffd\ufffdok\nexit code: 0"


async def test_keys_do_not_reach_commands_and_nothing_pages_or_asks(workspace: Path) -> None:
    env = {
        "PATH": os.environ["PATH"],
        "OPENAI_API_KEY": "k",
        "GITHUB_TOKEN": "t",
        "DB_PASSWORD": "p",
        "LANG": "C",
        "KEYS": "x",
    }
    processes = Processes(workspace, env, lambda argv, _cwd: argv)
    text = await _text(processes, "env")
    names = {line.partition("=")[0] for line in text.splitlines()}
    assert names & {"OPENAI_API_KEY", "GITHUB_TOKEN", "DB_PASSWORD"} == set()
    assert {"LANG", "KEYS", "PAGER", "GIT_TERMINAL_PROMPT"} <= names
    assert child_environment(env)["TERM"] == "dumb"


async def test_a_background_job_goes_on_is_looked_at_and_stopped(processes: Processes) -> None:
    bash, look = ExecuteBash(processes), ShellJob(processes)
    started = await bash.run(ExecuteBashArgs("echo ready; sleep 300", background=True), lambda _text: None)
    assert started.text.startswith("Started as job b1.")
    while "ready" not in (shown := await look.run(ShellJobArgs("b1"), lambda _text: None)).text:
        await asyncio.sleep(0.01)
    assert shown.text == "ready\nb1 still runs"
    stopped = await look.run(ShellJobArgs("b1", stop=True), lambda _text: None)
    assert stopped.text == "ready\nexit code: -15"
    assert processes.running() == []


async def test_jobs_end_with_the_session(processes: Processes) -> None:
    job = processes.start_job("sleep 300")
    processes.stop_all()
    assert (job.process.poll(), job.file.exists()) == (-15, False)


async def test_an_unknown_job_names_those_there_are(processes: Processes) -> None:
    processes.start_job("true")
    with pytest.raises(ToolError, match=r"There is no job b9\. Jobs of this session: b1\."):
        await ShellJob(processes).run(ShellJobArgs("b9"), lambda _text: None)
    processes.stop_all()


async def test_the_person_sees_command_output_and_code(processes: Processes) -> None:
    output = await ExecuteBash(processes).run(ExecuteBashArgs("echo hi; exit 2"), lambda _text: None)
    display = output.display
    assert isinstance(display, CommandDisplay)
    assert (display.command, display.output, display.exit_code) == ("echo hi; exit 2", "hi\n", 2)
