"""One HTTP GET to an address of the network that was chosen before: no redirects, no cookies, no proxies, bounded."""

from __future__ import annotations

import asyncio
import socket
import ssl

from msgspec import Struct

from mycode import __version__
from mycode.core.errors import ToolError

_CONNECT_SECONDS = 15.0
_SILENCE_SECONDS = 20.0


class Answer(Struct, frozen=True):
    """Status, headers (names in lower case, the last one counts) and the body up to a size; `more` says it was cut."""

    status: int
    headers: dict[str, str]
    body: bytes
    more: bool = False


async def look_up(host: str, port: int) -> tuple[str, ...]:
    """The addresses that a host has now. Raises ToolError when it has none."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        message = f"There is no host {host}."
        raise ToolError(message) from error
    return tuple(dict.fromkeys(str(place[4][0]) for place in found))


async def get(
    places: tuple[str, ...], port: int, *, tls: bool, name: str, host: str, target: str, largest: int
) -> Answer:
    """Asks the first of `places` that listens; certificates are checked for `name`. Raises ToolError with a reason."""
    reader, writer = await _connected(places, port, name, _context() if tls else None)
    try:
        headers = {
            "Host": host,
            "User-Agent": f"mycode/{__version__}",
            "Accept": "text/html, text/plain, application/json, */*;q=0.5",
            "Accept-Encoding": "identity",
            "Connection": "close",
        }
        return await _asked(reader, writer, target, headers, largest)
    except (TimeoutError, OSError, ssl.SSLError) as error:
        message = f"{name} stopped answering."
        raise ToolError(message) from error
    finally:
        writer.transport.abort()


async def _connected(
    places: tuple[str, ...], port: int, name: str, context: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reason = "nobody listens there"
    for place in places:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await asyncio.open_connection(
                    place, port, ssl=context, server_hostname=name if context else None, limit=2**18
                )
        except ssl.SSLCertVerificationError as error:
            message = f"The certificate of {name} cannot be trusted: {error.verify_message}."
            raise ToolError(message) from error
        except TimeoutError:
            reason = "it does not answer"
        except OSError as error:
            reason = error.strerror or type(error).__name__
    message = f"{name} cannot be reached: {reason}."
    raise ToolError(message)


async def _asked(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str, asking: dict[str, str], largest: int
) -> Answer:
    import h11

    connection = h11.Connection(our_role=h11.CLIENT, max_incomplete_event_size=64_000)
    request = h11.Request(method="GET", target=target, headers=list(asking.items()))
    writer.write((connection.send(request) or b"") + (connection.send(h11.EndOfMessage()) or b""))
    status, headers, body = 0, dict[str, str](), bytearray()
    try:
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                async with asyncio.timeout(_SILENCE_SECONDS):
                    connection.receive_data(await reader.read(2**16))
            elif isinstance(event, h11.Response):
                status = event.status_code
                headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in event.headers}
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) >= largest:
                    return Answer(status, headers, bytes(body[:largest]), more=True)
            elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                return Answer(status, headers, bytes(body))
    except h11.RemoteProtocolError as error:
        message = "The answer is no HTTP that can be read."
        raise ToolError(message) from error


def _context() -> ssl.SSLContext:
    """The system's roots, or those of certifi where the system has none."""
    context = ssl.create_default_context()
    if not context.get_ca_certs() and not ssl.get_default_verify_paths().capath:
        import certifi

        context.load_verify_locations(certifi.where())
    return context
