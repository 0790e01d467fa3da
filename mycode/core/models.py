"""What a model is to the rest of the house: a request goes in, deltas and one whole message come out."""

from collections.abc import AsyncGenerator
from typing import Any, Protocol

from msgspec import Struct

from mycode.core.events import ReasoningDelta, Retrying, TextDelta
from mycode.core.messages import AssistantMessage, ViewMessage


class Price(Struct, frozen=True):
    """US dollars per token; a cache price of None means the provider's table does not name one."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class ModelInfo(Struct, frozen=True):
    """What is known of a model before it is asked: its context window and output limit in tokens, and its price.

    `window_known` is False when the window is a cautious guess (shown with a sign in panels).
    """

    name: str
    provider: str
    window: int
    output_limit: int
    price: Price | None = None
    window_known: bool = True
    vision: bool = False
    reasoning: bool = False


class ToolSpec(Struct, frozen=True):
    """A tool as the model reads it: `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, Any]


class ModelRequest(Struct, frozen=True):
    """One request: everything the model will see, and nothing else.

    `json_schema` asks for an answer of that shape where the provider can promise it; tools are then left out.
    """

    system: str
    messages: tuple[ViewMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_output_tokens: int | None = None
    json_schema: dict[str, Any] | None = None


ModelItem = TextDelta | ReasoningDelta | Retrying | AssistantMessage


class Model(Protocol):
    """Something that answers requests: litellm, the fast lane, or a script."""

    @property
    def info(self) -> ModelInfo: ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        """Deltas for the eye, then exactly one whole `AssistantMessage` as the last item.

        Raises a `ModelError` when no whole message could be had: nothing of a cut stream is ever returned as whole.
        Consume it inside `contextlib.aclosing`: closing it closes the connection.
        """
        ...

    async def aclose(self) -> None:
        """Gives back connections; the model may be used again afterwards."""
        ...


class TokenCounter(Protocol):
    """Counts tokens of text; `exact` is False while an estimate stands in for the tokenizer."""

    @property
    def exact(self) -> bool: ...

    def count(self, text: str) -> int: ...
