"""One HTTP/1.1 POST at a time whose answer is read as it comes, over connections that are kept for the next one."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

import h11

from mycode.core.errors import BadRequest, ModelError, Unavailable
from mycode.llm import faults

_CONNECT_SECONDS = 20.0
_ERROR_BODY_BYTES = 64_000


class Answered(NamedTuple):
    """The head of an answer: status and headers (names in lower case)."""

    status: int
    headers: dict[str, str]


class HttpStream:
    """Posts to one origin. Owns its idle connections; `aclose` gives them back, and it may be used again afterwards."""

    def __init__(self, url: str, *, first_byte_timeout: float, idle_timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise BadRequest(f"The base URL {url} is not an http:// or https:// address.")
        self._tls = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port or (443 if self._tls else 80)
        self._authority = parts.netloc.rpartition("@")[2]
        self._first_byte_timeout = first_byte_timeout
        self._idle_timeout = idle_timeout
        self._context: ssl.SSLContext | None = None  # reading the roots takes a while: once is enough
        self._idle: list[_Connection] = []

    @property
    def where(self) -> str:
        return self._authority

    async def post(
        self, path: str, headers: Mapping[str, str], body: bytes, grace: Callable[[], float | None] = lambda: None
    ) -> AsyncGenerator[Answered | bytes, None]:
        """The head of the answer, then its body in pieces as they come.

        `grace` says, once everything that matters was read, how many more seconds to wait for the proper end of the
        body; a fault from then on ends the answer quietly. Raises `Unreachable` when nobody answers, `Unavailable` for
        silence or a broken connection. Closing the generator early closes the connection.
        """
        connection, kept = await self._connection()
        whole = False
        try:
            try:
                head = await connection.send(path, self._authority, headers, body, self._first_byte_timeout)
            except _Stale:
                # A kept connection was closed by the server meanwhile; nothing was answered yet, so ask on a new one.
                connection.abort()
                if not kept:
                    raise self._no_answer() from None
                connection = await self._open()
                try:
                    head = await connection.send(path, self._authority, headers, body, self._first_byte_timeout)
                except _Stale:
                    raise self._no_answer() from None
            yield head
            begun = False
            while True:
                left = grace()
                patience = self._idle_timeout if begun else self._first_byte_timeout
                try:
                    piece = await connection.read(patience if left is None else left, begun=begun)
                except ModelError:
                    if left is None:
                        raise
                    return
                if piece is None:
                    break
                begun = True
                yield piece
            whole = True
        finally:
            if whole and connection.reusable():
                self._idle.append(connection)
            else:
                connection.abort()

    async def error_body(self, stream: AsyncGenerator[Answered | bytes, None]) -> str:
        """The beginning of the body of an error answer."""
        data = b""
        try:
            async for piece in stream:
                if isinstance(piece, bytes) and len(data) < _ERROR_BODY_BYTES:
                    data += piece
        except ModelError:
            pass  # an error answer that breaks off is an error answer all the same
        return data.decode("utf-8", "replace")

    async def aclose(self) -> None:
        for connection in self._idle:
            connection.abort()
        self._idle.clear()

    def _no_answer(self) -> ModelError:
        return faults.Unreachable(f"{self.where} closed the connection without an answer.")

    async def _connection(self) -> tuple[_Connection, bool]:
        """A connection, and whether it is one that was kept."""
        while self._idle:
            connection = self._idle.pop()
            if connection.alive():
                return connection, True
            connection.abort()
        return await self._open(), False

    async def _open(self) -> _Connection:
        if self._tls and self._context is None:
            self._context = _tls_context()
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._context, limit=2**18)
        except ssl.SSLCertVerificationError as error:
            raise BadRequest(
                f"The certificate of {self.where} cannot be trusted: {error.verify_message}. "
                "Set SSL_CERT_FILE to a file with the right roots if it is your own."
            ) from None
        except TimeoutError:
            raise faults.Unreachable(f"{self.where} does not answer.") from None
        except OSError as error:
            reason = error.strerror or str(error)
            if isinstance(error, ConnectionRefusedError) or "Connect call failed" in str(error):
                reason = "nobody listens there. Start the server, or name another with --api-base"
            raise faults.Unreachable(f"{self.where} cannot be reached: {reason}.") from None
        return _Connection(reader, writer)


class _Stale(Exception):
    """The connection ended before the first byte of an answer."""


class _Connection:
    """A connection with its protocol state."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._http = h11.Connection(h11.CLIENT)

    async def send(
        self, path: str, authority: str, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> Answered:
        lines = [("host", authority), *headers.items(), ("content-length", str(len(body)))]
        try:
            request = h11.Request(method="POST", target=path, headers=lines)
        except (h11.LocalProtocolError, UnicodeEncodeError):
            raise BadRequest("The API key or the base URL holds a sign that may not stand there.") from None
        data = (self._http.send(request) or b"") + (self._http.send(h11.Data(body)) or b"")
        self._http.send(h11.EndOfMessage())
        try:
            self._writer.write(data)
            async with asyncio.timeout(timeout):
                await self._writer.drain()
        except ConnectionError:
            raise _Stale from None
        except TimeoutError:
            raise faults.silent(timeout, begun=False) from None
        while True:
            event = await self._event(timeout, begun=False, stale=True)
            if isinstance(event, h11.Response):
                names = {name.decode("ascii").lower(): value.decode("latin-1") for name, value in event.headers}
                return Answered(event.status_code, names)
            if not isinstance(event, h11.InformationalResponse):
                raise _Stale

    async def read(self, timeout: float, *, begun: bool) -> bytes | None:
        """The next piece of the body; None at its proper end."""
        event = await self._event(timeout, begun=begun, stale=False)
        if isinstance(event, h11.Data):
            return bytes(event.data)
        if isinstance(event, h11.EndOfMessage):
            return None
        raise faults.cut()

    def alive(self) -> bool:
        return not (self._writer.is_closing() or self._reader.at_eof()) and self._loop is asyncio.get_running_loop()

    def reusable(self) -> bool:
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return self.alive()

    def abort(self) -> None:
        if not self._loop.is_closed():
            self._writer.transport.abort()

    async def _event(self, timeout: float, *, begun: bool, stale: bool) -> object:
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                async with asyncio.timeout(timeout):
                    data = await self._reader.read(65_536)
                if not data and stale:
                    raise _Stale
                self._http.receive_data(data)
        except TimeoutError:
            raise faults.silent(timeout, begun=begun) from None
        except ConnectionError:
            if stale:
                raise _Stale from None
            raise faults.cut() from None
        except (h11.RemoteProtocolError, ssl.SSLError) as error:
            if begun or "incomplete" in str(error) or "peer closed" in str(error):
                raise faults.cut() from None
            raise Unavailable(f"The answer is not HTTP that can be read: {error}.") from None
        return event


def _tls_context() -> ssl.SSLContext:
    """The system's roots, or those of certifi where the system has none."""
    context = ssl.create_default_context()
    if not context.get_ca_certs() and not ssl.get_default_verify_paths().capath:
        import certifi

        context.load_verify_locations(certifi.where())
    return context
