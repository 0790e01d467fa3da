"""How large a picture is, told from its first bytes without decoding it (pure)."""

from __future__ import annotations

from msgspec import Struct

# What the strictest of the large providers takes: 5 MiB as base64, and so many pixels on a side.
MOST_BYTES = 3_900_000
MOST_PIXELS = 8_000


class Size(Struct, frozen=True):
    """Width and height in pixels."""

    width: int
    height: int


def too_large(data: bytes) -> str:
    """Why no model would take this picture, in a few words; empty if one may."""
    if len(data) > MOST_BYTES:
        return f"at most {MOST_BYTES:,} bytes can be sent"
    found = size(data)
    if found is not None and max(found.width, found.height) > MOST_PIXELS:
        return f"it has {found.width:,} x {found.height:,} pixels, at most {MOST_PIXELS:,} on a side can be sent"
    return ""


def size(data: bytes) -> Size | None:
    """The size of a PNG, GIF, WebP or JPEG picture; None where its head does not tell."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        return Size(_big(data[16:20]), _big(data[20:24]))
    if data.startswith((b"GIF87a", b"GIF89a")) and len(data) >= 10:
        return Size(_little(data[6:8]), _little(data[8:10]))
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) >= 30:
        return _webp(data)
    return _jpeg(data) if data.startswith(b"\xff\xd8") else None


def _webp(data: bytes) -> Size | None:
    match data[12:16]:
        case b"VP8X":
            return Size(_little(data[24:27]) + 1, _little(data[27:30]) + 1)
        case b"VP8L":
            bits = _little(data[21:25])
            return Size((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8 ":
            return Size(_little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF)
    return None


def _jpeg(data: bytes) -> Size | None:
    """Of the first frame header; the segments before it are stepped over."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        kind = data[at + 1]
        if kind == 0xFF:
            at += 1
        elif 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            return Size(_big(data[at + 7 : at + 9]), _big(data[at + 5 : at + 7]))
        elif kind == 0x01 or 0xD0 <= kind <= 0xD8:
            at += 2
        else:
            at += 2 + _big(data[at + 2 : at + 4])
    return None


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
