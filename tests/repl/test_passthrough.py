"""Commands of the person's own: run as typed, stopped with all they started."""

import asyncio
from pathlib import Path

import pytest

from mycode.core.errors import InputError
from mycode.repl.passthrough import Ran, run_command


@pytest.fixture(autouse=True)
def _plain_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh")


async def test_output_and_exit_code_are_kept(workspace: Path) -> None:
    seen: list[str] = []

    ran = await run_command("echo out; echo err >&2; pwd; exit 4", workspace, seen.append)

    assert (ran.exit_code, ran.output) == (4, f"out\nerr\n{workspace.resolve()}\n")
    assert "".join(seen) == ran.output


async def test_stopping_it_stops_what_it_started(workspace: Path) -> None:
    started = asyncio.Event()

    task = asyncio.create_task(
        run_command("echo up; sleep 60 & sleep 60; touch late", workspace, lambda _: started.set())
    )
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert not (workspace / "late").exists()


@pytest.mark.parametrize("left", ["sleep 60 &", "setsid sleep 60 &", "(sleep 60 & ) &", "nohup sleep 60 & disown;"])
async def test_a_child_in_the_background_neither_holds_it_up_nor_outlives_it(workspace: Path, left: str) -> None:
    ran = await run_command(f"{left} echo done", workspace, lambda _: None)

    assert (ran.exit_code, ran.output.endswith("done\n")) == (0, True)
    assert ran.seconds < 30


async def test_of_a_flood_the_ends_are_kept(workspace: Path) -> None:
    ran = await run_command("echo first; yes | head -c 20000000; echo last", workspace, lambda _: None)

    assert (ran.output.startswith("first\n"), ran.output.endswith("last\n"), len(ran.output) < 6_000_000) == (
        True,
        True,
        True,
    )


async def test_a_shell_that_is_not_there_is_a_sentence(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/no/such/shell")

    with pytest.raises(InputError, match="Your shell /no/such/shell cannot be started"):
        await run_command("ls", workspace, lambda _: None)


async def test_it_cannot_wait_for_input(workspace: Path) -> None:
    ran = await run_command("cat; echo done", workspace, lambda _: None)

    assert ran.output == "done\n"


def test_the_model_is_told_the_ends_of_a_long_output() -> None:
    told = Ran("make", "a" * 9000 + "b" * 9000, 2, 1.0).told

    assert told.startswith("I ran `make` in my shell; it ended with exit code 2. Its output:\naaa")
    assert "[... 8000 characters left out ...]" in told
    assert len(told) < 11_000
    assert Ran("make", "", None, 1.0).told == "I ran `make` in my shell; it was stopped. Its output:\n(none)"


def test_of_a_very_long_output_its_ends_are_shown() -> None:
    shown = Ran("make", "a" * 900_000 + "b" * 900_000, 0, 1.0).display.output
    assert (shown[:3], shown[-3:], len(shown) < 110_000) == ("aaa", "bbb", True)
