r"""A model that plays a script, for demos, replays and tests without a network or a key.

A script is a list of `Reply`s, a function from the request to a `Reply`, or a *cassette*: a file of JSON Lines that
`RecordingModel` wrote from a real session or a person wrote by hand. The first line may describe the model

    {"cassette": 1, "model": "openai/gpt-5", "window": 272000, "output_limit": 128000}

and each other line is a reply with the fields of `Reply`, all optional:

    {"text": "Let me look.", "calls": [{"id": "c1", "name": "read_file", "arguments": "{\"path\": \"a.py\"}"}]}
    {"error": {"kind": "RateLimited", "message": "slow down", "status": 429, "retry_after": 2}}
    {"text": "Done.", "usage": {"input_tokens": 812, "output_tokens": 3}}

Empty lines and lines that start with `#` are skipped. Recorded lines also hold `number` (the order in which the
requests were made), the `deltas` as they came, and `request`, a sha256: what was asked is never written down.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from mycode.core import errors
from mycode.core.errors import BadRequest, InputError, ModelError
from mycode.core.events import ReasoningDelta, Retrying, TextDelta
from mycode.core.messages import AssistantMessage, FinishReason, ToolCall
from mycode.core.models import Model, ModelInfo, ModelItem, ModelRequest, Price
from mycode.core.usage import Usage
from mycode.llm.wire import sound

DEMO_INFO = ModelInfo("scripted/demo", "scripted", window=128_000, output_limit=16_000, price=Price(0.0, 0.0))


class Failure(Struct, frozen=True, omit_defaults=True):
    """An error instead of an answer; `kind` is the name of a class of `core.errors` below `ModelError`."""

    kind: str
    message: str
    status: int | None = None
    retry_after: float | None = None
    limit: int | None = None
    requested: int | None = None


class Reply(Struct, frozen=True, omit_defaults=True):
    """One answer. `finish` is guessed from the calls when None; `usage` None is an answer without usage.

    Played as `deltas` (pairs of `"text"` or `"reasoning"` and the piece) or else in deltas of `piece` characters, after
    `delay` seconds and with `pause` seconds between them. With `error`, it shows these and fails.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: FinishReason | None = None
    usage: Usage | None = None
    error: Failure | None = None
    delay: float = 0.0
    pause: float = 0.0
    piece: int = 24
    deltas: tuple[tuple[Literal["text", "reasoning"], str], ...] = ()
    provider_data: dict[str, Any] = {}
    number: int = 0
    request: str = ""


Script = Sequence[Reply] | Callable[[ModelRequest], Reply]


class ScriptedModel:
    """Plays a script in order and keeps the requests it saw in `requests`.

    A recorded reply is preferred where its request is exactly the one asked, so that a background request may come
    earlier or later than it did. A script that is over raises `BadRequest`.
    """

    def __init__(self, script: Script, info: ModelInfo = DEMO_INFO) -> None:
        self.info = info
        self.requests: list[ModelRequest] = []
        self._script = script
        self._left = [] if callable(script) else list(script)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        self.requests.append(request)
        number = len(self.requests)
        reply = self._next(request)
        if reply.delay:
            await asyncio.sleep(reply.delay)
        for index, (kind, piece) in enumerate(reply.deltas or _pieces(reply)):
            # A turn of the event loop between deltas, as on a wire: whoever cancels is heard.
            await asyncio.sleep(reply.pause if index else 0)
            yield TextDelta(piece) if kind == "text" else ReasoningDelta(piece)
        if reply.error is not None:
            raise _error(reply.error)
        yield self._message(reply, number)

    async def aclose(self) -> None:
        pass

    def _next(self, request: ModelRequest) -> Reply:
        if callable(self._script):
            return self._script(request)
        if not self._left:
            raise BadRequest(
                f"The script is over: it holds {len(self._script)} answers, and one more was asked for. "
                "Connect a real model, or play a longer cassette."
            )
        if any(reply.request for reply in self._left):
            asked = request_digest(request)
            for index, reply in enumerate(self._left):
                if reply.request == asked:
                    return self._left.pop(index)
        return self._left.pop(0)

    def _message(self, reply: Reply, number: int) -> AssistantMessage:
        calls = tuple(
            call if call.id else ToolCall(f"call_{number}_{index}", call.name, call.arguments)
            for index, call in enumerate(reply.calls, 1)
        )
        data = dict(reply.provider_data)
        if reply.reasoning:
            data.setdefault("reasoning", reply.reasoning)
        finish = reply.finish or ("tool_calls" if calls else "stop")
        return AssistantMessage(reply.text, calls, finish, self.info.name, reply.usage, data)


class RecordingModel:
    """Passes everything of `inner` through, and appends each answer to the cassette at `path` (mode 0600).

    A request that is cancelled leaves no line.
    """

    def __init__(self, inner: Model, path: str | os.PathLike[str]) -> None:
        self.inner = inner
        self._path = Path(path)
        self._number = 0

    @property
    def info(self) -> ModelInfo:
        return self.inner.info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        self._number += 1
        number = self._number
        deltas: list[tuple[Literal["text", "reasoning"], str]] = []
        digest = request_digest(request)
        try:
            async with aclosing(self.inner.stream(request)) as stream:
                async for item in stream:
                    match item:
                        case TextDelta(text):
                            deltas.append(("text", text))
                        case ReasoningDelta(text):
                            deltas.append(("reasoning", text))
                        case Retrying(discard=True):
                            deltas.clear()
                        case AssistantMessage():
                            self._write(_recorded(item, tuple(deltas), number, digest))
                        case _:
                            pass
                    yield item
        except ModelError as error:
            self._write(Reply(error=_failure(error), deltas=tuple(deltas), number=number, request=digest))
            raise

    async def aclose(self) -> None:
        await self.inner.aclose()

    def _write(self, reply: Reply) -> None:
        try:
            new = not self._path.exists()
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with open(handle, "ab") as file:  # noqa: PTH123 - a descriptor, opened with its mode
                if new:
                    info = self.info
                    head = {"cassette": 1, "model": info.name, "window": info.window, "output_limit": info.output_limit}
                    file.write(msgspec.json.encode(head) + b"\n")
                file.write(msgspec.json.encode(reply) + b"\n")
        except OSError as error:
            message = (
                f"The cassette {self._path} cannot be written: {error.strerror}. Choose another file for --record."
            )
            raise InputError(message) from None


class _Head(Struct, frozen=True):
    cassette: int
    model: str = DEMO_INFO.name
    window: int = DEMO_INFO.window
    output_limit: int = DEMO_INFO.output_limit


def load_cassette(path: str | os.PathLike[str]) -> ScriptedModel:
    """The model that plays the cassette at `path`. Raises `InputError` with the line that cannot be read."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"The cassette {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InputError(f"The cassette {path} is not a text file in UTF-8.") from None
    info = DEMO_INFO
    replies: list[Reply] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            if not replies and line.lstrip().startswith('{"cassette"'):
                info = _described(msgspec.json.decode(line, type=_Head), path, number)
            else:
                reply = msgspec.json.decode(line, type=Reply)
                if reply.error is not None:
                    _error(reply.error)
                replies.append(reply)
        except (msgspec.DecodeError, LookupError) as error:
            raise InputError(f"The cassette {path} cannot be read at line {number}: {error}") from None
    replies.sort(key=lambda reply: reply.number)
    return ScriptedModel(replies, info)


def request_digest(request: ModelRequest) -> str:
    """The sha256 (hex) by which a cassette knows a request."""
    return hashlib.sha256(msgspec.json.encode(sound(msgspec.to_builtins(request)))).hexdigest()


def _described(head: _Head, path: str | os.PathLike[str], number: int) -> ModelInfo:
    if head.cassette != 1:
        message = f"The cassette {path} is of version {head.cassette} (line {number}); this program reads version 1."
        raise InputError(message)
    return ModelInfo(head.model, "scripted", head.window, head.output_limit, DEMO_INFO.price)


def _recorded(
    message: AssistantMessage, deltas: tuple[tuple[Literal["text", "reasoning"], str], ...], number: int, digest: str
) -> Reply:
    data = dict(message.provider_data)
    return Reply(
        text=message.text,
        reasoning=str(data.pop("reasoning", "")),
        calls=message.tool_calls,
        finish=message.finish,
        usage=message.usage,
        deltas=deltas,
        provider_data=data,
        number=number,
        request=digest,
    )


def _pieces(reply: Reply) -> list[tuple[Literal["text", "reasoning"], str]]:
    size = max(1, reply.piece)
    thought, text = reply.reasoning, reply.text
    return [
        *(("reasoning", thought[at : at + size]) for at in range(0, len(thought), size)),
        *(("text", text[at : at + size]) for at in range(0, len(text), size)),
    ]


def _failure(error: ModelError) -> Failure:
    limit, requested = (error.limit, error.requested) if isinstance(error, errors.ContextOverflow) else (None, None)
    return Failure(type(error).__name__, str(error), error.status, error.retry_after, limit, requested)


def _error(failure: Failure) -> ModelError:
    kind = getattr(errors, failure.kind, None)
    if not (isinstance(kind, type) and issubclass(kind, ModelError)):
        raise LookupError(f"no such error kind: {failure.kind}")
    if issubclass(kind, errors.ContextOverflow):
        return kind(failure.message, status=failure.status, limit=failure.limit, requested=failure.requested)
    return kind(failure.message, status=failure.status, retry_after=failure.retry_after)
