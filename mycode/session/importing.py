"""A session from a file: our own JSON Lines, or a list of chat messages as other programs write it."""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping

import msgspec

from mycode.context.transcripts import Item, read_items
from mycode.core.entries import Body, Entry, Note
from mycode.core.errors import InputError, SessionError
from mycode.core.messages import UserMessage
from mycode.session.entries import MESSAGE, decode_body, encode_body, sha256_of, sort_of, text_of
from mycode.session.export import FORMAT, EntryLine, SessionLine, TextLine, mapped
from mycode.session.store import Store, clean, new_id
from mycode.session.titles import title_of

_WHAT = "It should be JSON Lines from `mycode sessions export`, or a JSON list of chat messages."


def import_text(
    store: Store,
    text: str,
    *,
    mapping: Mapping[str, str] | None = None,
    cwd: str = "",
    count: Callable[[str], int] = lambda text: (len(text) + 3) // 4,
) -> str:
    """Keeps the session that the text holds and returns its id: the old id if it is free, else a new one.

    `mapping` rewrites paths that begin with a key; `count` counts tokens where the file names none. Raises `InputError`
    with the line at fault, and then nothing is kept.
    """
    change = _mapper(mapping or {})
    lines = clean(text).lstrip("\ufeff").strip()
    if not lines:
        message = f"The file is empty. {_WHAT}"
        raise InputError(message)
    if _is_ours(lines):
        head, entries, texts = _our_lines(lines, change)
    else:
        bodies = [body for item in read_items(_chat(lines)) for body in _bodies(item)]
        head, entries, texts = SessionLine(FORMAT, "", time.time(), cwd), _numbered(bodies, change, count), []
    if not any(entry.message for entry in entries):
        message = f"The file holds no messages. {_WHAT}"
        raise InputError(message)
    title = head.title or next((_title(entry.body) for entry in entries if isinstance(entry.body, UserMessage)), "")
    session_id = store.create(
        cwd=change(head.cwd), model=head.model, session_id=_free_id(store, head.id), title=title, created=head.created
    )
    try:
        store.append(session_id, *entries)
        for line in texts:
            store.keep_text(session_id, change(line.text), number=int(line.handle[1:]))
    except BaseException:
        store.delete(session_id, said_here=False)
        raise
    store.release(session_id)
    return session_id


def _is_ours(lines: str) -> bool:
    first = lines.partition("\n")[0]
    try:
        return isinstance(value := msgspec.json.decode(first), dict) and value.get("type") == "session"
    except msgspec.DecodeError:
        return False


def _our_lines(lines: str, change: Callable[[str], str]) -> tuple[SessionLine, list[Entry], list[TextLine]]:
    decoder = msgspec.json.Decoder(SessionLine | EntryLine | TextLine)
    head: SessionLine | None = None
    entries: list[Entry] = []
    texts: list[TextLine] = []
    for number, line in enumerate(lines.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value: SessionLine | EntryLine | TextLine | None = decoder.decode(line)
        except msgspec.DecodeError as error:
            value = _half_surrogate(line)
            if value is None:
                message = f"Line {number} cannot be understood: {error}. {_WHAT}"
                raise InputError(message) from error
        match value:
            case SessionLine():
                head = value
                if value.format > FORMAT:
                    message = f"The file comes from a newer mycode (format {value.format}). Install a newer mycode."
                    raise InputError(message)
            case EntryLine():
                if value.seq != len(entries) + 1:
                    message = f"Line {number} holds entry {value.seq} where {len(entries) + 1} should be."
                    raise InputError(message)
                entries.append(_entry(value, number, change))
            case TextLine():
                if not re.fullmatch(r"t[1-9]\d{0,8}", value.handle):
                    message = f"Line {number} names a text {value.handle!r}; handles look like t7."
                    raise InputError(message)
                texts.append(value)
    assert head is not None
    return head, entries, texts


def _half_surrogate(line: str) -> TextLine | None:
    """A text with half a surrogate in it, which only the slower decoder takes."""
    try:
        return msgspec.convert(json.loads(line), TextLine)
    except (msgspec.ValidationError, ValueError):
        return None


def _entry(line: EntryLine, number: int, change: Callable[[str], str]) -> Entry:
    raw = bytes(line.body) if line.raw is None else line.raw.encode()
    if sha256_of(raw) != line.sha256:
        message = f"Line {number} was altered after it was exported: its hash differs."
        raise InputError(message)
    body = decode_body(raw)
    return Entry(line.seq, line.id, line.at, _changed(body, change), line.tokens)


def _changed(body: Body, change: Callable[[str], str]) -> Body:
    raw = encode_body(body)
    try:
        value = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return body
    changed = mapped(value, change)
    return body if changed == value else decode_body(msgspec.json.encode(changed))


def _mapper(mapping: Mapping[str, str]) -> Callable[[str], str]:
    """Rewrites paths: only whole names, the longest first, each place once."""
    if not mapping:
        return lambda text: text
    olds = sorted((old.rstrip("/") or "/" for old in mapping), key=len, reverse=True)
    news = {old.rstrip("/") or "/": new.rstrip("/") or "/" for old, new in mapping.items()}
    pattern = re.compile(r"(?<![\w.-])(?:" + "|".join(map(re.escape, olds)) + r")(?![\w-]|\.\w)")
    return lambda text: pattern.sub(lambda found: news[found[0]], text)


def _chat(lines: str) -> object:
    """The messages of a JSON list, of an object that has one under `messages`, or one a line."""
    try:
        value = msgspec.json.decode(lines)
    except msgspec.DecodeError:
        return list(_each_line(lines))
    if isinstance(value, dict):
        return value.get("messages", [value])
    return value


def _each_line(lines: str) -> Iterator[object]:
    for number, line in enumerate(lines.split("\n"), 1):
        if line.strip():
            try:
                yield msgspec.json.decode(line)
            except msgspec.DecodeError as error:
                message = f"Line {number} is not JSON: {error}. {_WHAT}"
                raise InputError(message) from error


def _bodies(item: Item) -> tuple[Body, ...]:
    """What one chat message says, in our nouns; a system prompt is kept beside the conversation."""
    return item.messages or (Note("imported_system", {"text": str(item.raw.get("content") or "")}),)


def _numbered(bodies: list[Body], change: Callable[[str], str], count: Callable[[str], int]) -> list[Entry]:
    now = time.time()
    changed = [_changed(body, change) for body in bodies]
    return [
        Entry(seq, new_id(), now, body, count(text_of(body)) if sort_of(body) == MESSAGE else 0)
        for seq, body in enumerate(changed, 1)
    ]


def _free_id(store: Store, session_id: str) -> str | None:
    if not re.fullmatch(r"[\w-]{4,64}", session_id):
        return None
    try:
        store.info(session_id)
    except SessionError:
        return session_id
    return None


def _title(body: Body) -> str:
    from mycode.core.redact import redact

    return title_of(text_of(body), redact)
