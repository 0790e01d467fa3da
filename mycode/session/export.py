"""A session as a file: JSON Lines that can be imported again, or pages for people. Secrets are masked on the way."""

from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct

from mycode import __version__
from mycode.core.entries import Entry
from mycode.core.visible import in_json
from mycode.session.catalogue import SessionInfo
from mycode.session.entries import encode_body, sha256_of
from mycode.session.store import Store

Form = Literal["jsonl", "md", "html"]
FORMAT = 1

# Names, links and hashes are not prose: masking them would only break what they tie together.
NOT_PROSE = frozenset(
    {"kind", "id", "call_id", "sha256", "message_ids", "parent_id", "name", "model", "finish", "media_type", "strategy"}
)


class SessionLine(Struct, frozen=True, tag_field="type", tag="session"):
    """The first line of a JSON Lines export."""

    format: int
    id: str
    created: float
    cwd: str = ""
    title: str = ""
    model: str = ""
    program: str = ""


class EntryLine(Struct, frozen=True, tag_field="type", tag="entry", omit_defaults=True):
    """One entry; `body` is exactly what was stored, or `raw` holds it where it is no JSON on one line."""

    seq: int
    id: str
    at: float
    sha256: str
    tokens: int = 0
    body: msgspec.Raw = msgspec.Raw(b"null")
    raw: str | None = None


class TextLine(Struct, frozen=True, tag_field="type", tag="text"):
    """A whole text that is shown clipped in the conversation."""

    handle: str
    text: str


def export_text(store: Store, session_id: str, form: Form, *, redact: Callable[[str], str]) -> str:
    """The whole session as one text; `redact` masks secrets in it."""
    return "".join(export(store, session_id, form, redact=redact))


def export(store: Store, session_id: str, form: Form, *, redact: Callable[[str], str]) -> Iterator[str]:
    """The same in pieces, read from the log as they are taken."""
    from mycode.session import pages

    info, log = store.info(session_id), store.log(session_id)
    match form:
        case "jsonl":
            return _jsonl(store, info, redact)
        case "md":
            return pages.markdown(info, log.read(1), redact)
        case "html":
            return pages.html(info, log.read(1), redact)


def mapped(value: Any, change: Callable[[str], str]) -> Any:
    """The JSON value with `change` applied to all prose in it."""
    match value:
        case str():
            return change(value)
        case list():
            return [mapped(item, change) for item in value]
        case dict():
            return {key: item if key in NOT_PROSE else mapped(item, change) for key, item in value.items()}
        case _:
            return value


def _jsonl(store: Store, info: SessionInfo, redact: Callable[[str], str]) -> Iterator[str]:
    head = SessionLine(FORMAT, info.id, info.created, info.cwd, redact(info.title), info.model, f"mycode {__version__}")
    yield _line(head)
    for entry in store.log(info.id).read(1):
        yield _line(_entry_line(entry, redact))
    for number, text in store.texts(info.id):
        yield _line(TextLine(f"t{number}", redact(text)))


def _entry_line(entry: Entry, redact: Callable[[str], str]) -> EntryLine:
    raw = encode_body(entry.body)
    line = EntryLine(entry.seq, entry.id, entry.at, entry.sha256, entry.tokens)
    try:
        value = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        text = redact(raw.decode())
        return msgspec.structs.replace(line, raw=text, sha256=sha256_of(text.encode()))
    masked = mapped(value, redact)
    if masked != value:
        raw = msgspec.json.encode(masked)
        line = msgspec.structs.replace(line, sha256=sha256_of(raw))
    if b"\n" in raw or in_json(raw.decode()) != raw.decode():
        # What would be written otherwise than it was hashed is held as text, whose escapes give the same bytes back.
        return msgspec.structs.replace(line, raw=raw.decode())
    return msgspec.structs.replace(line, body=msgspec.Raw(raw))


def _line(value: Struct) -> str:
    try:
        return in_json(msgspec.json.encode(value).decode()) + "\n"
    except UnicodeEncodeError:
        import json

        # Half a surrogate in a kept text: escapes hold it.
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")) + "\n"
