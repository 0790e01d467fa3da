"""The lanes under test: each opens a model in front of a scripted server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from mycode.core.messages import UserMessage
from mycode.core.models import Model, ModelItem, ModelRequest, Price, ToolSpec
from mycode.llm.catalog import describe
from mycode.llm.chat_completions import ChatCompletionsModel
from mycode.llm.litellm_model import LitellmModel
from tests.support.scripted_server import ScriptedServer

Opener = Callable[[ScriptedServer], Model]
PRICE = Price(1e-6, 2e-6, cache_read=1e-7, cache_write=3e-6)


def ask(text: str = "hi", *messages: Any, **more: Any) -> ModelRequest:
    tool = ToolSpec("read_file", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}})
    return ModelRequest("You are a test.", messages or (UserMessage(text),), (tool,), **more)


async def collect(model: Model, request: ModelRequest | None = None) -> list[ModelItem]:
    return [item async for item in model.stream(request or ask())]


@pytest.fixture
async def opened(lane: str) -> AsyncIterator[Opener]:
    models: list[Model] = []

    def opened(server: ScriptedServer, *, first: float = 20.0, idle: float = 20.0) -> Model:
        provider = "anthropic" if lane == "litellm to anthropic" else "openai"
        info = describe(f"{provider}/scripted", window=10_000)
        info = type(info)(info.name, info.provider, 10_000, 1_000, PRICE)
        model: Model
        if lane == "fast lane":
            model = ChatCompletionsModel(
                info, base_url=server.url, model="scripted", first_byte_timeout=first, idle_timeout=idle
            )
        else:
            base = server.root if provider == "anthropic" else server.url
            model = LitellmModel(info, api_base=base, api_key="key", first_byte_timeout=first, idle_timeout=idle)
        models.append(model)
        return model

    yield opened
    for model in models:
        await model.aclose()
