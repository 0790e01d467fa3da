"""The model looks things up in its own past."""

import pytest

from mycode.core.errors import SessionError, ToolError
from mycode.core.tools import Found
from mycode.tools.recall import HistoryExpand, HistoryExpandArgs, HistorySearch, HistorySearchArgs


class Past:
    """One message, `m3`, of three lines."""

    text = "one\r\ntwo\nthree"

    def search(self, query: str, limit: int = 8) -> tuple[Found, ...]:
        return (Found("m3", "tool", "one two three", 0.0),) if query in self.text else ()

    def expand(self, handle: str) -> str:
        if handle != "m3":
            message = f"There is no message {handle} in this session."
            raise SessionError(message)
        return self.text


def quiet(text: str) -> None:
    pass


async def test_a_search_names_handle_speaker_and_time() -> None:
    out = await HistorySearch(Past()).run(HistorySearchArgs("two"), quiet)
    assert out.text == "m3 tool 1970-01-01 00:00: one two three"


async def test_a_search_without_success_says_what_to_try() -> None:
    out = await HistorySearch(Past()).run(HistorySearchArgs("nine"), quiet)
    assert out.text == "Nothing in the conversation holds 'nine'. Try fewer or other words."


async def test_an_original_comes_back_byte_for_byte() -> None:
    out = await HistoryExpand(Past()).run(HistoryExpandArgs("m3"), quiet)
    assert out.text == "one\r\ntwo\nthree"


@pytest.mark.parametrize(
    ("first", "last", "text"), [(2, None, "two\nthree"), (None, 1, "one\r\n"), (2, 2, "two\n"), (1, 99, Past.text)]
)
async def test_a_long_original_can_be_read_in_parts(first: int | None, last: int | None, text: str) -> None:
    out = await HistoryExpand(Past()).run(HistoryExpandArgs("m3", first, last), quiet)
    assert out.text == text


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (HistoryExpandArgs("m9"), "There is no message m9"),
        (HistoryExpandArgs("m3", 4), "m3 has 3 lines, so there are none from 4 to 3"),
        (HistoryExpandArgs("m3", 3, 2), "m3 has 3 lines, so there are none from 3 to 2"),
    ],
)
async def test_what_is_not_there_is_a_sentence_for_the_model(args: HistoryExpandArgs, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        await HistoryExpand(Past()).run(args, quiet)
