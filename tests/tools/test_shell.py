"""Commands run in groups of their own: their output comes whole, and nothing of them outlives what they were for."""

import asyncio
import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mycode.core.errors import ToolError
from mycode.core.tools import CommandDisplay
from mycode.tools.processes import HEAD_BYTES, TAIL_BYTES, Kept, Processes, child_environment
from mycode.tools.shell import ExecuteBash, ExecuteBashArgs, ShellJob, ShellJobArgs


@pytest.fixture
def processes(workspace: Path) -> Iterator[Processes]:
    made = Processes(workspace, os.environ, lambda argv, _cwd: argv)
    yield made
    made.stop_all()


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


async def test_being_cancelled_twice_still_kills(processes: Processes, workspace: Path) -> None:
    stubborn = "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done"
    task = asyncio.create_task(_text(processes, stubborn, timeout=100))
    file = workspace / "pid"
    while not (file.exists() and file.read_text().strip()):
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await _gone(int(file.read_text()))


_KILLED = """
import asyncio, os, sys
from pathlib import Path
from mycode.tools.processes import Processes

async def story():
    processes = Processes(Path.cwd(), os.environ, lambda argv, _: argv)
    await processes.run("true", 9, lambda _: None)
    processes.start_job("echo $$ >> pids; setsid sleep 300 & echo $! >> pids; wait")
    await processes.run("echo $$ >> pids; sleep 300 & echo $! >> pids; wait", 300, lambda _: None)

asyncio.run(story())
"""


async def test_when_the_program_is_killed_its_commands_end_too(workspace: Path) -> None:
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _KILLED, cwd=workspace, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    )
    file = workspace / "pids"
    while not file.exists() or len(file.read_text().split()) < 4:
        await asyncio.sleep(0.01)
    program.kill()
    await program.wait()
    assert [await _gone(int(pid)) for pid in file.read_text().split()] == [True] * 4


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
        "PGPASSWORD": "p",
        "MYSQL_PWD": "p",
        "AWS_SECRET_ACCESS_KEY": "s",
        "GH_PAT": "p",
        "SMTP_PASS": "p",
        "SESSION_COOKIE": "c",
        "DOCKER_AUTH_CONFIG": "c",
        "DEPLOY": "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789",
        "SSH_AUTH_SOCK": "kept",
        "DATABASE_URL": "postgres://me:here@localhost/db",
        "COMPASS": "north",
        "LANG": "C",
        "KEYS": "x",
    }
    processes = Processes(workspace, env, lambda argv, _cwd: argv)
    text = await _text(processes, "env")
    names = {line.partition("=")[0] for line in text.splitlines()}
    kept = {"LANG", "KEYS", "SSH_AUTH_SOCK", "DATABASE_URL", "COMPASS", "PATH"}
    assert names & set(env) == kept
    assert {"PWD", "PAGER", "GIT_TERMINAL_PROMPT"} <= names
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


async def test_a_job_that_floods_is_drained_and_its_ends_are_kept(processes: Processes) -> None:
    job = processes.start_job("yes 0123456789 | head -c 30000000; echo the end")
    while job.alive:
        await asyncio.sleep(0.01)
    assert job.kept.newest(20).endswith("the end\n")
    assert job.kept.dropped > 30_000_000 - HEAD_BYTES - 2 * TAIL_BYTES - 100
    processes.stop_all()


async def test_what_a_finished_job_left_behind_is_stopped_with_it(processes: Processes) -> None:
    job = processes.start_job("sleep 300 & setsid sleep 300 & echo $!; exit 0")
    job.process.wait()
    while "\n" not in job.kept.text():
        await asyncio.sleep(0.01)
    assert processes.running() == [job]
    await ShellJob(processes).run(ShellJobArgs(job.id, stop=True), lambda _text: None)
    assert await _gone(int(job.kept.text()))
    assert processes.running() == []


async def test_the_newest_output_reaches_from_the_tail_into_the_head() -> None:
    kept = Kept()
    kept.add(b"x" * (HEAD_BYTES - 3) + b"abc")
    kept.add(b"def")
    assert (kept.newest(4), kept.newest(3), kept.dropped) == ("cdef", "def", 0)
    assert len(kept.text()) == HEAD_BYTES + 3


async def test_jobs_end_with_the_session(processes: Processes) -> None:
    job = processes.start_job("sleep 300")
    processes.stop_all()
    assert (job.process.poll(), job.alive, processes.running()) == (-15, False, [])


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
