"""The size of a picture is read off its first bytes, or not told."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycode.tools.pictures import Size, size, too_large

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480) + b"\x08\x02\0\0\0"
GIF = b"GIF89a" + struct.pack("<HH", 640, 480) + b"\0\0\0"
JPEG = (
    b"\xff\xd8\xff\xe0\0\x10JFIF\0" + b"\0" * 9 + b"\xff\xff\xc2\0\x11\x08" + struct.pack(">HH", 480, 640) + b"\3" * 10
)
WEBP = b"RIFF\0\0\0\0WEBP"
EXTENDED = WEBP + b"VP8X" + b"\0" * 8 + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")
LOSSLESS = WEBP + b"VP8L" + b"\0\0\0\0\x2f" + (639 | 479 << 14).to_bytes(4, "little") + b"\0" * 8
LOSSY = WEBP + b"VP8 " + b"\0" * 7 + b"\x9d\x01\x2a" + struct.pack("<HH", 640, 480)


@pytest.mark.parametrize("data", [PNG, GIF, JPEG, EXTENDED, LOSSLESS, LOSSY])
def test_every_kind_tells_its_size(data: bytes) -> None:
    assert size(data) == Size(640, 480)


@given(st.sampled_from([PNG, GIF, JPEG, EXTENDED, LOSSLESS, LOSSY, b"\xff\xd8\xff"]), st.integers(0, 60), st.binary())
def test_a_head_that_is_cut_or_garbled_is_no_error(data: bytes, cut: int, noise: bytes) -> None:
    found = size(data[:cut] + noise)
    assert found is None or (found.width >= 0 and found.height >= 0)


def test_what_no_model_takes_is_told_by_bytes_or_pixels() -> None:
    wide = PNG[:16] + struct.pack(">II", 9_000, 480) + PNG[24:]
    assert too_large(PNG) == ""
    assert too_large(wide) == "it has 9,000 x 480 pixels, at most 8,000 on a side can be sent"
    assert too_large(PNG + b"\0" * 4_000_000) == "at most 3,900,000 bytes can be sent"
