"""How the chunks of an answer become one whole message, for every lane.

Pure. The bytes of a stream become events (`Events`), events become chunks (`decode_event`), chunks are folded (`Fold`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from mycode.core.errors import BadResponse
from mycode.core.events import ReasoningDelta, TextDelta
from mycode.core.messages import AssistantMessage, FinishReason, ToolCall
from mycode.core.models import ModelRequest, Price
from mycode.core.usage import Usage
from mycode.llm import faults
from mycode.llm.wire import sound

_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "eos": "stop",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refusal",
    "refusal": "refusal",
    "safety": "refusal",
}


class _Slot:
    """A tool call while its pieces arrive."""

    def __init__(self, key: object) -> None:
        self.key = key
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.fields: dict[str, Any] = {}


class Fold:
    """Folds the chunks of one answer into one message.

    `add` takes a decoded chunk and gives back what can be shown at once; unknown shapes are passed over. Unless
    `whole` says so the answer is cut, and `message` must not be called.
    """

    def __init__(
        self,
        *,
        model: str,
        price: Price | None = None,
        known_ids: frozenset[str] = frozenset(),
        new_id: Callable[[], str],
    ) -> None:
        self._model = model
        self._price = price
        self._known = set(known_ids)
        self._new_id = new_id
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._reasoning: list[str] = []
        self._details: list[Any] = []
        self._blocks: list[dict[str, Any]] = []
        self._slots: list[_Slot] = []
        self._finish: FinishReason | None = None
        self._usage: Usage | None = None

    @property
    def finished(self) -> bool:
        """Whether the provider named a finish reason."""
        return self._finish is not None

    def whole(self, *, done: bool) -> bool:
        """Whether the answer came to its end: with a finish reason, or with `[DONE]` and no call left half-written."""
        return self.finished or (done and all(_is_object("".join(slot.arguments)) for slot in self._slots))

    def add(self, chunk: Any) -> list[TextDelta | ReasoningDelta]:
        """Raises a `ModelError` for an error told in the middle of the stream."""
        if not isinstance(chunk, dict):
            return []
        if error := chunk.get("error"):
            raise faults.fault_in_stream(error, model=self._model)
        if isinstance(usage := chunk.get("usage"), dict):
            self._usage = usage_of(usage, self._price) or self._usage
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choice := choices[0], dict):
            return []
        if isinstance(error := choice.get("error"), dict):
            raise faults.fault_in_stream(error, model=self._model)
        shown = self._delta(delta) if isinstance(delta := choice.get("delta"), dict) else []
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            self.finish(reason)
        return shown

    def forget_usage(self) -> None:
        """The usage that came is not the provider's."""
        self._usage = None

    def finish(self, reason: str) -> None:
        if reason == "error":
            raise faults.fault_in_stream({"message": "it ended its answer with an error"}, model=self._model)
        self._finish = _FINISH.get(reason.lower(), "stop")

    def message(self) -> AssistantMessage:
        """The whole answer. Raises `BadResponse` if there is nothing in it.

        With finish `length` the last call may be incomplete: its arguments are kept as they came, so that whoever
        validates them can tell "cut off by the output limit" from "malformed".
        """
        text = "".join(self._text)
        calls = tuple(self._calls())
        finish = self._finish or "stop"
        if refused := "".join(self._refusal):
            text, finish = text + refused, "refusal"
        if finish in {"stop", "tool_calls"}:
            if not calls and not text.strip():
                raise faults.empty()
            finish = "tool_calls" if calls else "stop"
        return AssistantMessage(text, calls, finish, self._model, self._usage, self._data(calls))

    def _delta(self, delta: dict[str, Any]) -> list[TextDelta | ReasoningDelta]:
        shown: list[TextDelta | ReasoningDelta] = []
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        content = delta.get("content")
        if isinstance(content, list):  # typed parts, as Mistral sends them
            thought = _parts(content, "thinking") or thought
            content = _parts(content, "text")
        if isinstance(thought, str) and thought:
            self._reasoning.append(thought)
            shown.append(ReasoningDelta(thought))
        if isinstance(content, str) and content:
            self._text.append(content)
            shown.append(TextDelta(content))
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            self._refusal.append(refusal)
            shown.append(TextDelta(refusal))
        if isinstance(details := delta.get("reasoning_details"), list):
            self._details += details
        if isinstance(blocks := delta.get("thinking_blocks"), list):
            for block in blocks:
                self._block(block)
        if isinstance(calls := delta.get("tool_calls"), list):
            for call in calls:
                if isinstance(call, dict):
                    self._piece(call)
        return shown

    def _piece(self, call: dict[str, Any]) -> None:
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        slot = self._slot(call.get("index"), call.get("id"), function.get("name"))
        if isinstance(call_id := call.get("id"), str) and call_id:
            slot.id = call_id
        if isinstance(name := function.get("name"), str) and name and not slot.name:
            slot.name = name
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = msgspec.json.encode(arguments).decode()
        if isinstance(arguments, str):
            slot.arguments.append(arguments)
        if isinstance(fields := call.get("provider_specific_fields") or call.get("extra_content"), dict):
            slot.fields |= fields

    def _slot(self, index: object, call_id: object, name: object) -> _Slot:
        last = self._slots[-1] if self._slots else None
        for slot in self._slots if index is not None else [last] if last else []:
            # Some servers give every call the index 0, or none: a new id with a name begins a new call.
            fresh = bool(call_id and slot.id and call_id != slot.id and name)
            if (index is None or slot.key == index) and not fresh:
                return slot
        slot = _Slot(index)
        self._slots.append(slot)
        return slot

    def _block(self, block: Any) -> None:
        if not isinstance(block, dict):
            return
        last = self._blocks[-1] if self._blocks else None
        if block.get("type") == "thinking" and last and last.get("type") == "thinking" and not last.get("signature"):
            last["thinking"] = (last.get("thinking") or "") + (block.get("thinking") or "")
            if block.get("signature"):
                last["signature"] = block["signature"]
        else:
            self._blocks.append({name: value for name, value in block.items() if value is not None})

    def _calls(self) -> list[ToolCall]:
        calls = []
        for slot in self._slots:
            if not slot.name and not slot.id and not any(slot.arguments):
                continue
            if not slot.id or slot.id in self._known:
                slot.id = self._new_id()
            self._known.add(slot.id)
            calls.append(ToolCall(slot.id, slot.name, "".join(slot.arguments)))
        return calls

    def _data(self, calls: tuple[ToolCall, ...]) -> dict[str, Any]:
        data: dict[str, Any] = {}
        if self._reasoning:
            data["reasoning"] = "".join(self._reasoning)
        if self._details:
            data["reasoning_details"] = self._details
        if self._blocks:
            data["thinking_blocks"] = self._blocks
        ids = {call.id for call in calls}
        if fields := {slot.id: slot.fields for slot in self._slots if slot.fields and slot.id in ids}:
            data["call_fields"] = fields
        return data


def _parts(content: list[Any], kind: str) -> str:
    """The text of all parts of a kind; a thinking part holds a list of text parts itself."""
    pieces = []
    for part in content:
        if isinstance(part, dict) and part.get("type") == kind:
            inside = part.get(kind)
            pieces.append(_parts(inside, "text") if isinstance(inside, list) else str(inside or ""))
    return "".join(pieces)


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(arguments), dict)
    except msgspec.DecodeError:
        return False


def known_ids(request: ModelRequest) -> frozenset[str]:
    """The call ids that a new answer must not use again."""
    return frozenset(
        call.id for one in request.messages if isinstance(one, AssistantMessage) for call in one.tool_calls
    )


def usage_of(usage: dict[str, Any], price: Price | None) -> Usage | None:
    """The provider's count in our words; None when it says nothing. A cost that the provider names itself wins."""

    def number(source: Any, *names: str) -> int:
        values = (source.get(name) for name in names) if isinstance(source, dict) else ()
        return next((int(value) for value in values if isinstance(value, int | float) and value), 0)

    read = number(usage.get("prompt_tokens_details"), "cached_tokens") or number(
        usage, "cache_read_input_tokens", "prompt_cache_hit_tokens", "cached_tokens"
    )
    written = number(usage, "cache_creation_input_tokens") or number(
        usage.get("prompt_tokens_details"), "cache_creation_tokens", "cache_write_tokens"
    )
    counted = Usage(
        number(usage, "prompt_tokens", "input_tokens"),
        number(usage, "completion_tokens", "output_tokens"),
        read,
        written,
        number(usage.get("completion_tokens_details"), "reasoning_tokens"),
    )
    if not counted.input_tokens and not counted.output_tokens:
        return None
    told = usage.get("cost")
    cost = float(told) if isinstance(told, int | float) and not isinstance(told, bool) else cost_of(counted, price)
    return msgspec.structs.replace(counted, cost_usd=cost)


def cost_of(usage: Usage, price: Price | None) -> float | None:
    """US dollars; None when the price is unknown."""
    if price is None:
        return None
    plain = max(0, usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens)
    read = price.input if price.cache_read is None else price.cache_read
    write = price.input if price.cache_write is None else price.cache_write
    return (
        plain * price.input
        + usage.cached_tokens * read
        + usage.cache_write_tokens * write
        + usage.output_tokens * price.output
    )


def decode_event(data: bytes) -> Any:
    """The JSON of one event. Raises `BadResponse` if it is none."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        pass
    import json

    try:
        # Some servers cut a sign outside the basic plane in two; only the standard library reads such halves.
        return sound(json.loads(data))
    except ValueError:
        raise BadResponse("The provider sent an event that cannot be read.") from None


class Events:
    """Server-sent events out of bytes in whatever pieces they come: the data of each whole event."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        out = []
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                out.append(b"\n".join(self._data))
                self._data = []
        return out

    def close(self) -> list[bytes]:
        """What is left when the stream ends without its last empty line."""
        out = self.feed(b"\n\n")
        self._rest = b""
        return out
