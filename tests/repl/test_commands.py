"""Slash commands: found by name, alias and nearest name; arguments checked with a sentence; the session asked, once."""

import pytest

from mycode.core.errors import MycodeError, UsageError
from mycode.core.events import ToolFinished
from mycode.core.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from mycode.core.tools import CommandDisplay
from mycode.repl.commands.arguments import Option, Positional, parse, usage
from mycode.repl.commands.command import is_command
from mycode.repl.commands.registry import standard
from tests.support.fake_shell import FakeShell

TOOL = ToolFinished(
    ToolCall("c", "execute_bash", "{}"), ToolResult("c", "x"), 0.1, CommandDisplay("ls", "a\n" * 9, 0, 0.1)
)


@pytest.fixture
def shell() -> FakeShell:
    shell = FakeShell()
    shell.session.add(UserMessage("fix the parser"))
    shell.session.add(AssistantMessage("done"))
    return shell


@pytest.mark.parametrize(
    ("line", "command"),
    [("/help", True), ("/no-such", True), ("/etc/hosts is odd", False), ("/", False), ("hi", False), ("/a.b", False)],
)
def test_a_path_is_no_command(line: str, command: bool) -> None:
    assert is_command(line) is command


def test_every_name_and_alias_leads_to_one_command() -> None:
    names = standard().names()

    assert len(names) == len(set(names))
    assert {"help", "clear", "exit", "model", "context", "summarize", "history", "resume", "rename", "export"} <= set(
        names
    )
    assert {"cost", "init", "permissions", "config", "pin", "unpin", "expand", "summaries", "rewind"} <= set(names)
    assert {standard().find(alias).name for alias in ("compact", "compress")} == {"summarize"}
    assert (standard().find("new").name, standard().find("quit").name) == ("clear", "exit")


async def test_an_unknown_command_names_the_nearest(shell: FakeShell) -> None:
    with pytest.raises(UsageError, match=r"There is no command /sumarize\. Did you mean /summarize"):
        await shell.run("/sumarize")
    with pytest.raises(UsageError, match="/help lists them"):
        await shell.run("/xyzzy")


async def test_a_wrong_option_is_a_sentence_with_the_usage(shell: FakeShell) -> None:
    with pytest.raises(UsageError, match=r"There is no option --ful here\. Did you mean --full\? Usage: /history"):
        await shell.run("/history --ful")
    with pytest.raises(UsageError, match="-n needs a number, not 'x'"):
        await shell.run("/history -n x")
    with pytest.raises(UsageError, match="--grep needs a value"):
        await shell.run("/history --grep")
    with pytest.raises(UsageError, match="TITLE is missing: the new name"):
        await shell.run("/rename")
    with pytest.raises(UsageError, match="Nothing is expected at 'now'"):
        await shell.run("/cost now")
    with pytest.raises(UsageError, match="MODE is one of default"):
        await shell.run("/permissions yes")
    with pytest.raises(UsageError, match="Choose one of --rules and --llm"):
        await shell.run("/summarize --rules --llm")
    with pytest.raises(UsageError, match="--from 5 comes after --upto 2: there is nothing between them"):
        await shell.run("/summarize --from 5 --upto 2")


def test_arguments_are_declared_once_and_parsed_in_any_order() -> None:
    positionals = (Positional("what", "text", rest=True),)
    options = (
        Option("--keep", "how many", "N", number=True),
        Option("--full", "all"),
        Option("--as", "form", "F", short="-f"),
    )

    parsed = parse('the "old parser" --keep=m3 -f x --full', positionals, options)

    assert (parsed.text("what"), parsed.number("--keep"), parsed.flag("--full"), parsed.text("--as")) == (
        "the old parser",
        3,
        True,
        "x",
    )
    assert parse("don't forget", positionals, options).text("what") == "don't forget"
    assert parse("-- --full", positionals, options).text("what") == "--full"
    assert usage("x", positionals, options) == "/x [WHAT] [--keep N] [--full] [--as F]"


async def test_help_lists_every_command_and_explains_each(shell: FakeShell) -> None:
    shown = await shell.run("/help")
    assert all(f"/{command.name}: {command.help}" in shown for command in standard().commands)

    for command in standard().commands:
        shown = await shell.run(f"/help {command.name}")
        assert shown.startswith(f"\n{command.usage}\n{command.help}\n")
        assert all(example in shown for example in command.examples)


async def test_every_example_in_the_help_is_understood() -> None:
    for command in standard().commands:
        for example in command.examples:
            name, _, rest = example.removeprefix("/").partition(" ")
            assert standard().find(name) == command
            parse(rest, command.positionals, command.options)


async def test_context_shows_the_ledger_and_changes_it_by_hand(shell: FakeShell) -> None:
    shown = await shell.run("/context")
    assert "test/model: ≈34k of 100k tokens" in shown
    assert "Forecast: about 7 turns until then, next request $0.034\n" in shown
    assert "The next ten requests: $0.100 if summarized now, $0.300 if not\n" in shown
    assert '"system": "Be brief."' in await shell.run("/context --raw")
    assert '"window": 100000' in await shell.run("/context --json")
    assert await shell.run("/context drop m1-m3 m7") == "Note: dropped [1, 2, 3, 7]\n"
    assert await shell.run("/context shrink 4") == "Note: shrunk [4]\n"
    assert await shell.run("/context restore m4") == "Note: restored [4]\n"
    assert await shell.run("/context pin m4") == "Note: pinned m4\n"
    with pytest.raises(UsageError, match="'parser' names no message"):
        await shell.run("/context drop parser")
    with pytest.raises(UsageError, match="Name the messages"):
        await shell.run("/context drop")


async def test_summarize_shows_its_panel_and_can_be_undone(shell: FakeShell) -> None:
    shown = await shell.run("/summarize the parser --rules --keep 4")

    assert "Session Summary\nMessages: 2 → 2 (0 % reduction)\nStands for: m1-m30, as s1\n" in shown
    assert "Focus: the parser\n" in shown
    assert await shell.run("/compact --undo") == "Note: The summary of m1-m30 is taken back.\n"
    with pytest.raises(MycodeError, match="nothing to undo"):
        await shell.run("/summarize --undo")


async def test_a_preview_changes_nothing(shell: FakeShell) -> None:
    shown = await shell.run("/summarize --preview")

    assert shown.startswith("Preview: nothing is changed yet\n")
    assert shell.session.summaries() == ()


async def test_history_shows_the_real_log(shell: FakeShell) -> None:
    for number in range(250):
        shell.session.add(UserMessage(f"message {number} about the parser"))

    recent = await shell.run("/history")
    assert "[Recent] Messages 243-252:" in recent
    assert "(252 messages total)" in recent
    assert "[Recent] Messages 251-252:" in await shell.run("/history -n 2")

    full = await shell.run("/history --full")
    assert "[All] Messages 201-252:" in full
    assert "Page 3 of 3. /history --full --page 2 shows what came before." in full
    assert "[All] Messages 1-100:" in await shell.run("/history --full --page 1")
    assert "message 7 about" in await shell.run("/history --grep 'message 7 '")
    assert "Messages" not in (await shell.run("/history -n 0")).replace("messages total", "")
    assert "No message holds 'nowhere'." in await shell.run("/history --grep nowhere")


async def test_originals_are_shown_by_handle(shell: FakeShell) -> None:
    assert await shell.run("/expand m1") == "\nthe original\n"
    with pytest.raises(MycodeError, match="There is no m9"):
        await shell.run("/expand m9")
    assert "No tool has run yet" in await shell.run("/expand")
    shell.last_tool = (TOOL, "execute_bash ls")
    assert (await shell.run("/expand")).count("a\n") == 9


async def test_summaries_are_shown_whole(shell: FakeShell) -> None:
    assert await shell.run("/summaries") == "No summaries yet.\n"
    await shell.run("/summarize")

    assert "s1: messages m1-m30" in await shell.run("/summaries")
    assert "The parser was rewritten." in await shell.run("/history --summaries")


async def test_clear_starts_anew_and_tells_how_to_go_back(shell: FakeShell) -> None:
    shown = await shell.run("/clear")

    assert shown == "Note: A new conversation. The last one is kept: /resume abc123 goes back to it.\n"
    assert (shell.session.id, shell.fresh) == ("def456", 1)


async def test_resume_offers_a_choice_by_number() -> None:
    shell = FakeShell("1")

    shown = await shell.run("/resume")

    assert "a talk  3 messages  abc123" in shown
    assert "Note: Resumed: a talk." in shown
    with pytest.raises(MycodeError, match="There is no session nowhere"):
        await shell.run("/resume nowhere")


async def test_pins_names_and_rewinding_reach_the_session(shell: FakeShell) -> None:
    assert "Nothing is pinned" in await shell.run("/pin")
    await shell.run("/pin never touch the migrations")
    assert await shell.run("/pin") == "1. never touch the migrations\n"
    await shell.run("/unpin 1")
    await shell.run("/rename the new parser")
    shown = await shell.run("/rewind m2")

    assert shell.session.done == ["pinned never touch the migrations", "unpinned 1"]
    assert (shell.session.title, len(shell.session.log)) == ("the new parser", 1)
    assert shown == "Note: Back to before m2, in a copy. What came after is kept: /resume abc123.\n"


async def test_the_model_is_shown_and_switched(shell: FakeShell) -> None:
    assert "* test/model\n  test/other  cheap\n" in await shell.run("/model")
    assert await shell.run("/model test/other") == "Note: From now on test/other answers.\n"
    assert shell.services.model_name == "test/other"


async def test_settings_permissions_and_cost_are_shown(shell: FakeShell) -> None:
    shown = await shell.run("/config")
    assert shown.startswith("model.name = test/model (from command line)\nNote: 2 settings have their defaults")
    assert await shell.run("/config repl.p") == "repl.plain = false (from default)\n"
    assert (await shell.run("/config --all")).count("(from ") == 3
    assert "Permission mode: default" in await shell.run("/permissions")
    assert await shell.run("/permissions plan") == "Note: Permission mode: plan, reads only, changes nothing.\n"
    assert shell.services.mode == "plan"
    assert "This session: $0.012\nInput: 12k tokens, 0 of them cached\n" in await shell.run("/cost")


async def test_export_chooses_the_format_by_the_ending(shell: FakeShell) -> None:
    assert await shell.run("/export") == "Note: Written to talk.md.\n"
    await shell.run("/export talk.html")
    await shell.run("/export talk.txt --format jsonl")

    assert shell.services.done == ["export  md", "export talk.html html", "export talk.txt jsonl"]


async def test_export_takes_the_format_as_a_word(shell: FakeShell) -> None:
    await shell.run("/export html")
    await shell.run("/export jsonl kept/talk.txt")
    with pytest.raises(UsageError, match="'pdf' is no format; it is one of md, html, jsonl"):
        await shell.run("/export pdf talk.pdf")

    assert shell.services.done == ["export  html", "export kept/talk.txt jsonl"]


async def test_a_setting_that_is_to_be_changed_or_is_none_is_told_where_to_go(shell: FakeShell) -> None:
    with pytest.raises(UsageError, match=r"In a shell: mycode config set repl\.plain true"):
        await shell.run("/config repl.plain true")
    with pytest.raises(UsageError, match=r"There is no setting 'nosuch'\."):
        await shell.run("/config nosuch")


async def test_init_is_a_prompt_and_exit_leaves(shell: FakeShell) -> None:
    await shell.run("/init")
    await shell.run("/quit")

    assert (shell.submitted, shell.left) == (["Look at this project and write AGENTS.md."], True)


def test_reading_commands_need_not_wait_for_the_agent() -> None:
    registry = standard()

    reading = ("/context", "/help", "/history --full", "/exit", "/nope")
    changing = ("/context drop m1", "/summarize", "/clear", "/model x/y", "/init")

    assert [line for line in reading if not registry.at_once(line)] == []
    assert [line for line in changing if registry.at_once(line)] == []
