from mycode.context.budget import message_tokens
from mycode.context.invariants import broken
from mycode.context.projection import Laid, Row, Shown, project
from mycode.context.trimming import head_and_tail, trim
from mycode.core.messages import AssistantMessage, ContextNote, Image, Message, ToolResult, UserMessage
from tests.support.context_doubles import Quarter, call

COUNT = Quarter().count


def shown(*messages: Message) -> list[Shown]:
    rows = [Row(seq, message, message_tokens(message, COUNT)) for seq, message in enumerate(messages, 1)]
    return project(rows, Laid())


def total(view: list[Shown]) -> int:
    return sum(message_tokens(item.message, COUNT) for item in view)


def stub(item: Shown) -> str:
    return f"[truncated] (m{item.seq})"


WORK = (
    UserMessage("old question"),
    call("a", "read_file", text="reading"),
    ToolResult("a", "x" * 4_000),
    AssistantMessage("It is long."),
    UserMessage("new question"),
    call("b", "bash", text="running"),
    ToolResult("b", "y" * 4_000),
)


def test_what_fits_is_left_as_it_is():
    view = shown(*WORK)
    assert trim(view, 10_000, COUNT, stub) == view


def test_old_tool_results_go_first():
    view = trim(shown(*WORK), 1_200, COUNT, stub)
    assert [item.message.text[:12] for item in view] == [
        "old question",
        "reading",
        "[truncated] ",
        "It is long.",
        "new question",
        "running",
        "yyyyyyyyyyyy",
    ]
    assert total(view) <= 1_200


def test_then_the_oldest_exchanges_go_and_a_note_says_so():
    view = trim(shown(*WORK), 1_080, COUNT, stub)
    assert isinstance(view[0].message, ContextNote)
    assert UserMessage("new question") in [item.message for item in view]
    assert total(view) <= 1_080


def test_in_the_smallest_room_the_newest_question_is_left():
    view = trim(shown(*WORK), 60, COUNT, stub)
    assert UserMessage("new question") in [item.message for item in view]
    assert broken([item.message for item in view]) == ()
    assert total(view) <= 60


def test_a_question_larger_than_the_room_keeps_its_head_and_its_tail():
    view = trim(shown(UserMessage("begin " + "z" * 9_000 + " end")), 300, COUNT, stub)
    text = view[0].message.text
    assert text.startswith("begin ")
    assert text.endswith(" end")
    assert "history_expand m1" in text
    assert total(view) <= 300


def test_a_cut_text_has_two_thirds_of_head_and_names_what_is_missing():
    text = head_and_tail("a" * 4_000, 100, COUNT, 7)
    assert COUNT(text) <= 100
    head, _, tail = text.partition("\n[… 900 tokens left out; history_expand m7 …]\n")
    assert len(head) >= 2 * len(tail) - 3 > 0


def test_a_picture_that_must_go_leaves_a_word():
    picture = UserMessage("", (Image("p", "image/png", "0", 10),))
    view = trim(shown(picture, UserMessage("What is it?")), 200, COUNT, stub)
    assert [item.message.text for item in view] == ["[picture left out]", "What is it?"]
