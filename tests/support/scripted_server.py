"""A model server on loopback that plays a script over real HTTP: the model double for tests at the wire.

It speaks the chat-completions protocol (`POST .../chat/completions`, streamed or whole), Anthropic's messages
protocol (`POST .../messages`) and `GET .../models`; faults are those of `tests.support.script.Fault`.

In an async test:

    async with ScriptedServer([call("read_file", {"path": "a.py"}), say("Done.")]) as server:
        ...                                   # api_base=server.url, which is http://127.0.0.1:PORT/v1
        assert server.requests[0].body["model"] == "some-model"

For a program in another process (`mycode -p hi --model openai/scripted --api-base URL`, any key), in a sync test or a
benchmark, `with serving(script) as server:` runs the same in a thread. By hand, until Ctrl-C:

    python -m tests.support.scripted_server FILE [--port N] [--repeat]

FILE is JSON Lines of `Answer`s; without FILE every request is answered with "hi". Requests beyond the end of a script
get a 400, which no client retries. `server.requests` keeps what was asked, headers in lower case.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from mycode.core.usage import Usage
from tests.support.script import Answer, Script, answers, say

_FINISH_ANTHROPIC = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}
_OVER = Answer(status=400, error="the script is over: no answer is left for this request")


@dataclass
class Seen:
    """A request as the server read it; `closed` is set when the client left before the answer was whole."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    connection: int
    closed: bool = False


@dataclass
class ScriptedServer:
    """Plays `script` to whoever asks, from entering the context to leaving it."""

    script: Script
    port: int = 0
    models: tuple[str, ...] = ("scripted",)
    repeat: bool = False
    requests: list[Seen] = field(default_factory=list)
    connections: int = 0
    left_early: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client closed its connection in the middle of an answer."""
    answering: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the first byte of a stream, or the silence of a hang, has begun."""

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    @property
    def asked(self) -> list[Seen]:
        """The requests for answers, without those for the list of models."""
        return [seen for seen in self.requests if seen.method == "POST"]

    async def __aenter__(self) -> Self:
        self._left = None if callable(self.script) else list(self.script)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            await self._serve(reader, writer, self.connections)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int) -> None:
        while (seen := await _read_request(reader, connection)) is not None:
            self.requests.append(seen)
            if seen.method == "GET":
                _respond(writer, 200, {"object": "list", "data": [{"id": name} for name in self.models]})
                await writer.drain()
                continue
            answer = self._next(seen.body)
            if not await self._answer(answer, seen, reader, writer):
                return

    def _next(self, body: dict[str, Any]) -> Answer:
        if callable(self.script):
            return self.script(body)
        assert self._left is not None
        if not self._left and self.repeat:
            self._left = list(self.script)
        return self._left.pop(0) if self._left else _OVER

    async def _answer(
        self, answer: Answer, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Whether the connection may be used again."""
        anthropic = seen.path.endswith("/messages")
        if answer.delay:
            self.answering.set()
            if await self._gone(reader, answer.delay, seen):
                return False
        if answer.fault == "drop":
            _reset(writer)
            return False
        if answer.fault == "hang":
            self.answering.set()
            await self._gone(reader, None, seen)
            return False
        if answer.status != 200:
            body = answer.body if answer.body is not None else _error_body(answer, anthropic)
            _respond(writer, answer.status, body, answer.headers)
            await writer.drain()
            return True
        if not seen.body.get("stream"):
            _respond(writer, 200, _whole_anthropic(answer, seen) if anthropic else _whole(answer, seen))
            await writer.drain()
            return True
        return await self._stream(answer, seen, reader, writer, anthropic)

    async def _stream(
        self, answer: Answer, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, anthropic: bool
    ) -> bool:
        _head(writer, 200, {"content-type": "text/event-stream", "transfer-encoding": "chunked", **answer.headers})
        if answer.raw is not None:
            events = [answer.raw]
        else:
            events = (_anthropic_events if anthropic else _events)(answer, seen)
        body = [event for event in events if event]
        half = len(body) // 2
        for index, event in enumerate(body):
            if index == half and answer.fault == "drop_midway":
                await writer.drain()
                await asyncio.sleep(0.02)  # what was said before must be on its way before the reset overtakes it
                _reset(writer)
                return False
            if index == half and answer.fault == "hang_midway":
                await writer.drain()
                self.answering.set()
                await self._gone(reader, None, seen)
                return False
            data = event.encode()
            writer.write(b"%x\r\n%s\r\n" % (len(data), data))
            if answer.pause:
                await writer.drain()
                self.answering.set()
                if await self._gone(reader, answer.pause, seen):
                    return False
            elif index % 50 == 49:
                await writer.drain()
                if reader.at_eof():
                    self._left_early(seen)
                    return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        self.answering.set()
        return True

    async def _gone(self, reader: asyncio.StreamReader, seconds: float | None, seen: Seen) -> bool:
        """Waits, and tells whether the client left meanwhile."""
        try:
            async with asyncio.timeout(seconds):
                with contextlib.suppress(ConnectionError):
                    while await reader.read(1024):
                        pass
        except TimeoutError:
            return False
        self._left_early(seen)
        return True

    def _left_early(self, seen: Seen) -> None:
        seen.closed = True
        self.left_early.set()


@contextlib.contextmanager
def serving(script: Script, **more: Any) -> Iterator[ScriptedServer]:
    """A server in a thread of its own, for programs in other processes."""
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    started: list[ScriptedServer] = []

    async def run() -> None:
        async with ScriptedServer(script, **more) as server:
            started.append(server)
            ready.set()
            await stop.wait()

    def main() -> None:
        try:
            loop.run_until_complete(run())
        finally:
            ready.set()
            loop.close()

    thread = threading.Thread(target=main, name="scripted-server", daemon=True)
    thread.start()
    ready.wait(10)
    try:
        yield started[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)


async def _read_request(reader: asyncio.StreamReader, connection: int) -> Seen | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    data = b""
    if "content-length" in headers:
        data = await reader.readexactly(int(headers["content-length"]))
    elif headers.get("transfer-encoding") == "chunked":
        while size := int((await reader.readline()).strip(), 16):
            data += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    return Seen(method, path.partition("?")[0], headers, json.loads(data) if data else {}, connection)


def _head(writer: asyncio.StreamWriter, status: int, headers: dict[str, str]) -> None:
    lines = [f"HTTP/1.1 {status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))


def _respond(
    writer: asyncio.StreamWriter, status: int, body: dict[str, Any] | str, headers: dict[str, str] | None = None
) -> None:
    data = (body if isinstance(body, str) else json.dumps(body)).encode()
    _head(writer, status, {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})})
    writer.write(data)


def _reset(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _error_body(answer: Answer, anthropic: bool) -> dict[str, Any]:
    kind = answer.error_type or {
        400: "invalid_request_error",
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        529: "overloaded_error",
    }.get(answer.status, "api_error")
    if anthropic:
        return {"type": "error", "error": {"type": kind, "message": answer.error}}
    code = "context_length_exceeded" if "context" in answer.error else None
    return {"error": {"message": answer.error, "type": kind, "code": code}}


def _usage(answer: Answer, seen: Seen) -> Usage:
    if answer.usage is not None:
        return answer.usage
    said = len(answer.text) + len(answer.reasoning) + sum(len(one.raw) + len(one.name) for one in answer.calls)
    return Usage(max(1, len(json.dumps(seen.body)) // 4), max(1, said // 4))


def _finish(answer: Answer) -> str:
    return answer.finish or ("tool_calls" if answer.calls else "stop")


def _split(text: str, size: int) -> list[str]:
    size = max(1, size)
    return [text[at : at + size] for at in range(0, len(text), size)]


# ------------------------------------------------------------------------------------------------ chat completions


def _wire_usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _whole(answer: Answer, seen: Seen) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": one.id or f"call_{index}",
                "type": "function",
                "function": {"name": one.name, "arguments": one.raw},
            }
            for index, one in enumerate(answer.calls)
        ]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": seen.body.get("model", ""),
        "choices": [{"index": 0, "message": message, "finish_reason": _finish(answer)}],
        "usage": _wire_usage(_usage(answer, seen)),
    }


def _events(answer: Answer, seen: Seen) -> list[str]:
    def chunk(delta: dict[str, Any] | None, finish: str | None = None, **more: Any) -> str:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        head = {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": seen.body.get("model", ""),
        }
        return "data: " + json.dumps({**head, "choices": choices, **more}) + "\n\n"

    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"reasoning_content": piece}) for piece in _split(answer.reasoning, answer.piece)]
    events += [chunk({"content": piece}) for piece in _split(answer.text, answer.piece)]
    events += [chunk({"refusal": piece}) for piece in _split(answer.refusal, answer.piece)]
    for index, one in enumerate(answer.calls):
        opening = {"id": one.id or f"call_{len(seen.body.get('messages', []))}_{index}", "type": "function"}
        events.append(
            chunk({"tool_calls": [{"index": index, **opening, "function": {"name": one.name, "arguments": ""}}]})
        )
        events += [
            chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
            for piece in _split(one.raw, answer.piece)
        ]
    events = _broken(
        answer,
        events,
        'data: {"choices": [{"delta": {"content": "x\n\n',
        "data: "
        + json.dumps({"error": {"message": answer.error or "overloaded", "type": "overloaded_error", "code": 529}})
        + "\n\n",
    )
    if answer.fault == "noise":
        noise = [
            ": keep-alive\n\n",
            "event: ping\ndata: {}\n\n",
            chunk(None),
            'data: {"object": "metadata", "x": [1]}\n\n',
        ]
        events = [piece for event in events for piece in (*noise, event)]
    if answer.fault.startswith("cut"):
        return events[: len(events) // 2 + 1] if answer.fault == "cut_midway" else events
    events.append(chunk({}, _finish(answer)))
    if answer.fault == "repeat":
        events.append(chunk({}, _finish(answer), usage=_wire_usage(_usage(answer, seen))))
    if not answer.no_usage:
        events.append(chunk(None, usage=_wire_usage(_usage(answer, seen))))
    if answer.fault != "no_done":
        events.append("data: [DONE]\n\n")
    return events


def _broken(answer: Answer, events: list[str], malformed: str, error: str) -> list[str]:
    half = len(events) // 2 + 1
    if answer.fault == "malformed":
        return [*events[:half], malformed, *events[half:]]
    if answer.fault == "error_event":
        return [*events[:half], error]
    return events


# -------------------------------------------------------------------------------------------------------- anthropic


def _anthropic_usage(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "output_tokens": usage.output_tokens,
    }


def _arguments(raw: str) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return {}


def _whole_anthropic(answer: Answer, seen: Seen) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if answer.reasoning:
        content.append({"type": "thinking", "thinking": answer.reasoning, "signature": "signed"})
    if answer.text:
        content.append({"type": "text", "text": answer.text})
    content += [
        {"type": "tool_use", "id": one.id or f"toolu_{index}", "name": one.name, "input": _arguments(one.raw)}
        for index, one in enumerate(answer.calls)
    ]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": seen.body.get("model", ""),
        "content": content,
        "stop_reason": _FINISH_ANTHROPIC[_finish(answer)],
        "stop_sequence": None,
        "usage": _anthropic_usage(_usage(answer, seen)),
    }


def _anthropic_events(answer: Answer, seen: Seen) -> list[str]:
    def event(kind: str, **fields: Any) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"

    def block(index: int, start: dict[str, Any], deltas: list[dict[str, Any]]) -> list[str]:
        return [
            event("content_block_start", index=index, content_block=start),
            *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
            event("content_block_stop", index=index),
        ]

    usage = _anthropic_usage(_usage(answer, seen))
    message = {
        **_whole_anthropic(Answer(), seen),
        "content": [],
        "stop_reason": None,
        "usage": {**usage, "output_tokens": 1},
    }
    events: list[str] = []
    index = 0
    if answer.reasoning:
        thinking = [{"type": "thinking_delta", "thinking": piece} for piece in _split(answer.reasoning, answer.piece)]
        signed = {"type": "signature_delta", "signature": "signed"}
        events += block(index, {"type": "thinking", "thinking": "", "signature": ""}, [*thinking, signed])
        index += 1
    if answer.text:
        pieces = [{"type": "text_delta", "text": piece} for piece in _split(answer.text, answer.piece)]
        events += block(index, {"type": "text", "text": ""}, pieces)
        index += 1
    for one in answer.calls:
        start = {"type": "tool_use", "id": one.id or f"toolu_{index}", "name": one.name, "input": {}}
        parts = [{"type": "input_json_delta", "partial_json": piece} for piece in _split(one.raw, answer.piece)]
        events += block(index, start, parts)
        index += 1
    overloaded = {"type": "overloaded_error", "message": answer.error or "Overloaded"}
    events = _broken(
        answer, events, 'event: content_block_delta\ndata: {"type": "content_bl\n\n', event("error", error=overloaded)
    )
    if answer.fault == "noise":
        events = [piece for one in events for piece in (": keep-alive\n\n", event("ping"), one)]
    events = [event("message_start", message=message), event("ping"), *events]
    if answer.fault.startswith("cut"):
        return events[: len(events) // 2 + 1] if answer.fault == "cut_midway" else events
    stop = {"stop_reason": _FINISH_ANTHROPIC[_finish(answer)], "stop_sequence": None}
    events.append(event("message_delta", delta=stop, usage=usage))
    if answer.fault != "no_done":
        events.append(event("message_stop"))
    return events


def main() -> None:
    parser = argparse.ArgumentParser(description="A scripted model server on loopback.")
    parser.add_argument("file", nargs="?", help="a script: JSON Lines of answers (default: always say hi)")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--repeat", action="store_true", help="start again at the end of the script")
    options = parser.parse_args()
    script: Script | Callable[[dict[str, Any]], Answer] = answers(options.file) if options.file else lambda _: say("hi")

    async def run() -> None:
        async with ScriptedServer(script, port=options.port, repeat=options.repeat) as server:
            print(server.url, flush=True)
            await asyncio.Event().wait()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run())


if __name__ == "__main__":
    main()
