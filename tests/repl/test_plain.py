"""The plain screen: lines in, labelled lines out, and the end of the input is an end."""

import io
from pathlib import Path

from mycode.core.events import ApprovalAsked, ApprovalGiven, MessageAdded
from mycode.core.messages import AssistantMessage
from mycode.core.usage import Usage
from mycode.repl.approval import TerminalApprover
from mycode.repl.plain import PlainScreen
from mycode.repl.services import ReplSettings
from mycode.repl.talk import Repl
from tests.support.panel_values import EDIT
from tests.support.scripted_session import Script, ScriptedServices, ScriptedSession


async def talk(
    lines: str,
    *scripts: Script,
    approver: TerminalApprover | None = None,
    folder: Path | None = None,
    session: ScriptedSession | None = None,
) -> str:
    target = io.StringIO()
    approver = approver or TerminalApprover()
    settings = ReplSettings(plain=True, workspace=folder or Path())
    repl = Repl(session or ScriptedSession(*scripts), settings, ScriptedServices())
    screen = PlainScreen(repl, source=io.StringIO(lines), target=target)
    repl.attach(screen)
    approver.attach(screen)
    assert await repl.run(None, None, "") == 0
    return target.getvalue()


def asking(approver: TerminalApprover) -> Script:
    async def script(session: ScriptedSession, _: str):
        yield ApprovalAsked(EDIT)
        approval = await approver.decide(EDIT)
        yield ApprovalGiven("c2", approval)
        yield MessageAdded(session.add(AssistantMessage(f"{approval.answer} {approval.comment}")))

    return script


async def test_each_line_is_a_prompt_and_the_end_of_the_input_ends_it() -> None:
    assert await talk("one\n\ntwo\n") == ("\nYou: one\nmycode:\nYou said: one\n\nYou: two\nmycode:\nYou said: two\n")


async def test_commands_work_and_mistakes_are_sentences() -> None:
    shown = await talk("/cost\n/hlep\n/exit\nnever sent\n")

    assert shown.startswith("\nYou: /cost\n\nThis session: $0.012\n")
    assert "Error: There is no command /hlep. Did you mean /help?\n" in shown
    assert "never sent" not in shown


class Unpriced(ScriptedSession):
    def cost(self) -> Usage:
        return Usage(10, 10, cost_usd=None)


async def test_a_cost_that_is_unknown_says_which_settings_make_it_known() -> None:
    assert await talk("/cost\n", session=Unpriced()) == (
        "\nYou: /cost\n\nThis session: cost unknown\nInput: 10 tokens, 0 of them cached\n"
        "Output: 10 tokens, 0 of them reasoning\n"
        "Note: The price of test/model is not known. Set model.input_price and model.output_price, in US dollars per "
        "million tokens, e.g. mycode config set model.input_price 0.25.\n"
    )


async def test_a_permission_is_asked_in_lines_and_asked_again_if_unclear() -> None:
    approver = TerminalApprover()

    shown = await talk("change it\nwhat?\nn\nnot this file\n", asking(approver), approver=approver)

    assert "Permission needed: edit_file wants to change\nsrc/app.py  +3 -2\n" in shown
    assert shown.count("Answer (y = once, a = always: Edit(src/app.py), n = no, say why; empty = no):\n") == 2
    assert shown.endswith("What should the model do instead?:\nmycode:\nno not this file\n")


async def test_the_end_of_the_input_is_no_permission() -> None:
    approver = TerminalApprover()

    shown = await talk("change it\n", asking(approver), approver=approver)

    assert shown.endswith("mycode:\nno\n")


async def test_wide_letters_and_long_lines_stay_whole() -> None:
    long = "漢字👩‍💻" * 100

    assert f"You said: {long}\n" in await talk(f"{long}\n")


async def test_a_shell_command_of_the_person_is_told_with_the_next_prompt(workspace: Path) -> None:
    shown = await talk("!echo hi\nwhat was it?\n", folder=workspace)

    assert "You: !echo hi\nhi\nNote: The model hears of it with your next prompt.\n" in shown
    assert "You: what was it?\nmycode:\nYou said: I ran `echo hi` in my shell; it ended with exit code 0." in shown
    assert "Its output:\nhi\n\nwhat was it?" in shown
