"""The fold over events: what settles does so once, what is open is shown below, an interruption leaves nothing open."""

from rich.console import RenderableType

from mycode.core.entries import Entry, Note
from mycode.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    ContextChanged,
    ContextMasked,
    Event,
    MessageAdded,
    ReasoningDelta,
    Retrying,
    SummaryFinished,
    SummaryStarted,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    Warned,
)
from mycode.core.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from mycode.core.summaries import MaskEpoch, SummaryRecord, Trigger
from mycode.core.tools import Approval, CommandDisplay, TextDisplay, TodoDisplay, TodoItem
from mycode.core.usage import Usage
from mycode.render.live import Live
from mycode.render.screen import Canvas
from tests.support.panel_values import CHANGE, COMMAND, HOSTILE

CALL = ToolCall("c1", "execute_bash", '{"command":"ls"}')


def added(message: UserMessage | AssistantMessage | ToolResult) -> MessageAdded:
    return MessageAdded(Entry(1, "a", 0.0, message))


def ended(reason: str = "done", error: str = "") -> TurnEnded:
    return TurnEnded(reason, Usage(), 1, error=error)  # type: ignore[arg-type]  # the reason is one of the known ones


def screen(*events: Event, plain: bool = False, width: int = 70) -> str:
    live = Live(Canvas(width, color=False, plain=plain))
    settled: list[RenderableType] = []
    for event in events:
        settled += live.fold(event)
    return live.canvas.text(*settled)


def test_a_turn_reads_from_top_to_bottom() -> None:
    assert screen(
        TurnStarted(1),
        added(UserMessage("list the files")),
        TextDelta("I look "),
        TextDelta("first.\n\nThen"),
        TextDelta(" more."),
        added(AssistantMessage("I look first.\n\nThen more.", (CALL,))),
        ToolStarted(CALL, "execute_bash ls"),
        ToolProgress("c1", "a.py\n"),
        ToolFinished(CALL, ToolResult("c1", "a.py"), 2.0, CommandDisplay("ls", "a.py\nb.py\n", 0, 2.0)),
        TextDelta("Two files."),
        added(AssistantMessage("Two files.")),
        ended(),
    ) == ("\n> list the files\n\nI look first.\n\nThen more.\n\n● execute_bash ls  2 s\n  a.py\n  b.py\n\nTwo files.\n")


def test_the_same_turn_as_labelled_lines() -> None:
    assert screen(
        added(UserMessage("list the files")),
        TextDelta("I **look** first.\n"),
        added(AssistantMessage("I **look** first.", (CALL,))),
        ToolStarted(CALL, "execute_bash ls"),
        ToolFinished(CALL, ToolResult("c1", "no"), 0.1, CommandDisplay("ls", "", 1, 0.1)),
        ended("failed", "The model could not be reached."),
        plain=True,
    ) == (
        "\nYou: list the files\n"
        "mycode:\nI **look** first.\n"
        "\nTool: execute_bash ls\nexit code 1\n"
        "Error: The model could not be reached.\n"
    )


def test_an_answer_that_was_not_streamed_is_shown_whole() -> None:
    assert screen(added(AssistantMessage("All *at once*."))) == "\nAll at once.\n"


def test_a_streamed_answer_is_not_shown_twice() -> None:
    text = "One.\n\nTwo.\n"

    assert screen(TextDelta(text), added(AssistantMessage(text))) == "\nOne.\n\nTwo.\n"


def test_what_the_stream_left_out_of_an_answer_is_added() -> None:
    assert screen(TextDelta("One.\n\nT"), added(AssistantMessage("One.\n\nTwo."))) == "\nOne.\n\nTwo.\n"
    assert screen(TextDelta("wo."), added(AssistantMessage("One.\n\nTwo."))) == "\nwo.\n\nOne.\n\nTwo.\n"


def test_what_is_open_is_live_and_not_settled() -> None:
    live = Live(Canvas(60, color=False))

    assert live.fold(TextDelta("half a ")) == []
    assert live.canvas.text(live.live() or "") == "\nhalf a\n"
    assert live.label == "Writing"
    live.fold(ReasoningDelta("hm"))
    assert live.label == "Thinking"


def test_the_end_of_a_thought_is_live_and_never_settled() -> None:
    live = Live(Canvas(30, color=False))
    live.fold(ReasoningDelta("first I think of this and then "))
    live.fold(ReasoningDelta("of all the rest,\x1b[2K which is long"))

    assert live.canvas.text(live.live() or "") == "… I think of this and then of\nall the rest, which is long\n"
    assert live.canvas.text(*live.fold(TextDelta("So.\n\n"))) == "\nSo.\n"
    assert live.live() is None


def test_a_running_tool_shows_the_end_of_its_output() -> None:
    live = Live(Canvas(60, color=False))
    live.fold(ToolStarted(CALL, "execute_bash make"))
    live.fold(ToolProgress("c1", "".join(f"line {number}\n" for number in range(9))))

    assert live.canvas.text(live.live() or "") == "\n○ execute_bash make\n  line 5\n  line 6\n  line 7\n  line 8\n"
    assert live.label == "Running execute_bash make"


def test_an_interruption_settles_what_was_open_and_says_what_may_have_happened() -> None:
    live = Live(Canvas(60, color=False))
    live.fold(TextDelta("I delete"))
    settled = live.fold(ToolStarted(CALL, "execute_bash rm x")) + live.stop()

    assert live.canvas.text(*settled) == "\nI delete\n! execute_bash rm x: interrupted, may have had effects\n"
    assert (live.live(), live.label) == (None, "")


def test_a_cut_answer_that_is_asked_for_again_says_that_it_does_not_count() -> None:
    shown = screen(
        TextDelta("Half an ans"),
        Retrying(1, 4, 2.0, "The connection broke.", discard=True),
        TextDelta("A whole answer."),
        added(AssistantMessage("A whole answer.")),
    )

    assert shown == (
        "\nHalf an ans\n"
        "! The connection broke. Trying again in 2 s (1 of 4). What was shown\nof the answer does not count.\n"
        "\nA whole answer.\n"
    )


def test_an_automatic_summary_is_told_in_one_line_and_one_by_hand_is_left_to_its_panel() -> None:
    def finished(trigger: str) -> SummaryFinished:
        record = SummaryRecord(
            "r",
            0.0,
            (1, 30),
            1,
            "rules",
            trigger,
            "",
            tokens_before=10_000,
            tokens_after=3_000,  # type: ignore[arg-type]  # known
        )
        return SummaryFinished(Entry(31, "a", 0.0, record), 0.1)

    automatic = screen(SummaryStarted(Trigger("ratio", 0.8, 1), 30), finished("ratio"), width=200)

    assert automatic == (
        "· Summarizing 30 messages (ratio) …\n"
        "· Messages m1-m30 are summarized now: 10k → 3k tokens (70 % less). Nothing is lost: /summaries shows it,"
        " /history --full all of it, /summarize --undo takes it back.\n"
    )
    assert screen(finished("manual")) == ""
    assert screen(SummaryStarted(Trigger("model_switch", 1.304, 1), 30), width=200) == (
        "· Summarizing 30 messages (model switch: the new model's window is smaller; context 130 % full) …\n"
    )


def test_what_was_masked_on_an_occasion_names_it() -> None:
    epoch = Entry(1, "a", 0.0, MaskEpoch({3: "x"}, 10_000, 4_000, trigger="resume"))

    assert screen(ContextMasked(epoch, 10_000, 4_000), width=200) == (
        "· Old tool results are shown short now (the session was resumed): 6k tokens freed.\n"
    )


def test_small_things_are_told_in_a_line_each() -> None:
    entry = Entry(1, "a", 0.0, MaskEpoch({}))
    note = Entry(2, "b", 0.0, Note("x"))

    assert screen(
        ContextMasked(entry, 10_000, 4_000),
        ContextChanged(note, "m4 is pinned."),
        Warned("The disk is full."),
        ended("turn_limit"),
    ) == (
        "· Old tool results are shown short now: 6k tokens freed.\n"
        "· m4 is pinned.\n"
        "! The disk is full.\n"
        "! Stopped: the limit of model calls for one prompt is reached. Say `go\non` to continue.\n"
    )


def test_a_refused_call_shows_the_sentence_and_no_diff() -> None:
    finished = ToolFinished(CALL, ToolResult("c1", "Not allowed: plan mode.", is_error=True), 0.0, CHANGE, denied=True)

    assert screen(ToolStarted(CALL, "edit_file a.py"), finished) == "\n✗ edit_file a.py\n  Not allowed: plan mode.\n"
    assert screen(ToolStarted(CALL, "edit_file a.py"), finished, plain=True) == (
        "\nTool (not allowed): edit_file a.py\nNot allowed: plan mode.\n"
    )


def test_diffs_todos_and_lines_are_shown_below_their_call() -> None:
    def finished(display: object) -> ToolFinished:
        return ToolFinished(CALL, ToolResult("c1", "x"), 0.0, display)  # type: ignore[arg-type]  # any display

    todo = TodoDisplay((TodoItem("read", "done"), TodoItem("write", "active"), TodoItem("test")))

    assert screen(finished(todo)) == "\n● execute_bash\n  [x] read\n  [>] write\n  [ ] test\n"
    assert screen(finished(TextDisplay("app.py · 120 lines", "whole"))) == "\n● execute_bash\n  app.py · 120 lines\n"
    assert "  10 + def new():  # [red]\n" in screen(finished(CHANGE)).replace("   1", "  1")


def test_the_label_says_what_is_waited_for() -> None:
    live = Live(Canvas(60))
    labels = []
    for event in (
        TurnStarted(1),
        ToolStarted(CALL, "execute_bash make"),
        ApprovalAsked(COMMAND),
        ApprovalGiven("c1", Approval("once")),
        ToolFinished(CALL, ToolResult("c1", ""), 0.0),
        ended(),
    ):
        live.fold(event)
        labels.append(live.label)

    running = "Running execute_bash make"
    assert labels == ["Thinking", running, "Waiting for you", running, "Thinking", ""]


def test_automatic_summaries_are_told_as_the_person_chose() -> None:
    record = SummaryRecord("r", 0.0, (1, 30), 1, "rules", "ratio", "", tokens_before=10, tokens_after=3)
    events: list[Event] = [
        SummaryStarted(Trigger("ratio", 0.8, 1), 30),
        SummaryFinished(Entry(31, "a", 0.0, record), 0.1),
    ]
    shown = {}
    for notify in ("off", "panel"):
        live = Live(Canvas(60, plain=True), notify)
        shown[notify] = live.canvas.text(*live.fold(events[0]), *live.fold(events[1]))

    assert shown["off"] == ""
    assert "Session Summary\nStands for: m1-m30\n" in shown["panel"]


def test_foreign_text_in_any_event_has_no_power_over_the_terminal() -> None:
    live = Live(Canvas(60))
    events: list[Event] = [
        added(UserMessage(HOSTILE)),
        TextDelta(f"{HOSTILE}\n\n```{HOSTILE}\n{HOSTILE}\n"),
        ToolStarted(CALL, HOSTILE),
        ToolProgress("c1", HOSTILE),
        ToolFinished(CALL, ToolResult("c1", HOSTILE, is_error=True), 0.1),
        ToolFinished(CALL, ToolResult("c1", HOSTILE), 0.1, CommandDisplay(HOSTILE, HOSTILE, 1, 0.1, HOSTILE)),
        ToolFinished(CALL, ToolResult("c1", HOSTILE), 0.1, TextDisplay(HOSTILE, HOSTILE)),
        Warned(HOSTILE),
        ended("failed", HOSTILE),
    ]
    shown = ""
    for event in events:
        shown += live.canvas.text(*live.fold(event), live.live() or "")

    assert "\x1b[2K" not in shown
    assert "\x1b[1A" not in shown
    assert "\u202e" not in shown
    assert "[bold red]done[/]" in shown
