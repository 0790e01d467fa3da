"""Which model is meant, and by which lane it is reached.

A model's name is litellm's: `provider/model`. Endpoints that speak chat completions take the fast lane, everything
else goes through litellm. Opening a model costs milliseconds: nothing heavy is imported, nobody is called.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct, structs

from mycode.core.errors import ConfigError
from mycode.core.messages import Image
from mycode.core.models import Model, Price
from mycode.llm.catalog import describe, find, provider_of
from mycode.llm.providers import LOCAL_SERVERS, PROVIDERS, Found, LocalServer, Provider, endpoint
from mycode.llm.retry import RetryingModel
from mycode.llm.wire import Dialect

__all__ = ["Found", "ModelChoice", "Transport", "find_model", "full_name", "open_model", "read_image", "warm"]

Transport = Literal["auto", "direct", "litellm"]


class ModelChoice(Struct, frozen=True):
    """What was chosen: `name` is litellm's `provider/model`; None leaves a value to the tables and the environment.

    Timeouts and `retry_seconds` (the budget for all retries of one request together) are in seconds.
    """

    name: str
    api_base: str | None = None
    api_key: str | None = None
    transport: Transport = "auto"
    context_window: int | None = None
    output_limit: int | None = None
    effort: str | None = None
    price: Price | None = None
    first_byte_timeout: float = 300.0
    idle_timeout: float = 120.0
    retry_seconds: float = 600.0


def open_model(choice: ModelChoice, env: Mapping[str, str]) -> Model:
    """The model, with retries. `env` is the environment of the process: keys and base URLs are read from nowhere else.

    Raises `ConfigError` for a name that cannot be resolved. A missing key is told by the first request.
    """
    name = full_name(choice)
    prefix, _, model = name.partition("/")
    provider = PROVIDERS.get(prefix)
    info = describe(name, window=choice.context_window, output_limit=choice.output_limit)
    if choice.price is not None:
        info = structs.replace(info, price=choice.price)
    key = choice.api_key or (provider.key(env) if provider else None)
    base = choice.api_base or (provider.base_url(env) if provider else "")
    inner: Model
    if _direct(choice, provider, base, env):
        from mycode.llm.chat_completions import ChatCompletionsModel

        spoken = provider or Provider(prefix)
        inner = ChatCompletionsModel(
            info,
            base_url=endpoint(spoken, base),
            model=model,
            api_key=key,
            missing_key=() if key or choice.api_base or spoken.local else spoken.keys,
            dialect=Dialect(
                vision=info.vision,
                output_field=spoken.output_field if base == spoken.base else "max_tokens",
                usage_option=spoken.usage_option,
                reasoning_field=spoken.reasoning_field,
                json_schema=spoken.json_schema,
                tool_then_user=spoken.tool_then_user,
            ),
            load_image=read_image,
            effort=choice.effort,
            first_byte_timeout=choice.first_byte_timeout,
            idle_timeout=choice.idle_timeout,
        )
    else:
        from mycode.llm.litellm_model import LitellmModel

        inner = LitellmModel(
            info,
            api_base=(endpoint(provider, base) if provider and provider.lane == "direct" else base.rstrip("/")) or None,
            api_key=key,
            missing_key=provider.keys if provider and not (key or choice.api_base or provider.local) else (),
            load_image=read_image,
            effort=choice.effort,
            first_byte_timeout=choice.first_byte_timeout,
            idle_timeout=choice.idle_timeout,
        )
    return RetryingModel(inner, budget=choice.retry_seconds)


def warm(model: Model) -> None:
    """Imports litellm (seconds of work) if a request to this model would: for a thread that nobody waits for."""
    inner: object = model
    while (wrapped := getattr(inner, "inner", None)) is not None:
        inner = wrapped
    if type(inner).__name__ == "LitellmModel":
        from mycode.llm.litellm_model import warm as warm_litellm

        warm_litellm(model.info.name)


def full_name(choice: ModelChoice) -> str:
    """`provider/model` for what was written; a bare name is looked up (`gpt-5` is openai's)."""
    name = choice.name.strip()
    prefix, _, model = name.partition("/")
    if model and (prefix in PROVIDERS or find(name) is not None):
        return name
    if choice.api_base and (not model or choice.transport != "litellm"):
        return name if model and _is_provider(prefix) else f"openai/{name}"
    if model:
        return name
    provider = provider_of(name)
    if provider is None:
        raise ConfigError(
            f"It is not known whose model {name or 'this'} is. Name the provider too, for example "
            f"openai/{name or 'gpt-5'}, or the endpoint with --api-base."
        )
    return f"{provider}/{name}"


def find_model(
    env: Mapping[str, str], servers: tuple[LocalServer, ...] = LOCAL_SERVERS, seconds: float = 0.4
) -> Found | None:
    """A model for those who chose none: of the first provider whose key is set, else of a server found on loopback.

    Providers are asked for in the order of `providers.PROVIDERS`. The search on this machine takes at most `seconds`,
    and next to nothing where nobody listens.
    """
    for provider in PROVIDERS.values():
        if provider.default and provider.key(env):
            variable = next(name for name in provider.keys if env.get(name, "").strip())
            return Found(f"{provider.name}/{provider.default}", None, f"{variable} is set")
    from mycode.llm.local_servers import first_model

    return first_model(servers, seconds)


def read_image(image: Image) -> bytes | None:
    """The bytes of an image as it was looked at, or None when the file is gone or holds something else by now."""
    import hashlib

    try:
        # What was a picture may be a pipe or a link to anything by now.
        handle = os.open(image.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            data = file.read(image.size + 1)
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == image.sha256 else None


def _direct(choice: ModelChoice, provider: Provider | None, base: str, env: Mapping[str, str]) -> bool:
    if choice.transport == "litellm":
        return False
    if choice.transport == "direct":
        if not base:
            raise ConfigError(
                f"No base URL is known for {choice.name}: name it with --api-base, or set model.transport to auto."
            )
        return True
    speaks = provider is not None and provider.lane == "direct"
    entry = None if choice.api_base else find(choice.name)
    responses_only = entry is not None and entry.mode == "responses"
    return speaks and bool(base) and not responses_only and not _proxied(base, env)


def _is_provider(prefix: str) -> bool:
    """Whether litellm knows a provider of that name, as far as can be told without it."""
    return prefix in PROVIDERS or prefix in {"azure", "azure_ai", "bedrock", "vertex_ai", "cohere", "litellm_proxy"}


def _proxied(base: str, env: Mapping[str, str]) -> bool:
    """Whether a proxy stands between us and the endpoint: litellm's client knows how to go through it."""
    parts = urlsplit(base if "://" in base else f"http://{base}")
    host = (parts.hostname or "").lower()

    def value(name: str) -> str:
        return env.get(name.lower(), "") or env.get(name, "")

    if not (value(f"{parts.scheme.upper()}_PROXY") or value("ALL_PROXY")):
        return False
    if host in {"localhost", "127.0.0.1", "::1"}:
        return False
    exempt = [one.strip().lower().lstrip("*.") for one in value("NO_PROXY").split(",") if one.strip()]
    return "" not in exempt and not any(host == one or host.endswith(f".{one}") for one in exempt)
