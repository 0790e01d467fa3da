"""How an entry becomes a row of the store and a row becomes an entry again.

The body is JSON with its `kind`; sha256 is over exactly those bytes. A kind that this version does not know comes back
as `Unknown` and is written as it came; fields that it does not know are ignored.
"""

import hashlib
from typing import Literal

import msgspec

from mycode.core.entries import Body, Checkpoint, Entry, Grant, Note, Purge, Purged, Unknown
from mycode.core.messages import AssistantMessage, ToolResult, UserMessage
from mycode.core.summaries import Drop, MaskEpoch, Pin, SummaryRecord, Undo

Sort = Literal[0, 1, 2]
BOOKKEEPING: Sort = 0
MESSAGE: Sort = 1
OVERLAY: Sort = 2

_Known = (
    UserMessage
    | AssistantMessage
    | ToolResult
    | SummaryRecord
    | MaskEpoch
    | Undo
    | Drop
    | Pin
    | Grant
    | Checkpoint
    | Note
    | Purged
    | Purge
)
_decoder: msgspec.json.Decoder[Body] = msgspec.json.Decoder(_Known)
_encoder = msgspec.json.Encoder()


def encode_body(body: Body) -> bytes:
    """The body as the JSON bytes that are stored and hashed; an `Unknown` gives back what it was read from."""
    if isinstance(body, Unknown):
        return body.raw.encode("utf-8", "replace")
    try:
        return _encoder.encode(body)
    except (UnicodeEncodeError, OverflowError):
        import json

        # A file name may hold half a surrogate, a provider a huge number: escapes keep both.
        return json.dumps(msgspec.to_builtins(body), separators=(",", ":")).encode()


def decode_body(raw: bytes) -> Body:
    """The body that was stored; whatever cannot be understood is an `Unknown`, never an error."""
    try:
        return _decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        pass
    import json

    try:
        body: Body = msgspec.convert(json.loads(raw), _Known)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return Unknown(raw.decode("utf-8", "replace"))
    return body


def brief_of(body: Body) -> str | None:
    """What must still be known of a summary once a newer one covers it: its place, not its words. None for the rest."""
    if not isinstance(body, SummaryRecord):
        return None
    return _encoder.encode(body.place()).decode()


def sha256_of(raw: bytes) -> str:
    """The hash that an entry carries, in hex."""
    return hashlib.sha256(raw).hexdigest()


def sealed(entry: Entry) -> Entry:
    """The entry as it will be read back: with the hash of its body."""
    return msgspec.structs.replace(entry, sha256=sha256_of(encode_body(entry.body)))


def role_of(body: Body) -> str:
    """One word for the body: `user`, `assistant`, `tool`, `summary`, `turn_ended` (a note by its name), ..."""
    if isinstance(body, Note):
        return body.name
    if isinstance(body, Unknown):
        return "unknown"
    if isinstance(body, Purged):
        return body.role
    return str(type(body).__struct_config__.tag)


def sort_of(body: Body) -> Sort:
    """Whether the body was said, may change the view, or is only kept.

    Resuming reads all overlays, so what comes with every turn (grants, checkpoints, totals) is not among them.
    """
    match body:
        case UserMessage() | AssistantMessage() | ToolResult() | Purged(role="user" | "assistant" | "tool"):
            return MESSAGE
        case Grant() | Checkpoint() | Unknown() | Note(name="turn_ended"):
            return BOOKKEEPING
        case _:
            return OVERLAY


def text_of(body: Body) -> str:
    """What a person would look for in it: the words said, the calls made, a summary's prose, a pin. Byte-exact.

    Of what was purged it is the sentence that says so.
    """
    match body:
        case UserMessage(text=text) | ToolResult(text=text) | Pin(text=text) | Purged(text=text) | Purge(text=text):
            return text
        case AssistantMessage(text=text, tool_calls=calls):
            made = "\n".join(f"{call.name} {call.arguments}" for call in calls)
            return f"{text}\n\n{made}" if text and made else text or made
        case SummaryRecord(narrative=narrative, key_points=points):
            return "\n".join((narrative, *(f"- {point}" for point in points)))
        case _:
            return ""
