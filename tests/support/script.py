"""What a scripted model says: one small language for the model double and for the loopback server.

A script is a list of `Answer`s played in order, or a function from the request (the JSON body as a dict) to an
`Answer` for sessions without end. `answers(path)` reads one from a file of JSON Lines with the same field names:

    {"text": "Let me look.", "calls": [{"name": "read_file", "arguments": {"path": "a.py"}}]}
    {"status": 429, "error": "slow down", "headers": {"retry-after": "2"}}
    {"text": "Done."}

The builders `say`, `call` and `fail` make the common ones readable in tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from mycode.core.messages import ToolCall
from mycode.core.usage import Usage
from mycode.llm.scripted import Failure, Reply

Fault = Literal[
    "",
    "drop",  # the connection is reset before any answer
    "drop_midway",  # the connection is reset in the middle of the stream
    "hang",  # the request is read, nothing is ever sent
    "hang_midway",  # half of the stream, then silence
    "cut",  # everything was said, the body ends properly, but no finish reason and no [DONE]
    "cut_midway",  # half was said, then the body ends properly
    "no_done",  # a finish reason, but no [DONE] (some servers do so; it is a whole answer)
    "malformed",  # an event in the middle that is not JSON
    "error_event",  # an error event in the middle of a 200 stream
    "noise",  # comments, metadata and unknown chunks between the deltas, to be ignored
    "repeat",  # the finish reason and the usage come in several chunks
]


class Call(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call; `arguments` is sent as JSON, or as it is when it is a string (for broken arguments)."""

    name: str
    arguments: dict[str, Any] | str = {}
    id: str = ""

    @property
    def raw(self) -> str:
        if isinstance(self.arguments, str):
            return self.arguments
        return msgspec.json.encode(self.arguments).decode()


class Answer(Struct, frozen=True, forbid_unknown_fields=True):
    """One answer to one request, whole or faulty.

    `finish` is the provider's word (`stop`, `tool_calls`, `length`, `content_filter`), guessed from the rest if empty.
    `usage` None means counts made from the sizes (4 bytes a token); `no_usage` sends none. A `status` other than 200
    sends `error` as the provider's error object of type `error_type`, or `body` as it is. `piece` is the characters
    of a delta; `delay` the seconds before the first byte, `pause` those between deltas. `raw` replaces the whole
    event stream.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    finish: str = ""
    refusal: str = ""
    usage: Usage | None = None
    no_usage: bool = False
    piece: int = 5
    delay: float = 0.0
    pause: float = 0.0
    status: int = 200
    error: str = ""
    error_type: str = ""
    body: str | None = None
    headers: dict[str, str] = {}
    fault: Fault = ""
    raw: str | None = None


Script = Sequence[Answer] | Callable[[dict[str, Any]], Answer]


def say(text: str, **more: Any) -> Answer:
    """A plain answer."""
    return Answer(text=text, **more)


def call(name: str, arguments: dict[str, Any] | str | None = None, *, call_id: str = "", **more: Any) -> Answer:
    """An answer with one tool call, e.g. `call("read_file", {"path": "a.py"}, text="Let me look.")`."""
    return Answer(calls=(Call(name, {} if arguments is None else arguments, call_id),), **more)


def fail(status: int, error: str = "it failed", **more: Any) -> Answer:
    """An HTTP error, e.g. `fail(429, "slow down", headers={"retry-after": "2"})`."""
    return Answer(status=status, error=error, **more)


def answers(path: str | Path) -> list[Answer]:
    """A script from a file of JSON Lines; empty lines and lines starting with # are skipped."""
    decoder = msgspec.json.Decoder(Answer)
    lines = (line.strip() for line in Path(path).read_text(encoding="utf-8").splitlines())
    return [decoder.decode(line) for line in lines if line and not line.startswith("#")]


def replies(*script: Answer) -> list[Reply]:
    """The same script for `mycode.llm.scripted.ScriptedModel`: every fault becomes the error it leads to."""
    return [_reply(answer) for answer in script]


_FINISH: dict[str, Any] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "content_filter": "refusal",
}
_ERRORS = {
    400: "BadRequest",
    401: "AuthError",
    403: "AuthError",
    404: "UnknownModel",
    413: "ContextOverflow",
    429: "RateLimited",
}


def _reply(answer: Answer) -> Reply:
    failure = None
    if answer.status != 200:
        error = "ContextOverflow" if "context" in answer.error else _ERRORS.get(answer.status, "Unavailable")
        wait = answer.headers.get("retry-after")
        failure = Failure(error, answer.error, answer.status, float(wait) if wait else None)
    elif answer.fault not in {"", "no_done", "noise", "repeat"}:
        failure = Failure("Unavailable", f"the scripted stream was broken: {answer.fault}")
    return Reply(
        text=answer.text or answer.refusal,
        reasoning=answer.reasoning,
        calls=tuple(ToolCall(one.id, one.name, one.raw) for one in answer.calls),
        finish="refusal" if answer.refusal else _FINISH.get(answer.finish),
        usage=answer.usage,
        error=failure,
        delay=answer.delay,
        pause=answer.pause,
        piece=answer.piece,
    )
