"""A body survives its JSON, whatever it holds and whoever wrote it."""

import json

from hypothesis import given

from mycode.core.entries import Body, Note, Unknown
from mycode.core.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from mycode.session.entries import decode_body, encode_body, role_of, sha256_of, sort_of, text_of
from tests.support.entries import bodies, summary


@given(bodies)
def test_every_body_comes_back_as_it_was(body: Body) -> None:
    assert decode_body(encode_body(body)) == body


def test_a_kind_from_a_later_version_is_kept_to_the_letter() -> None:
    raw = b'{"kind": "hologram",  "size": 3}'
    body = decode_body(raw)
    assert body == Unknown(raw.decode())
    assert encode_body(body) == raw
    assert sort_of(body) == 0


def test_fields_from_a_later_version_are_ignored() -> None:
    assert decode_body(b'{"kind":"user","text":"hi","mood":"curious"}') == UserMessage("hi")


def test_bytes_that_are_no_json_are_an_unknown_body() -> None:
    assert decode_body(b"\x00\x00\xff") == Unknown("\x00\x00�")


def test_half_a_surrogate_from_a_file_name_survives() -> None:
    body = UserMessage("open caf\udce9.txt")
    raw = encode_body(body)
    assert raw.isascii()
    assert decode_body(raw) == body


def test_a_number_too_large_for_the_fast_encoder_survives() -> None:
    body = AssistantMessage("x", provider_data={"id": 2**80})
    assert decode_body(encode_body(body)) == body


def test_the_hash_is_over_the_stored_bytes() -> None:
    assert sha256_of(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_the_stored_json_names_its_kind() -> None:
    assert json.loads(encode_body(UserMessage("hi"))) == {"kind": "user", "text": "hi", "images": []}


def test_each_body_has_a_role_in_one_word() -> None:
    found = [role_of(body) for body in (UserMessage("a"), AssistantMessage("b"), summary((1, 2)), Note("turn_ended"))]
    assert found == ["user", "assistant", "summary", "turn_ended"]


def test_the_text_of_an_answer_holds_its_calls_with_raw_arguments() -> None:
    body = AssistantMessage("I look.", (ToolCall("1", "grep", '{"pattern": "x'), ToolCall("2", "todo", "{}")))
    assert text_of(body) == 'I look.\n\ngrep {"pattern": "x\ntodo {}'
    assert text_of(ToolResult("1", "\tno match\r\n")) == "\tno match\r\n"
