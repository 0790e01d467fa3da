"""What is left when a program has ended, however it ended: on disk, among the processes, in what the model is sent."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mycode.core.messages import AssistantMessage, ToolResult, UserMessage
from mycode.session.store import Store
from tests.support.program import Program

PATIENCE = 30.0
# What the program keeps: whatever else lies in its folder was forgotten there.
_OURS = re.compile(
    r"sessions/sessions\.db(-wal|-shm|-journal)?|audit\.jsonl(\.end)?|calibrations\.json|prompts|settings\.toml"
    r"|\.settings\.toml\.lock|checkpoints/.*|trust.*"
)


def start(program: Program, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    """The program on its own, to be waited for, signalled or killed."""
    return subprocess.Popen(
        [*program.inside, sys.executable, "-P", "-m", "mycode", *arguments],
        cwd=program.cwd,
        env=program.environment(),
        stdin=options.pop("stdin", subprocess.DEVNULL),
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=options.pop("stderr", subprocess.PIPE),
        text=True,
        **options,
    )


def store_of(program: Program) -> Store:
    return Store(program.home / "mycode" / "sessions")


def orphans(messages: Sequence[dict[str, Any]]) -> list[str]:
    """Calls without their one result right behind them, and results without a call, in a request."""
    faults: list[str] = []
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                faults.append(f"stray result {message['tool_call_id']}")
            continue
        faults += [f"no result for {one}" for one in waiting]
        waiting = [one["id"] for one in message.get("tool_calls") or ()]
    return faults + [f"no result for {one}" for one in waiting]


def gone(pid: int) -> bool:
    """Whether a process has ended (or is only waiting to be collected)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def wait_until(seen: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not seen():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.01)


def written(file: Path) -> bool:
    """Whether a command has written into this file by now."""
    return file.exists() and file.read_text().strip() != ""


def acknowledged(text: str) -> list[tuple[str, str]]:
    """What stream-json had told before the end: texts of the model and results of tools."""
    told: list[tuple[str, str]] = []
    for line in text.splitlines(keepends=True):
        if not line.endswith("\n"):
            continue
        event = json.loads(line)
        if event["type"] not in ("assistant", "user"):
            continue
        content = event["message"]["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            match block["type"]:
                case "text":
                    told.append((event["type"], block["text"]))
                case "tool_use":
                    told.append(("call", block["id"]))
                case "tool_result":
                    told.append(("result", block["tool_use_id"]))
    return told


def kept(program: Program) -> list[tuple[str, str]]:
    """The same, as the newest session has it on disk."""
    store = store_of(program)
    found: list[tuple[str, str]] = []
    latest = store.latest()
    for entry in store.log(latest.id).read(1) if latest is not None else ():
        match entry.message:
            case UserMessage(text=text):
                found.append(("user", text))
            case AssistantMessage(text=text, tool_calls=calls):
                found += [("assistant", text), *(("call", one.id) for one in calls)]
            case ToolResult(call_id=call_id):
                found.append(("result", call_id))
            case None:
                pass
    store.close()
    return found


def left_over(program: Program) -> list[str]:
    """Files in the program's own folder that it does not keep on purpose."""
    home = program.home / "mycode"
    names = (path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file())
    return sorted(name for name in names if not _OURS.fullmatch(name))


def wait_ended(program: Program) -> None:
    """Until no process runs in the workspace any more."""
    end = time.monotonic() + PATIENCE
    while left := at_work(program):
        assert time.monotonic() < end, f"still running: {left}"
        time.sleep(0.01)


def at_work(program: Program) -> list[str]:
    """Processes that run in the workspace: the program, its commands, its helpers."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cwd").readlink().is_relative_to(program.cwd) and not gone(int(folder.name)):
                found.append(f"{folder.name} {(folder / 'cmdline').read_bytes().replace(bytes(1), b' ').decode()}")
        except OSError:
            continue
    return found
