"""What went wrong at a provider, told from its status and its words: one table for every lane.

The text of a provider is foreign: it is shortened to one line and shown as data, never followed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from mycode.core.errors import (
    AuthError,
    BadRequest,
    BadResponse,
    ContextOverflow,
    ModelError,
    RateLimited,
    Unavailable,
    UnknownModel,
)


class Unreachable(Unavailable):
    """Nobody answers at that address: worth a few more tries, not ten minutes of them."""


_HIDDEN = "[the key]"
_SECRET_LENGTH = 8
_OVERFLOW = (
    "context_length_exceeded|exceed_context_size|maximum context length|context window|context length|context limit"
    "|context size|prompt is too long|prompt too long|input is too long|input length and `max_tokens` exceed"
    "|input token count|too many input tokens|reduce the length|request too large|request_too_large"
)
_NO_CREDIT = "insufficient_quota|exceeded your current quota|billing|credit balance|insufficient balance|out of credits"
_NO_KEY = "api key|api_key|invalid key|unauthorized|authentication"
_NO_MODEL = r"model[^.]{0,80}(?:not found|does not exist|not exist|unknown)|unknown model|invalid model|no such model"
_LIMITS = (
    r"(?P<requested>[\d,]{3,}) tokens? ?> ?(?P<limit>[\d,]{3,})",
    r"maximum context length (?:is|of) (?P<limit>[\d,]+).{0,80}?(?P<requested>[\d,]{3,}) tokens",
    r"request \((?P<requested>[\d,]+) tokens\) exceeds the available context size \((?P<limit>[\d,]+)",
    r"token count \(?(?P<requested>[\d,]+)\)? exceeds the maximum.{0,60}?\(?(?P<limit>[\d,]{3,})",
    r"limit:? (?P<limit>[\d,]+),? requested:? (?P<requested>[\d,]+)",
)
_WAIT = r"(?:try again|retry) (?:in|after) (?P<number>[\d.]+) ?(?P<unit>ms|milliseconds|s|seconds|m|minutes)?\b"


def fault(
    text: str, *, status: int | None = None, retry_after: float | None = None, model: str = "", where: str = ""
) -> ModelError:
    """The error for an answer that is none: `status` of HTTP, or None for an error told inside a stream.

    `retry_after` (seconds) is what the headers asked for; without it a wait named in the text counts.
    """
    words = one_line(text)
    low = words.lower()
    said = f": {words}{'' if words.endswith(('.', '!', '?', '…')) else '.'}" if words else "."
    if retry_after is None and (wait := re.search(_WAIT, low)):
        retry_after = float(wait["number"]) * {"m": 60.0, "ms": 0.001}.get(_unit(wait["unit"]), 1.0)
    if status in {None, 400, 413, 422, 429, 500} and re.search(_OVERFLOW, low) and not _waits(low, status):
        limit, requested = _numbers(low)
        return ContextOverflow(
            f"The conversation is longer than the model takes{said}", status=status, limit=limit, requested=requested
        )
    if status == 402 or (status in {None, 400, 403, 429} and re.search(_NO_CREDIT, low)):
        message = f"The provider says that the account has no credit left{said} Top it up, or choose another model."
        return AuthError(message, status=status)
    if status == 401 or (status == 400 and re.search(_NO_KEY, low)):
        return AuthError(f"The provider refuses the API key ({status}){said}", status=status)
    if status == 403:
        return AuthError(f"The provider forbids this request (403){said}", status=status)
    if status == 404 or (status == 400 and re.search(_NO_MODEL, low)):
        named = f"model {model}" if model else "such model"
        at = f" at {where}" if where else ""
        return UnknownModel(f"There is no {named}{at} ({status}){said}", status=status)
    if status == 413:
        return ContextOverflow(f"The request is too large for the provider (413){said}", status=status)
    if status == 429 or (status is None and re.search("rate.?limit|too many requests", low)):
        return RateLimited(f"The provider asks for a pause (429){said}", status=status, retry_after=retry_after)
    if status is not None and status < 500 and status not in {408, 409, 425}:
        return BadRequest(f"The provider rejects the request ({status}){said}", status=status)
    if re.search("overloaded|capacity|unavailable", low) or status in {503, 529}:
        code = f" ({status})" if status else ""
        return Unavailable(f"The provider is overloaded{code}{said}", status=status, retry_after=retry_after)
    code = f" ({status})" if status else ""
    return Unavailable(f"The provider had an error{code}{said}", status=status, retry_after=retry_after)


def fault_in_stream(error: Any, *, model: str = "") -> ModelError:
    """The error for an error object in the middle of a stream that had begun well."""
    text, code = error_text({"error": error})
    return fault(text, status=code, model=model)


def no_key(provider: str, variables: tuple[str, ...]) -> ModelError:
    return AuthError(f"There is no API key for {provider}: set {variables[0]}, or choose a model with --model.")


def cut() -> ModelError:
    return Unavailable("The answer was cut off before its end: the provider closed the stream without a finish reason.")


def empty() -> ModelError:
    return BadResponse("The model gave an empty answer. Say it differently, or choose another model.")


def silent(seconds: float, *, begun: bool) -> ModelError:
    when = "stopped in the middle of its answer and sent nothing" if begun else "sent nothing"
    return Unavailable(f"The provider {when} for {seconds:g} seconds.")


def error_text(body: Any) -> tuple[str, int | None]:
    """The words and the status of a provider's error object, in whichever of the usual shapes it came."""
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return str(body), None
    error = body.get("error", body.get("detail", body.get("message", body)))
    if isinstance(error, str):
        return error, None
    if not isinstance(error, dict):
        return msgspec.json.encode(error).decode(), None
    parts = [str(error.get("message") or msgspec.json.encode(error).decode())]
    for name in ("type", "code"):
        kind = error.get(name)
        if isinstance(kind, str) and kind not in {"", "None", "error"} and kind not in parts[0]:
            parts.append(f"({kind})")
    metadata = error.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("raw"), str):
        parts.append(metadata["raw"])
    code = error.get("code", error.get("status"))
    if isinstance(code, str) and code.isdigit():
        code = int(code)
    return " ".join(parts), code if isinstance(code, int) and 400 <= code < 600 else None


def body_text(body: str) -> str:
    """The words of an error answer's body: of its JSON, or of its HTML without the tags."""
    try:
        decoded = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return re.sub(r"(?s)<(script|style).*?</\1>|<[^>]*>", " ", body)
    return error_text(decoded)[0]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that the headers ask to wait, however they say it; None when they do not."""
    if milliseconds := headers.get("retry-after-ms"):
        seconds = _float(milliseconds)
        return None if seconds is None else seconds / 1000
    value = headers.get("retry-after", "")
    if not value or (seconds := _float(value)) is not None:
        return seconds if value else None
    from email.utils import parsedate_to_datetime
    from time import time

    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time())
    except ValueError:
        return None


def without_key(text: str, key: str | None) -> str:
    """The text with the key hidden; one as short as a stand-in ("x", "EMPTY") only where it is a word of its own."""
    if not key:
        return text
    if len(key) >= _SECRET_LENGTH:
        return text.replace(key, _HIDDEN)
    return re.sub(rf"(?<!\w){re.escape(key)}(?!\w)", _HIDDEN, text)


def one_line(text: str, limit: int = 400) -> str:
    line = " ".join(text.split()).rstrip()
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _float(text: str) -> float | None:
    try:
        return max(0.0, float(text))
    except ValueError:
        return None


def _unit(unit: str | None) -> str:
    return {"milliseconds": "ms", "ms": "ms", "m": "m", "minutes": "m"}.get(unit or "s", "s")


def _waits(low: str, status: int | None) -> bool:
    """Whether a 429 speaks of a rate that a pause mends, not of one request that is too large by itself."""
    return status == 429 and "too large" not in low and "context" not in low


def _numbers(low: str) -> tuple[int | None, int | None]:
    for pattern in _LIMITS:
        if found := re.search(pattern, low):
            return int(found["limit"].replace(",", "")), int(found["requested"].replace(",", ""))
    return None, None
