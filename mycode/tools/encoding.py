"""How the bytes of a file become text, and the text the very same bytes again."""

from __future__ import annotations

import codecs

from msgspec import Struct

from mycode.core.errors import ToolError

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with the other's
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
# Windows-1252, with its five holes filled from Latin-1: every byte is one character, so nothing is ever lost.
LEGACY = "legacy"


class Text(Struct, frozen=True):
    """The content of a file: `mark` is its byte order mark; encoding `legacy` means one character for each byte."""

    text: str
    encoding: str = "utf-8"
    mark: bytes = b""

    @property
    def remark(self) -> str:
        """What a reader should know of the encoding, empty for plain UTF-8."""
        if self.encoding == LEGACY:
            return "not UTF-8, shown as Windows-1252"
        if self.mark:
            return f"{self.encoding.upper()} with byte order mark"
        return ""


def decode(data: bytes) -> Text:
    """Never fails and never loses a byte: `encode(decode(data))` is `data`."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return Text(data[len(mark) :].decode(encoding), encoding, mark)
            except UnicodeDecodeError:
                break
    try:
        return Text(data.decode())
    except UnicodeDecodeError:
        return Text(codecs.charmap_decode(data, "strict", _legacy_table())[0], LEGACY)


def encode(text: Text) -> bytes:
    """The bytes to write. Raises `ToolError` for characters the file's encoding does not have."""
    try:
        if text.encoding == LEGACY:
            return codecs.charmap_encode(text.text, "strict", codecs.charmap_build(_legacy_table()))[0]
        return text.mark + text.text.encode(text.encoding)
    except UnicodeEncodeError as error:
        message = f"The file is {text.remark or 'UTF-8'} and cannot hold the character {text.text[error.start]!r}."
        raise ToolError(message) from error


def looks_binary(data: bytes) -> bool:
    """Whether the first bytes of a file hold a NUL and no mark that explains it."""
    return b"\0" in data[:8192] and not any(data.startswith(mark) for mark, _ in _MARKS)


def _legacy_table() -> str:
    return "".join(bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(256))
