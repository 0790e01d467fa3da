"""A question reaches the person as it was put, the answer comes back word for word."""

import pytest

from mycode.core.errors import CannotAsk
from mycode.core.tools import Question, TextDisplay
from mycode.tools.ask import AskUser, AskUserArgs
from tests.support.tool_doubles import ScriptedApprover


def _silent(_text: str) -> None:
    return


async def test_the_answer_comes_back_word_for_word() -> None:
    person = ScriptedApprover(answers=("the second, but *only* on Mondays",))
    output = await AskUser(person).run(AskUserArgs("Which?", ("first", "second")), _silent)
    assert person.asked == [Question("Which?", ("first", "second"))]
    assert output.text == "the second, but *only* on Mondays"
    assert output.display == TextDisplay("Which?", "the second, but *only* on Mondays")


async def test_an_empty_answer_is_told_as_none() -> None:
    output = await AskUser(ScriptedApprover(answers=("  ",))).run(AskUserArgs("Which?"), _silent)
    assert output.text == "(the person gave no answer)"


async def test_where_nobody_is_the_question_cannot_be_put() -> None:
    with pytest.raises(CannotAsk):
        await AskUser(ScriptedApprover()).run(AskUserArgs("Which?"), _silent)


@pytest.mark.parametrize("question", ["\n", "  \nmore"])
def test_a_plan_has_one_line_whatever_is_asked(question: str) -> None:
    action = AskUser(ScriptedApprover()).plan(AskUserArgs(question))
    assert (action.effect, "\n" in action.title) == ("none", False)
