"""When a session folds by itself, and that it never folds in vain for long."""

from __future__ import annotations

import pytest

from mycode.context.budget import Learned
from mycode.context.policy import Auto, Keep, Masking, Policy, ToolResults, Window
from mycode.core.errors import ContextOverflow
from mycode.core.events import ContextMasked, SummaryFinished, Warned
from mycode.core.messages import AssistantMessage, ToolResult, UserMessage
from mycode.core.summaries import MaskEpoch, SummaryRecord, Trigger
from mycode.core.usage import Usage
from tests.support.context_doubles import Chat, call, model_info

NO_MASKS = Masking(enabled=False)
PLAIN = Policy(masking=NO_MASKS)


async def say_and_fold(chat: Chat, number: int, size: int) -> list[int]:
    """So many turns; the message numbers at which something was folded."""
    folds = []
    for _ in range(number):
        chat.turns(1, size=size)
        trigger = chat.manager.due()
        events = await chat.fold(trigger) if trigger is not None else []
        if any(isinstance(event, SummaryFinished) for event in events):
            folds.append(chat.log.last_seq())
    return folds


async def test_one_long_thread_folds_once_when_four_fifths_are_full():
    chat = Chat(20_000, policy=Policy(auto=Auto(message_threshold=0), masking=NO_MASKS))
    ratios = []
    while True:
        chat.turns(1, size=2_000)
        ratios.append(chat.manager.usage().ratio)
        if (trigger := chat.manager.due()) is not None:
            break
    assert trigger.reason in {"ratio", "emergency"}
    assert ratios[-2] < 0.8 <= ratios[-1]
    await chat.fold(trigger)
    assert chat.manager.due() is None
    assert chat.manager.usage().ratio < 0.7


async def test_a_burst_of_five_messages_folds_once():
    chat = Chat(20_000, policy=Policy(masking=NO_MASKS, window=Window(reserved_output_tokens=100)))
    chat.turns(7, size=8_000)
    folds = 0
    for n in range(5):
        chat.say(f"burst {n} " + "x" * 1_500)
        if (trigger := chat.manager.due()) is not None:
            folds += any(isinstance(e, SummaryFinished) for e in await chat.fold(trigger))
    assert folds == 1


async def test_a_small_burst_after_a_fold_is_left_alone():
    chat = Chat(20_000, policy=PLAIN)
    await say_and_fold(chat, 12, 6_000)
    assert chat.manager.usage().summaries >= 1
    chat.say("a", AssistantMessage("b"), "c")
    assert chat.manager.due() is None


async def test_a_window_of_two_thousand_tokens_is_folded_again_and_again_and_goes_on():
    chat = Chat(2_000, policy=PLAIN)
    folds = await say_and_fold(chat, 60, 800)
    assert len(folds) > 5
    assert chat.manager.usage().tokens <= 2_000


async def test_one_message_larger_than_the_window_still_ends_in_a_request_that_fits():
    chat = Chat(8_000)
    huge = "start " + "x" * 100_000 + " end"
    chat.say("hello", AssistantMessage("hi"), UserMessage(huge))
    trigger = chat.manager.due()
    assert trigger is not None
    assert trigger.emergency
    await chat.fold(trigger)
    sent = chat.manager.fit()
    assert sum(len(m.text) for m in sent) // 4 < 8_000
    newest = sent[-1].text
    assert newest.startswith("start ")
    assert newest.endswith(" end")
    assert "history_expand m3" in newest
    assert chat.log.entries[2].body == UserMessage(huge)


async def test_one_turn_larger_than_the_window_keeps_the_prompt_and_fits():
    chat = Chat(16_000)
    chat.say("Refactor everything, but never touch the database.")
    for n in range(40):
        chat.say(call(f"c{n}", "read_file", f'{{"path": "f{n}.py"}}'), ToolResult(f"c{n}", f"line_{n} " * 500))
        if (trigger := chat.manager.due()) is not None:
            await chat.fold(trigger)
        sent = chat.manager.fit()
        assert sum(len(m.text) for m in sent) // 4 < 16_000
        assert UserMessage("Refactor everything, but never touch the database.") in sent


async def test_masking_alone_is_tried_first():
    policy = Policy(auto=Auto(message_threshold=0))
    chat = Chat(40_000, policy=policy)
    while chat.manager.due() is None:
        chat.turns(1, size=8_000)
    trigger = chat.manager.due()
    assert trigger is not None
    events = await chat.fold(trigger)
    assert [type(event) for event in events] == [ContextMasked]
    assert chat.manager.usage().ratio <= 0.4
    assert chat.manager.usage().masked > 0
    assert chat.manager.due() is None


async def test_under_a_masked_result_stand_the_names_that_nothing_else_shows():
    chat = Chat(40_000, policy=Policy(auto=Auto(message_threshold=0)))
    shown = "def parse_header(row):\ndef read_cookie(row):\n" + "x = 1\n" * 3_000
    chat.say(
        "Why does parse_header fail?",
        call("a", "read_file", '{"path": "src/wire.py"}', text="I will look at `parse_header` and `SessionError`."),
        ToolResult("a", shown + "raise SessionError(row.expiry_date)\n"),
        AssistantMessage("`read_cookie` is fine, as I said; it is the caller."),
    )
    while chat.manager.due() is None:
        chat.turns(1, size=8_000)
    trigger = chat.manager.due()
    assert trigger is not None
    [event] = await chat.fold(trigger)
    assert isinstance(event, ContextMasked)
    assert isinstance(event.entry.body, MaskEpoch)

    line, names = event.entry.body.stubs[3].split("\n")

    assert (line.startswith("["), line.endswith("(m3)")) == (True, True)
    assert ("parse_header" in line, "SessionError" in names.removeprefix("Last named here: ").split()) == (True, True)
    assert ("parse_header" in names, "read_cookie" in names) == (False, False)  # in the line already; shown later
    assert event.tokens_after == chat.manager.usage().tokens
    assert chat.again(40_000).manager.view() == chat.manager.view()


async def test_what_cannot_be_folded_is_explained_once_and_then_left_alone():
    chat = Chat(10_000, policy=Policy(keep=Keep(recent_messages=2)))
    chat.say("begin", AssistantMessage("ok"), UserMessage("y" * 45_000))
    told = []
    for _ in range(6):
        trigger = chat.manager.due()
        if trigger is None:
            break
        told += [e.text for e in await chat.fold(trigger) if isinstance(e, Warned)]
    assert chat.manager.due() is None
    assert any(text.startswith("Summarizing no longer helps: of 10,000 tokens, user alone takes") for text in told)
    chat.say("z" * 8_000)
    assert chat.manager.due() is not None


async def test_an_overflow_is_answered_by_rules_and_the_limit_is_learned():
    chat = Chat(100_000)
    chat.turns(20, size=8_000)
    assert chat.manager.due() is None
    chat.manager.fit()
    events = [event async for event in chat.manager.overflow(ContextOverflow("too long", limit=20_000))]
    assert isinstance(events[0], Warned)
    assert chat.manager.usage().window == 20_000
    sent = chat.manager.fit()
    assert sum(len(m.text) for m in sent) // 4 < 20_000


async def test_an_overflow_that_names_nothing_still_makes_the_next_request_smaller():
    chat = Chat(100_000)
    chat.turns(20, size=8_000)
    before = sum(len(m.text) for m in chat.manager.fit())
    _ = [event async for event in chat.manager.overflow(ContextOverflow("too long"))]
    assert sum(len(m.text) for m in chat.manager.fit()) < 0.8 * before


@pytest.mark.parametrize("window", [20_000, 50_000])
def test_a_switch_to_a_smaller_window_is_what_a_summary_is_made_for(window: int):
    chat = Chat(200_000)
    chat.turns(20, size=8_000)
    assert chat.manager.due() is None
    tokens = chat.manager.usage().tokens
    chat.manager.switch_model(model_info(window))
    assert chat.manager.due() == Trigger("model_switch", tokens / window, tokens, emergency=window == 20_000)
    chat.say(AssistantMessage("And on it goes."))
    trigger = chat.manager.due()
    assert trigger is not None
    assert trigger.reason == ("emergency" if window == 20_000 else "ratio")


def test_a_switch_to_a_larger_window_is_no_reason():
    chat = Chat(29_000)
    chat.turns(12, size=8_000)
    chat.manager.switch_model(model_info(30_000))
    trigger = chat.manager.due()
    assert trigger is not None
    assert trigger.reason == "ratio"


def test_calibration_is_learned_slowly_and_kept_by_model():
    chat = Chat(200_000)
    chat.say("x" * 4_000)
    for _ in range(30):
        chat.manager.fit()
        chat.manager.observe(Usage(input_tokens=1_500))
    assert 1.35 < chat.manager.calibration < 1.55
    chat.manager.switch_model(model_info(200_000, name="other"))
    assert chat.manager.calibration == 1.0
    chat.manager.switch_model(model_info(200_000))
    assert chat.manager.calibration > 1.35


async def overflow(chat: Chat, error: ContextOverflow) -> None:
    chat.manager.fit()
    _ = [event async for event in chat.manager.overflow(error)]


async def test_a_window_that_a_refusal_showed_is_known_in_the_next_session_while_nothing_else_is_known():
    chat = Chat(200_000)
    chat.turns(20, size=8_000)
    await overflow(chat, ContextOverflow("too long", limit=20_000))
    learned = chat.manager.calibrations["test", "model"]
    assert learned == Learned(window=20_000, of=200_000)

    again, other, tight = Chat(200_000), Chat(100_000), Chat(200_000, system="x" * 60_000)
    for later in (again, other, tight):
        later.manager.recall(learned)
    windows = [later.manager.usage().window for later in (again, other, tight)]
    assert windows == [20_000, 100_000, 200_000]


async def test_a_guessed_window_is_tried_a_little_larger_in_each_session_and_never_below_what_was_accepted():
    chat = Chat(200_000)
    chat.turns(16, size=8_000)
    chat.manager.fit()
    chat.manager.observe(Usage(input_tokens=chat.manager.usage().tokens))
    accepted = chat.manager.usage().tokens
    chat.turns(1, size=8_000)
    await overflow(chat, ContextOverflow("too long"))
    learned = chat.manager.calibrations["test", "model"]
    assert (learned.window, learned.of, learned.guessed) == (accepted, 200_000, True)

    windows = []
    for _ in range(20):
        later = Chat(200_000)
        later.manager.recall(learned)
        windows.append(later.manager.usage().window)
        learned = later.manager.calibrations["test", "model"]
    assert windows[0] == accepted * 9 // 8
    assert windows == sorted(windows)
    assert windows[-1] == 200_000


def test_a_learned_window_is_forgotten_when_a_larger_request_goes_through():
    chat = Chat(200_000)
    chat.manager.recall(Learned(window=5_000, of=200_000))
    chat.turns(3, size=4_000)
    assert chat.manager.usage().window == 5_000
    chat.manager.fit()
    chat.manager.observe(Usage(input_tokens=5_001))
    assert chat.manager.usage().window == 200_000
    assert chat.manager.calibrations["test", "model"].window == 0


def test_one_wild_figure_moves_the_calibration_by_a_step_at_most():
    chat = Chat(200_000)
    chat.say("x" * 4_000)
    chat.manager.fit()
    chat.manager.observe(Usage(input_tokens=1_000_000))
    assert chat.manager.calibration == 1.15


async def test_a_resumed_session_that_is_too_full_folds_on_the_question():
    chat = Chat(200_000)
    chat.turns(40, size=4_000)
    again = chat.again(window=40_000)
    trigger = again.manager.due()
    assert trigger is not None
    assert trigger.reason == "resume"
    bodies = [e.entry.body for e in await again.fold(trigger) if isinstance(e, SummaryFinished | ContextMasked)]
    assert {body.trigger for body in bodies if isinstance(body, SummaryRecord | MaskEpoch)} == {"resume"}
    assert again.manager.due() is None


async def test_a_long_session_is_resumed_without_reading_all_of_it():
    chat = Chat(20_000, policy=PLAIN)
    await say_and_fold(chat, 60, 4_000)
    again = chat.again(window=20_000, policy=PLAIN)
    assert len(again.log.was_read) < len(chat.log.entries) // 4
    assert again.manager.view() == chat.manager.view()


async def test_a_long_session_without_folds_is_read_from_its_end_and_the_rest_at_the_next_fold():
    chat = Chat(10_000_000)
    chat.turns(1_000, size=1_000)
    again = chat.again(window=16_000)
    assert len(again.log.was_read) < 1_000
    trigger = again.manager.due()
    assert trigger is not None
    events = await again.fold(trigger)
    record = next(e.entry.body for e in events if isinstance(e, SummaryFinished))
    assert isinstance(record, SummaryRecord)
    assert record.covers[0] == 1
    assert len(record.message_ids) > 3_900


async def test_switched_off_nothing_is_folded_by_itself_but_requests_fit_and_a_fold_by_hand_works():
    chat = Chat(16_000, policy=Policy(auto=Auto(enabled=False)))
    chat.turns(20, size=4_000)
    before = chat.manager.view()
    trigger = chat.manager.due()
    assert trigger is not None
    events = await chat.fold(trigger)
    assert [type(event) for event in events] == [Warned]
    assert chat.manager.view() == before
    assert sum(len(m.text) for m in chat.manager.fit()) // 4 < 16_000
    by_hand = chat.manager.due("manual")
    assert by_hand is not None
    assert by_hand.reason == "manual"
    assert any(isinstance(event, SummaryFinished) for event in await chat.fold(by_hand))


def trimmed(policy: Policy) -> list[str]:
    """The texts of tool results in a request that had to be cut: an old result, an old error, a new result."""
    chat = Chat(4_000, policy=policy)
    chat.say(
        "go",
        *(call("a", "read_file", '{"path": "src/app.py"}'), ToolResult("a", "x = 1\n" * 1_500)),
        *(call("b", "bash", '{"command": "make"}'), ToolResult("b", "Error: no rule\nexit code: 2", is_error=True)),
        *(call("c", "read_file", '{"path": "src/new.py"}'), ToolResult("c", "y = 2\n" * 1_000)),
    )
    return [m.text for m in chat.manager.fit() if isinstance(m, ToolResult)]


def test_a_trimmed_result_is_a_mark_with_its_age_and_errors_stay_whole():
    old, error, new = trimmed(Policy())
    assert old == "[truncated - 4 steps ago] (m3)"
    assert error == "Error: no rule\nexit code: 2"
    assert new == "y = 2\n" * 1_000


def test_a_trimmed_result_is_a_digest_where_that_is_set():
    old, _, _ = trimmed(Policy(tool_results=ToolResults(summarize=True)))
    assert old.startswith("[✓ read_file: File: src/app.py | Lines: ")
    assert old.endswith("] (m3)")


async def test_more_than_fifty_short_messages_fold_in_a_large_window_where_only_their_number_counts():
    policy = Policy(auto=Auto(message_threshold=50, message_ratio=0.0, trigger_ratio=1.0, reset_ratio=0.9))
    chat = Chat(200_000, policy=policy)
    while (trigger := chat.manager.due()) is None:
        chat.say(
            "Please look at the next part of the code base.", AssistantMessage("I looked at it, and it is fine so far.")
        )
    assert chat.manager.usage().messages == 52
    events = await chat.fold(trigger)
    assert any(isinstance(event, SummaryFinished) for event in events)
    assert chat.manager.usage().messages == 10
