from mycode.context.cutting import choose_cut, legal, newest_user
from mycode.context.projection import Row
from mycode.core.messages import AssistantMessage, Message, ToolResult, UserMessage
from tests.support.context_doubles import call


def rows(*messages: Message, tokens: int = 10) -> list[Row]:
    return [Row(seq, message, tokens) for seq, message in enumerate(messages, 1)]


STEP = (call("a", "ls"), ToolResult("a", "x"))
TALK = rows(UserMessage("q"), *STEP, *STEP, AssistantMessage("a"), UserMessage("q2"), AssistantMessage("b"))


def test_a_cut_never_parts_a_call_from_its_result():
    assert [legal(TALK, index) for index in range(len(TALK) + 1)] == [
        True,
        True,
        False,
        True,
        False,
        True,
        True,
        True,
        True,
    ]


def test_a_cut_waits_for_a_result_that_comes_after_something_said_meanwhile():
    late = rows(UserMessage("q"), call("a", "ls"), UserMessage("wait"), ToolResult("a", "x"), AssistantMessage("ok"))
    assert not legal(late, 2)
    assert not legal(rows(UserMessage("q"), call("a", "ls"), UserMessage("wait")), 2)


def test_the_newest_messages_are_kept_and_the_cut_moves_back_to_a_legal_place():
    assert choose_cut(TALK, 3, 2, 1_000) == 5
    assert choose_cut(TALK, 4, 2, 1_000) == 3
    assert choose_cut(TALK, 100, 2, 1_000) == 0


def test_fewer_are_kept_when_they_hold_too_much_but_never_fewer_than_the_floor():
    assert choose_cut(TALK, 8, 2, 35) == 5
    assert choose_cut(TALK, 8, 2, 1) == 6


def test_a_long_first_exchange_is_cut_after_it_rather_than_not_at_all():
    talk = rows(call("a", "ls"), ToolResult("a", "x"), AssistantMessage("done"))
    assert choose_cut(talk, 2, 2, 1_000) == 2


def test_the_newest_thing_said_is_found_past_blanks():
    assert newest_user(TALK) == 6
    assert newest_user(rows(UserMessage("q"), UserMessage("  "))) == 0
    assert newest_user(rows(AssistantMessage("a"))) is None
