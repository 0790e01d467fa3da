"""The fast lane: chat completions spoken directly, without litellm and at a thousandth of its start-up cost."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import msgspec

from mycode.core.errors import BadRequest, ContextOverflow, ModelError
from mycode.core.models import ModelInfo, ModelItem, ModelRequest
from mycode.llm import faults
from mycode.llm.answer import Events, Fold, decode_event, known_ids
from mycode.llm.http_stream import Answered, HttpStream
from mycode.llm.wire import Dialect, ImageLoader, request_body, without_images, without_thinking

_AFTER_FINISH, _AFTER_DONE = 10.0, 0.25


class ChatCompletionsModel:
    """A model behind `{base_url}/chat/completions`, named `model` there. One try a request: retries are `retry`'s.

    `missing_key` names the variables that should hold a key which is not there: every request says so.
    """

    def __init__(
        self,
        info: ModelInfo,
        *,
        base_url: str,
        model: str,
        api_key: str | None = None,
        missing_key: tuple[str, ...] = (),
        dialect: Dialect | None = None,
        load_image: ImageLoader | None = None,
        effort: str | None = None,
        first_byte_timeout: float = 300.0,
        idle_timeout: float = 120.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.info = info
        self._model = model
        self._dialect = dialect or Dialect(vision=info.vision)
        self._load_image = load_image
        self._effort = effort
        self._missing_key = missing_key
        self._api_key = api_key
        self._http = HttpStream(base_url, first_byte_timeout=first_byte_timeout, idle_timeout=idle_timeout)
        self._path = "/" + base_url.partition("://")[2].partition("/")[2].strip("/") + "/chat/completions"
        self._path = self._path.replace("//", "/")
        self._headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "user-agent": "mycode",
            **({"authorization": f"Bearer {api_key}"} if api_key else {}),
            **(headers or {}),
        }

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        if self._missing_key:
            raise faults.no_key(self.info.provider, self._missing_key)
        body = request_body(
            request,
            model=self._model,
            full_name=self.info.name,
            dialect=self._dialect,
            load_image=self._load_image,
            effort=self._effort,
        )
        while True:
            shown = False
            try:
                async with aclosing(self._answer(body, request)) as answer:
                    async for item in answer:
                        shown = True
                        yield item
                return
            except (BadRequest, ContextOverflow) as error:
                lighter = None if shown else lighter_body(body, error)
                if lighter is None:
                    raise
                body = lighter

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _answer(self, body: dict[str, Any], request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        fold = Fold(model=self.info.name, price=self.info.price, known_ids=known_ids(request), new_id=new_call_id)
        events = Events()
        done = False

        def grace() -> float | None:
            # After the finish reason the usage is still to come, after [DONE] nothing but the end of the body.
            return _AFTER_DONE if done else _AFTER_FINISH if fold.finished else None

        content = msgspec.json.encode(body)
        async with aclosing(self._http.post(self._path, self._headers, content, grace)) as post:
            async for piece in post:
                if isinstance(piece, Answered):
                    if piece.status != 200:
                        raise await self._refused(piece, post)
                    continue
                for data in events.feed(piece):
                    done = done or data == b"[DONE]"
                    for delta in () if done else fold.add(decode_event(data)):
                        yield delta
        for data in events.close():
            done = done or data == b"[DONE]"
            for delta in () if done else fold.add(decode_event(data)):
                yield delta
        if not fold.whole(done=done):
            raise faults.cut()
        yield fold.message()

    async def _refused(self, head: Answered, post: AsyncGenerator[Answered | bytes, None]) -> ModelError:
        if 300 <= head.status < 400:
            to = head.headers.get("location", "elsewhere")
            return BadRequest(f"{self._http.where} sends requests on to {to}: set that as the base URL.")
        text = faults.without_key(faults.body_text(await self._http.error_body(post)), self._api_key)
        return faults.fault(
            text,
            status=head.status,
            retry_after=faults.retry_after(head.headers),
            model=self._model,
            where=self._http.where,
        )


def lighter_body(body: dict[str, Any], error: ModelError) -> dict[str, Any] | None:
    """The request without what the provider just rejected (thinking blocks, images), or None to give up."""
    words = str(error).lower()
    if "thinking" in words or "reasoning" in words or "signature" in words:
        return without_thinking(body)
    if "image" in words or error.status == 413:
        return without_images(body)
    return None


def new_call_id() -> str:
    return "call_" + os.urandom(9).hex()
