"""Finds a model server on this machine."""

from __future__ import annotations

import socket
import time
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import h11
import msgspec

from mycode.llm.providers import Found, LocalServer


def first_model(servers: tuple[LocalServer, ...], seconds: float) -> Found | None:
    """The first model of the first of `servers` that lists any; all are asked at once, within `seconds` together."""
    answers: SimpleQueue[tuple[LocalServer, list[str]]] = SimpleQueue()
    end = time.monotonic() + seconds

    def ask(server: LocalServer) -> None:
        answers.put((server, list_models(f"http://127.0.0.1:{server.port}/v1", max(0.05, end - time.monotonic()))))

    for server in servers:
        Thread(target=ask, args=(server,), daemon=True).start()
    found: dict[str, list[str]] = {}
    for _ in servers:
        try:
            server, models = answers.get(timeout=max(0.0, end - time.monotonic()))
        except Empty:
            break
        found[server.title] = models
    for server in servers:
        for model in found.get(server.title, ()):
            if "embed" not in model.lower():
                base = f"http://127.0.0.1:{server.port}/v1"
                return Found(f"{server.provider}/{model}", base, f"{server.title} runs on this machine")
    return None


def list_models(base: str, seconds: float) -> list[str]:
    """The models that the server at `http://HOST:PORT/v1` lists; none where there is no such server."""
    authority, _, path = base.partition("://")[2].partition("/")
    host, _, port = authority.partition(":")
    try:
        with socket.create_connection((host, int(port or 80)), timeout=seconds) as connection:
            return _names(_get(connection, authority, f"/{path}/models", time.monotonic() + seconds))
    except (OSError, ValueError, h11.ProtocolError):
        return []


def _get(connection: socket.socket, host: str, path: str, end: float) -> bytes:
    http = h11.Connection(h11.CLIENT)
    request = h11.Request(method="GET", target=path, headers=[("host", host), ("connection", "close")])
    connection.sendall((http.send(request) or b"") + (http.send(h11.EndOfMessage()) or b""))
    body = b""
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            connection.settimeout(max(0.01, end - time.monotonic()))
            http.receive_data(connection.recv(65_536))
        elif isinstance(event, h11.Response) and event.status_code != 200:
            return b""
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
            return body


def _names(body: bytes) -> list[str]:
    decoded: Any = msgspec.json.decode(body or b"{}")
    rows = decoded.get("data") if isinstance(decoded, dict) else None
    if not isinstance(rows, list):
        return []
    return [row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]
