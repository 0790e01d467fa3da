"""Every provider that litellm knows: the only door to litellm, which is imported when the first request is made.

What it is not trusted with: retries (`retry` has them), timeouts between chunks (it ignores them), the finish reason
of a stream that broke off (it invents `stop`), the usage of one that named none (it invents that too), base URLs and
keys (handed over on every call), and log lines.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import sys
import warnings
from collections.abc import AsyncGenerator
from typing import Any

from mycode.core.errors import BadRequest, BadResponse, ContextOverflow, ModelError
from mycode.core.models import ModelInfo, ModelItem, ModelRequest
from mycode.llm import faults
from mycode.llm.answer import Fold, known_ids
from mycode.llm.chat_completions import lighter_body, new_call_id
from mycode.llm.wire import Dialect, ImageLoader, request_body

_CACHE_MARKED = re.compile(r"(^|/)(anthropic|claude)|claude")
_DATA_IN_IDS = {"gemini", "vertex_ai", "vertex_ai_beta"}
_CLOSE_SECONDS = 2.0


def warm(name: str = "") -> None:
    """Imports litellm (seconds of work): for a background thread, so that the first request need not wait for it.

    With a model's name also what its provider needs, by a request to a port of this machine where nobody listens.
    """
    litellm = _litellm()
    if not name:
        return
    tool = {"type": "function", "function": {"name": "none", "parameters": {"type": "object", "properties": {}}}}
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        try:
            litellm.completion(
                model=name,
                messages=[{"role": "user", "content": "."}],
                tools=[tool],
                stream=True,
                api_base=f"http://127.0.0.1:{nobody.getsockname()[1]}",
                api_key="none",
                timeout=2,
                num_retries=0,
                max_retries=0,
                _skip_mcp_handler=True,
            )
        except Exception:  # noqa: BLE001 - it must fail; what it loaded on the way is the point
            return


class LitellmModel:
    """A model by its litellm name. One try a request: retries are `retry`'s.

    `missing_key` names the variables that should hold a key which is not there: every request says so.
    """

    def __init__(
        self,
        info: ModelInfo,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        missing_key: tuple[str, ...] = (),
        load_image: ImageLoader | None = None,
        effort: str | None = None,
        first_byte_timeout: float = 300.0,
        idle_timeout: float = 120.0,
    ) -> None:
        self.info = info
        self._api_base = api_base
        self._api_key = api_key
        self._missing_key = missing_key
        self._load_image = load_image
        self._effort = effort
        self._first_byte_timeout = first_byte_timeout
        self._idle_timeout = idle_timeout
        marked = info.provider == "anthropic" or bool(_CACHE_MARKED.search(info.name))
        self._dialect = Dialect(
            vision=info.vision, cache_markers=marked, signed=True, keep_ids=info.provider in _DATA_IN_IDS
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        if self._missing_key:
            raise faults.no_key(self.info.provider, self._missing_key)
        body = request_body(
            request,
            model=self.info.name,
            full_name=self.info.name,
            dialect=self._dialect,
            load_image=self._load_image,
            effort=self._effort,
        )
        while True:
            fold = Fold(model=self.info.name, price=self.info.price, known_ids=known_ids(request), new_id=new_call_id)
            shown = False
            wrapper: Any = None
            try:
                wrapper = await self._ask(body)
                while (chunk := await self._next(wrapper, begun=shown)) is not None:
                    for delta in fold.add(_plain(chunk)):
                        shown = True
                        yield delta
                if not _really_finished(wrapper, fold):
                    raise faults.cut()
                if not _really_counted(wrapper):
                    fold.forget_usage()
                yield fold.message()
                return
            except (BadRequest, ContextOverflow) as error:
                lighter = None if shown else lighter_body(body, error)
                if lighter is None:
                    raise
                body = lighter
            finally:
                await _close(wrapper)

    async def aclose(self) -> None:
        """Litellm keeps its connections to itself; there is nothing of ours to give back."""

    async def _ask(self, body: dict[str, Any]) -> Any:
        litellm = _litellm() if _ready() else await asyncio.to_thread(_litellm)
        try:
            async with asyncio.timeout(self._first_byte_timeout):
                return await litellm.acompletion(
                    **body,
                    api_base=self._api_base,
                    api_key=self._api_key or ("none" if self._api_base and not self._missing_key else None),
                    timeout=self._first_byte_timeout + self._idle_timeout,
                    num_retries=0,
                    max_retries=0,
                    drop_params=True,
                    _skip_mcp_handler=True,
                )
        except TimeoutError:
            raise faults.silent(self._first_byte_timeout, begun=False) from None
        except Exception as error:  # noqa: BLE001 - whatever it raises is translated in one place
            raise translated(error, self.info.name, self._api_key) from None

    async def _next(self, wrapper: Any, *, begun: bool) -> Any:
        """The next chunk, or None at the end."""
        seconds = self._idle_timeout if begun else self._first_byte_timeout
        try:
            async with asyncio.timeout(seconds):
                return await anext(wrapper)
        except StopAsyncIteration:
            return None
        except TimeoutError:
            raise faults.silent(seconds, begun=begun) from None
        except Exception as error:  # noqa: BLE001 - as above
            raise translated(error, self.info.name, self._api_key) from None


def translated(error: Exception, model: str, key: str | None = None) -> ModelError:
    """The error of our family for one of litellm's, by class, status and text; `key` is never shown."""
    if isinstance(error, ModelError):
        return error
    origin = getattr(error, "original_exception", None) or error
    kind = type(origin).__name__
    text = faults.without_key(_words(origin), key)
    status = _status(error)
    low = text.lower()
    if re.search("payload is not completed|transferencodingerror|peer closed|incomplete chunked|premature", low):
        return faults.cut()
    if re.search("unterminated string|expecting value|jsondecodeerror|invalid control character|extra data:", low):
        return BadResponse("The provider sent an event that cannot be read.")
    if "ContextWindow" in kind:
        found = faults.fault(text, status=400, model=model)
        return found if isinstance(found, ContextOverflow) else ContextOverflow(str(found), status=status)
    if "llm provider not provided" in low:
        return BadRequest(f"litellm knows no provider for {model}. Write the name as provider/model.", status=status)
    if "connection error" in low or "cannot connect" in low or "connect call failed" in low or "ConnectError" in kind:
        return faults.Unreachable(f"The provider of {model} cannot be reached: {faults.one_line(text)}")
    if "Timeout" in kind and status in {None, 408}:
        return faults.Unreachable(f"The provider of {model} did not answer in time.")
    if "contentpolicy" in kind.lower():
        return BadRequest(f"The provider's filter refuses this request: {faults.one_line(text)}", status=status)
    if "overloaded_error" in low:
        status = 529
    return faults.fault(text, status=status, retry_after=_wait(error), model=model)


def _words(error: Any) -> str:
    """What the provider said, without the class names that litellm lays around it."""
    text = str(getattr(error, "message", "") or error)
    text = re.sub(r"^(?:litellm\.\w+: |\w+Error: |\w+(?:Exception|Error)(?: -)? ?)+", "", text)
    if raw := re.search(r"""b(?P<sign>['"])(?P<inside>.*)(?P=sign)""", text, re.DOTALL):
        # The body as Python shows bytes; the quotes it escaped are the only difference that matters here.
        text = raw["inside"].replace("\\'", "'")
    start, end = text.find("{"), text.rfind("}")
    inside = text[start : end + 1] if 0 <= start < end else text
    return faults.body_text(inside) if inside.startswith("{") or "<html" in inside.lower() else text


def _status(error: Any) -> int | None:
    """The status that came over the wire: litellm's own error may name another (400 for Anthropic's 413)."""
    links = [one for link in _chain(error) for one in (link, getattr(link, "response", None))]
    codes = (getattr(one, "status_code", None) for one in reversed(links))
    return next((code for code in codes if isinstance(code, int) and 400 <= code < 600), None)


def _wait(error: Any) -> float | None:
    """What the provider's headers asked to wait."""
    for link in _chain(error):
        for holder in (getattr(link, "response", None), link):
            headers = getattr(holder, "headers", None) or getattr(holder, "litellm_response_headers", None)
            if headers is not None and (
                wait := faults.retry_after({str(name).lower(): str(value) for name, value in dict(headers).items()})
            ):
                return wait
    return None


def _chain(error: Any) -> list[Any]:
    """The error and its causes, from litellm's own to what the HTTP client said."""
    links: list[Any] = []
    while error is not None and len(links) < 8:
        links.append(error)
        error = getattr(error, "original_exception", None) or error.__cause__ or error.__context__
    return links


def _litellm() -> Any:
    """litellm, made quiet before its import: no download of its price table, no `.env` file read, no log lines."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    os.environ.setdefault("LITELLM_LOG", "CRITICAL")
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # Warnings of what lies below it would land on the person's screen, and are not theirs to mend.
    for package in ("litellm", "pydantic", "openai", "aiohttp", "httpx"):
        warnings.filterwarnings("ignore", module=rf"{package}(\.|$)")
    import litellm as module

    litellm: Any = module
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.set_verbose = False
    # It takes an answer that says the same a hundred times for a broken one: a ruler, a table, a list of zeros.
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = sys.maxsize
    return litellm


def _ready() -> bool:
    """Whether litellm is wholly imported: an import that still runs in a thread would hold up the event loop."""
    return getattr(sys.modules.get("litellm"), "suppress_debug_info", False) is True


def _plain(chunk: Any) -> dict[str, Any]:
    """The parts of litellm's chunk that are folded, as the chunk of the wire."""
    plain: dict[str, Any] = {}
    if usage := getattr(chunk, "usage", None):
        plain["usage"] = usage.model_dump()
    if choices := getattr(chunk, "choices", None):
        choice = choices[0]
        delta = choice.delta
        plain["choices"] = [
            {
                "finish_reason": choice.finish_reason,
                "delta": {
                    "content": delta.content,
                    "reasoning_content": getattr(delta, "reasoning_content", None),
                    "refusal": getattr(delta, "refusal", None),
                    "thinking_blocks": getattr(delta, "thinking_blocks", None),
                    "tool_calls": [_plain_call(call) for call in delta.tool_calls or ()],
                },
            }
        ]
    return plain


def _plain_call(call: Any) -> dict[str, Any]:
    function = call.function
    return {
        "index": call.index,
        "id": call.id,
        "function": {"name": function.name, "arguments": function.arguments},
        "provider_specific_fields": getattr(call, "provider_specific_fields", None),
    }


def _really_finished(wrapper: Any, fold: Fold) -> bool:
    """Whether the provider itself named a finish reason: at the end of any stream litellm puts one of its own."""
    if not hasattr(wrapper, "received_finish_reason"):
        return fold.finished
    return bool(wrapper.received_finish_reason or wrapper.intermittent_finish_reason)


def _really_counted(wrapper: Any) -> bool:
    """Whether the provider itself sent usage: where it sent none, litellm counts on its own."""
    chunks = getattr(wrapper, "chunks", None)
    return chunks is None or any(getattr(chunk, "usage", None) for chunk in chunks)


async def _close(wrapper: Any) -> None:
    """Closes the connection: leaving litellm's iterator alone would keep it open."""
    close = getattr(wrapper, "aclose", None)
    if close is None:
        return
    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await close()
    except Exception:  # noqa: BLE001 - the answer is over; how the connection dies matters to nobody
        return
