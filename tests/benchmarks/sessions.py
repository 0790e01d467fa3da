"""Coding sessions to measure on: recorded ones from a folder, else made ones that are the same for the same seed."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import msgspec

from mycode.context.transcripts import read_items
from mycode.core.messages import AssistantMessage, Message, ToolCall, ToolResult, UserMessage

_WORDS = (
    "parser", "store", "session", "token", "view", "window", "cache", "request", "handler", "config", "loader",
    "index", "record", "ledger", "policy", "budget", "reader", "writer", "queue", "worker", "socket", "stream",
    "filter", "mapper", "router", "schema", "model", "field", "cursor", "buffer", "encoder",
)  # fmt: skip
_VERBS = (
    "load", "save", "parse", "render", "merge", "split", "fetch", "apply", "check", "build", "resolve",
    "collect", "update", "remove", "format",
)  # fmt: skip


def recorded(folder: Path) -> dict[str, list[Message]]:
    """The sessions of `dev.jsonl.gz` (or every `.jsonl`, `.jsonl.gz` of the folder that holds messages), by id.

    Each line is an object with `messages`, an OpenAI-style list. System prompts are left out.
    """
    named = folder / "dev.jsonl.gz"
    files = [named] if named.exists() else sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")])
    found: dict[str, list[Message]] = {}
    for file in files:
        opener = gzip.open if file.suffix == ".gz" else open
        with opener(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                one = json.loads(line)
                said = [message for item in read_items(one["messages"]) for message in item.messages]
                found[str(one.get("id") or f"{file.name}:{len(found)}")] = said
    return found


def made(seed: int) -> Iterator[Message]:
    """A coding session without end: questions, files read, searches, edits, test runs that fail and then pass."""
    chance = random.Random(seed)
    numbers = count(1)
    files = [f"src/{chance.choice(_WORDS)}/{chance.choice(_VERBS)}_{chance.choice(_WORDS)}.py" for _ in range(40)]
    while True:
        file = chance.choice(files)
        name = f"{chance.choice(_VERBS)}_{chance.choice(_WORDS)}"
        yield UserMessage(_request(chance, file, name))
        for _ in range(chance.randint(2, 9)):
            yield from _step(chance, file, name, f"c{next(numbers)}")
            file = chance.choice(files) if chance.random() < 0.5 else file
        yield AssistantMessage(
            f"`{name}` in {file} is mended: it now returns the {chance.choice(_WORDS)} instead of None. "
            f"I decided to keep the old {chance.choice(_WORDS)} because the {chance.choice(_WORDS)} still reads it. "
            f"All {chance.randint(3, 400)} tests pass."
        )


def small(seed: int) -> Iterator[Message]:
    """The same with short results, about 67 tokens to a message: for sessions of very many messages."""
    for message in made(seed):
        if isinstance(message, ToolResult):
            yield ToolResult(message.call_id, message.text[:330], message.is_error)
        else:
            yield message


def code(chance: random.Random, lines: int) -> str:
    """So many lines of Python that never repeat word for word."""
    out: list[str] = []
    while len(out) < lines:
        name = f"{chance.choice(_VERBS)}_{chance.choice(_WORDS)}"
        out += [
            f"def {name}_{chance.randint(1, 999)}({chance.choice(_WORDS)}: str, limit: int = {chance.randint(1, 99)}):",
            f'    """The {chance.choice(_WORDS)} of a {chance.choice(_WORDS)}, at most `limit` of them."""',
            f"    {chance.choice(_WORDS)} = self.{chance.choice(_WORDS)}.{chance.choice(_VERBS)}(limit)",
            f"    if not {chance.choice(_WORDS)}:",
            f"        raise {chance.choice(_WORDS).title()}Error('{chance.choice(_WORDS)} at {chance.random():.6f}')",
            f"    return [{chance.choice(_WORDS)} for {chance.choice(_WORDS)} in {chance.choice(_WORDS)}]",
            "",
        ]
    return "\n".join(out[:lines])


def _request(chance: random.Random, file: str, name: str) -> str:
    asked = (
        f"Please look at {file}: {name} gives back None when the {chance.choice(_WORDS)} is empty. Mend it, run tests.",
        f"Why does {name} take so long? Have a look at {file} and make it faster.",
        f"Add a parameter `{chance.choice(_WORDS)}` to {name} in {file}, with a test.",
    )
    rule = (
        f" Never change {chance.choice(_WORDS)}_{chance.randint(1, 99)}.toml by hand." if chance.random() < 0.1 else ""
    )
    return chance.choice(asked) + rule


def _step(chance: random.Random, file: str, name: str, call_id: str) -> Iterator[Message]:
    kind = chance.choice(("read", "read", "grep", "edit", "test", "shell"))
    number = chance.randint(1, 400)
    if kind == "read":
        said, tool, arguments = f"Let me look at {file}.", "read_file", {"path": file, "start_line": number}
        text = "\n".join(f"{number + at:5} {line}" for at, line in enumerate(code(chance, chance.randint(20, 160))
                                                                           .split("\n")))  # fmt: skip
    elif kind == "grep":
        said, tool, arguments = f"Where is {name} used?", "grep", {"pattern": name, "path": "src"}
        text = "\n".join(
            f"src/{chance.choice(_WORDS)}.py:{chance.randint(1, 900)}:    {name}({chance.choice(_WORDS)})"
            for _ in range(chance.randint(2, 40))
        )
    elif kind == "edit":
        said, tool = "That is the place.", "edit_file"
        arguments = {"path": file, "edits": [{"old": code(chance, 3), "new": code(chance, 6)}]}
        text = f"Edited {file}: 1 replacement, lines {number}-{number + 6}."
    elif kind == "test":
        said, tool, arguments = "Now the tests.", "execute_bash", {"command": f"pytest -q tests/test_{name}.py"}
        failed = chance.random() < 0.4
        text = "\n".join(f"tests/test_{name}.py::test_{one} PASSED" for one in chance.choices(_WORDS, k=12))
        if failed:
            word = chance.choice(_WORDS)
            text += (
                f"\nE   {word.title()}Error: {name} at {number}\nFAILED tests/test_{name}.py::test_{word} - 1 failed"
            )
        text += f"\nexit code: {1 if failed else 0}"
    else:
        said, tool, arguments = "", "execute_bash", {"command": f"git log --oneline -{chance.randint(3, 30)} -- {file}"}
        text = "\n".join(
            f"{chance.getrandbits(28):07x} {chance.choice(_VERBS)} the {chance.choice(_WORDS)} of {name}"
            for _ in range(chance.randint(3, 30))
        )
    call = ToolCall(call_id, tool, msgspec.json.encode(arguments).decode())
    yield AssistantMessage(said, (call,), finish="tool_calls")
    yield ToolResult(call_id, text)
