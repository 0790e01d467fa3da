import pytest

from mycode.context.manager import Item
from mycode.core.errors import InputError
from mycode.core.messages import AssistantMessage, ContextNote, ToolResult, UserMessage
from mycode.core.summaries import Drop
from tests.support.context_doubles import Chat, call


def chat_of_four() -> Chat:
    chat = Chat()
    chat.say(
        "look", call("a", "ls", text="I look."), ToolResult("a", "x.py\n" * 50), AssistantMessage("There."), "next"
    )
    return chat


def write(chat: Chat, changed: object) -> None:
    chat.log.write(changed.entry)  # type: ignore[attr-defined]  # a ContextChanged


def test_a_dropped_result_leaves_a_mark_with_its_handle():
    chat = chat_of_four()
    write(chat, chat.manager.drop([3]))
    assert chat.manager.view()[2] == ToolResult("a", "[m3 was left out by the person; history_expand m3 shows it]")


def test_a_dropped_answer_takes_its_results_along():
    chat = chat_of_four()
    write(chat, chat.manager.drop([2]))
    assert chat.manager.view() == (
        UserMessage("look"),
        ContextNote("[m2 was left out by the person; history_expand m2 shows it]", "omitted"),
        AssistantMessage("There."),
        UserMessage("next"),
    )


def test_restored_messages_are_whole_again():
    chat = chat_of_four()
    before = chat.manager.view()
    write(chat, chat.manager.drop([1, 3]))
    write(chat, chat.manager.restore_items([1, 3]))
    assert chat.manager.view() == before


def test_a_shortened_message_is_one_line():
    chat = chat_of_four()
    write(chat, chat.manager.shrink([3]))
    text = chat.manager.view()[2].text
    assert text.startswith("[m3 shortened: x.py x.py")
    assert "\n" not in text


def test_each_change_by_hand_is_undone_in_turn():
    chat = chat_of_four()
    views = [chat.manager.view()]
    write(chat, chat.manager.drop([1]))
    views.append(chat.manager.view())
    write(chat, chat.manager.shrink([3]))
    assert "drop" not in (chat.undo() or ContextNote("", "omitted")).text
    assert chat.manager.view() == views[1]
    chat.undo()
    assert chat.manager.view() == views[0]
    assert chat.undo() is None


def test_changes_by_hand_survive_a_restart():
    chat = chat_of_four()
    write(chat, chat.manager.drop([1]))
    write(chat, chat.manager.pin("Be brief."))
    assert chat.again().manager.view() == chat.manager.view()


def test_the_newest_user_message_cannot_be_left_out():
    chat = chat_of_four()
    with pytest.raises(InputError, match="m5 is the newest thing you said; it stays"):
        chat.manager.drop([5])
    with pytest.raises(InputError, match="no message m99"):
        chat.manager.drop([99])


def test_what_is_already_so_is_said_and_changes_nothing():
    chat = chat_of_four()
    write(chat, chat.manager.drop([1, 2, 1]))
    assert chat.log.entries[-1].body == Drop((1, 2))
    write(chat, chat.manager.drop([2, 3]))
    assert chat.log.entries[-1].body == Drop((3,))
    before, rows = chat.manager.view(), len(chat.log.entries)
    with pytest.raises(InputError, match="m1, m3 are left out already"):
        chat.manager.drop([1, 3])
    with pytest.raises(InputError, match="m1 is left out; /context restore shows"):
        chat.manager.shrink([1])
    with pytest.raises(InputError, match="m4 is shown whole already"):
        chat.manager.restore_items([4])
    with pytest.raises(InputError, match="no message m99"):
        chat.manager.restore_items([1, 99])
    assert (chat.manager.view(), len(chat.log.entries)) == (before, rows)
    write(chat, chat.manager.restore_items([1]))
    assert chat.log.entries[-1].seq == rows + 1


async def test_a_pin_waits_in_the_footer_and_moves_to_the_top_with_the_next_fold():
    chat = Chat(64_000)
    chat.turns(8, size=3_000)
    before = chat.manager.view()
    write(chat, chat.manager.pin("Use tabs."))
    after = chat.manager.view()
    assert after[:-1] == before
    assert isinstance(after[-1], ContextNote)
    assert after[-1].source == "footer"
    await chat.fold()
    sources = [m.source for m in chat.manager.view() if isinstance(m, ContextNote)]
    assert sources == ["pins", "summary"]


def test_a_message_can_be_pinned_and_unpinned_by_number():
    chat = chat_of_four()
    write(chat, chat.manager.pin(1))
    write(chat, chat.manager.pin("Use tabs."))
    assert chat.manager.pins() == ("look", "Use tabs.")
    write(chat, chat.manager.unpin(1))
    assert chat.manager.pins() == ("Use tabs.",)
    with pytest.raises(InputError, match="There is no pin 7; there are 1"):
        chat.manager.unpin(7)


async def test_a_constraint_that_a_fold_pinned_can_be_let_go():
    chat = Chat(64_000)
    chat.say("Never push to main.", AssistantMessage("Understood."))
    chat.turns(8, size=3_000)
    await chat.fold()
    assert chat.manager.pins() == ("Never push to main.",)
    write(chat, chat.manager.unpin(1))
    assert chat.manager.pins() == ()
    assert chat.again().manager.pins() == ()


def test_items_are_numbered_by_handle_and_say_what_they_are():
    chat = chat_of_four()
    write(chat, chat.manager.drop([1]))
    assert chat.manager.items()[:3] == (
        Item(1, "other", 23, 4, "[m1 was left out by the person; history_expand m1 shows it]", "dropped"),
        Item(2, "assistant", 16, 3, "I look.", ""),
        Item(3, "tool results", 73, 2, "x.py " * 19 + "x.py ", ""),
    )
