"""What starting costs: version, help, a prompt, the first key, a round of tools; the size of the first request."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from mycode.llm.tokens import Tokens
from tests.benchmarks.measure import ROUNDS, Costs, Options, Row, Stopwatch, program, world
from tests.support.script import Answer, call, say
from tests.support.scripted_server import ScriptedServer, serving

MIB = 1024 * 1024
_BROKEN = "def add(a, b):\n    return a - b\n"
_MENDED = "def add(a, b):\n    return a + b\n"
_ROUNDS_OF_TOOLS = 3
_HEAVY = ("litellm", "tiktoken", "prompt_toolkit", "rich", "pydantic")


def version_and_help(options: Options) -> list[Row]:
    """`--version` and `--help` against the bare interpreter."""
    stopwatch = Stopwatch()
    with world() as (project, env):
        costs = stopwatch.compare({one: program(one) for one in ("--version", "--help")}, env=env, cwd=project)
    stopwatch.close()
    return [_ratio("mycode --version", costs, "--version", 2), _ratio("mycode --help", costs, "--help", 12)]


def one_shot(options: Options) -> list[Row]:
    """The prompt "hi" over the fast lane, answered at once by a server on loopback; the memory it takes."""
    stopwatch = Stopwatch()
    with serving(lambda _: say("hi")) as server, world(**_reached(server)) as (project, env):
        costs = stopwatch.compare({"hi": program("-p", "hi")}, env=env, cwd=project)
    stopwatch.close()
    return [
        _ratio('mycode -p "hi"', costs, "hi", 16),
        Row("its peak memory", costs["hi"].rss / MIB, "MiB", 80, note="largest process"),
    ]


def tool_round(options: Options) -> list[Row]:
    """What a round of tools adds: four requests (read, edit, shell, done) against one, on the same loopback server."""
    stopwatch = Stopwatch()
    with serving(_edit) as server, world(**_reached(server)) as (project, env):
        file = project / "calc.py"

        def prepare(name: str) -> None:
            if name == "edit":
                file.write_text(_BROKEN, encoding="utf-8")

        edit = program("-p", "mend calc.py", "--yolo")
        costs = stopwatch.compare({"hi": program("-p", "hi"), "edit": edit}, env=env, cwd=project, before=prepare)
        if file.read_text(encoding="utf-8") != _MENDED:
            message = "the scripted edit did not happen"
            raise RuntimeError(message)
    stopwatch.close()
    each = (costs["edit"].cpu - costs["hi"].cpu) / _ROUNDS_OF_TOOLS
    return [
        Row("a round of tools", each, "CPU s", 0.04, note=f"{each / costs['bare'].cpu:.2f} x bare"),
    ]


def first_request(options: Options) -> list[Row]:
    """System prompt and tools of the first request, in tokens of o200k."""
    stopwatch = Stopwatch()
    with serving(lambda _: say("hi")) as server, world(**_reached(server)) as (project, env):
        stopwatch.run(program("-p", "hi"), env=env, cwd=project)
        body = server.asked[0].body
    stopwatch.close()
    counter = Tokens("openai/gpt-5")
    counter.load()
    system = "".join(message["content"] for message in body["messages"] if message["role"] in {"system", "developer"})
    tools = msgspec.json.encode(body["tools"]).decode()
    sizes = counter.count(system), counter.count(tools)
    note = f"system {sizes[0]}, {len(body['tools'])} tools {sizes[1]}" + ("" if counter.exact else "; estimated")
    return [Row("the first request", float(sum(sizes)), "tokens", 2500, note=note)]


def first_key(options: Options, rounds: int = ROUNDS) -> list[Row]:
    """From launch to the first key seen in a terminal, and to the first key that the whole editor shows."""
    stopwatch = Stopwatch()
    bare, first, editor = Costs(), 1e9, 1e9
    with world(OPENAI_API_KEY="none") as (project, env):
        launch = program("--model", "openai/none", "--api-base", "http://127.0.0.1:9/v1")
        for round_ in range(rounds + 1):
            spent = stopwatch.run([sys.executable, "-c", "pass"], env=env, cwd=project)
            keys = _keys(launch, env, project)
            if round_:
                bare.add(spent)
                first, editor = min(first, keys[0]), min(editor, keys[1])
        loaded = _loaded_before_first_key(launch, env, project)
    stopwatch.close()
    heavy = ", ".join(loaded) or "none"
    return [
        Row("launch to the first key", first / bare.cpu, "x bare", 20, note=f"{first:.3f} CPU s; echoed by the line"),
        Row("heavy packages by then", float(len(loaded)), "", 0, note=heavy),
        Row("launch to the editor's echo", editor / bare.cpu, "x bare", note=f"{editor:.3f} CPU s; all threads"),
    ]


def _ratio(name: str, costs: dict[str, Costs], which: str, bar: float) -> Row:
    bare, spent = costs["bare"], costs[which]
    note = f"{spent.cpu:.3f} of {bare.cpu:.4f} CPU s; medians {spent.median / bare.median:.1f} x"
    return Row(name, spent.cpu / bare.cpu, "x bare", bar, note=note)


def _reached(server: ScriptedServer) -> dict[str, str]:
    return {"MYCODE_MODEL": "openai/scripted", "MYCODE_API_BASE": server.url, "OPENAI_API_KEY": "none"}


def _edit(body: dict[str, Any]) -> Answer:
    """The next answer of the scripted edit, told from how many results have come back."""
    messages = body["messages"]
    if "mend" not in str(next(message["content"] for message in messages if message["role"] == "user")):
        return say("hi")
    done = sum(message["role"] == "tool" for message in messages)
    steps = (
        call("read_file", {"path": "calc.py"}),
        call("edit_file", {"path": "calc.py", "edits": [{"old": "a - b", "new": "a + b"}]}),
        call("execute_bash", {"command": "true"}),
    )
    return steps[done] if done < len(steps) else say("Done.")


def _keys(argv: list[str], env: dict[str, str], cwd: Path) -> tuple[float, float]:
    """CPU seconds of the program until its first key is seen, and until one typed into the whole editor is."""
    pid, screen = _launch(argv, env, cwd)
    try:
        _until(screen, b"> ")
        os.write(screen, b"k")
        _until(screen, b"k")
        first = _cpu(pid)
        _until(screen, b"\x1b[?2004h")  # from here on the editor reads the keys
        os.write(screen, "ß".encode())
        _until(screen, "ß".encode())
        return first, _cpu(pid)
    finally:
        _end(pid, screen)


def _loaded_before_first_key(argv: list[str], env: dict[str, str], cwd: Path) -> list[str]:
    """Which heavy packages the program has begun to import when its first key is seen."""
    log = cwd / "imports"
    pid, screen = _launch(argv, {**env, "PYTHONPROFILEIMPORTTIME": "1"}, cwd, log)
    try:
        _until(screen, b"> ")
        os.write(screen, b"k")
        _until(screen, b"k")
        imported = log.read_text(encoding="utf-8", errors="replace")
    finally:
        _end(pid, screen)
    names = {line.rpartition("|")[2].strip() for line in imported.splitlines()}
    return [name for name in _HEAVY if any(one == name or one.startswith(name + ".") for one in names)]


def _launch(argv: list[str], env: dict[str, str], cwd: Path, errors: Path | None = None) -> tuple[int, int]:
    pid, screen = pty.fork()
    if not pid:
        try:
            if errors is not None:
                os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            os.chdir(cwd)
            os.execve(argv[0], argv, env)
        finally:
            os._exit(127)
    return pid, screen


def _until(screen: int, wanted: bytes, patience: float = 30.0) -> None:
    seen = b""
    end = time.monotonic() + patience
    while wanted not in seen:
        if not select.select([screen], [], [], max(0.0, end - time.monotonic()))[0]:
            message = f"waited in vain for {wanted!r}; there came {seen[-500:]!r}"
            raise RuntimeError(message)
        seen += os.read(screen, 65_536)


def _cpu(pid: int) -> float:
    """CPU seconds of a running process, all its threads: its own clock, by the number Linux gives it."""
    return time.clock_gettime((~pid << 3) | 2)


def _end(pid: int, screen: int) -> None:
    os.kill(pid, 9)
    os.close(screen)
    os.waitpid(pid, 0)
