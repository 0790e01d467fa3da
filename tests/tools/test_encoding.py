"""Bytes become text and the same bytes again."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from mycode.core.errors import ToolError
from mycode.tools.encoding import Text, decode, encode, looks_binary


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain", Text("plain")),
        ("é–".encode(), Text("é–")),
        (codecs.BOM_UTF8 + b"a", Text("a", "utf-8", codecs.BOM_UTF8)),
        ("\ufeffa".encode("utf-16-le"), Text("a", "utf-16-le", codecs.BOM_UTF16_LE)),
        ("\ufeffa".encode("utf-16-be"), Text("a", "utf-16-be", codecs.BOM_UTF16_BE)),
        ("\ufeffa".encode("utf-32-le"), Text("a", "utf-32-le", codecs.BOM_UTF32_LE)),
        (b"caf\xe9 \x93x\x94 \x81", Text("café “x” \x81", "legacy")),
    ],
)
def test_encodings_are_told_apart(data: bytes, text: Text) -> None:
    assert decode(data) == text


@given(
    st.binary()
    | st.builds(lambda mark, rest: mark + rest, st.sampled_from([b"\xff\xfe", b"\xef\xbb\xbf"]), st.binary())
)
def test_decoding_loses_no_byte(data: bytes) -> None:
    assert encode(decode(data)) == data


def test_a_character_the_encoding_does_not_have_is_refused() -> None:
    with pytest.raises(ToolError, match="cannot hold the character '→'"):
        encode(structs.replace(decode(b"caf\xe9"), text="→"))


def test_a_nul_without_a_mark_is_binary() -> None:
    assert looks_binary(b"a\0b")
    assert not looks_binary("\ufeffa".encode("utf-16-le"))
