"""Gates and people for tests: one that allows everything, one that asks, one that answers as it was told."""

from mycode.core.errors import CannotAsk
from mycode.core.tools import Action, Approval, ApprovalRequest, Question, Verdict


class OpenGate:
    """Allows every action and remembers what it judged."""

    def __init__(self) -> None:
        self.judged: list[Action] = []
        self.remembered: list[str] = []

    def judge(self, action: Action) -> Verdict:
        self.judged.append(action)
        return Verdict("allow", "the test allows everything")

    def remember(self, rule: str) -> None:
        self.remembered.append(rule)


class AskingGate(OpenGate):
    """Asks about every action that is more than a look."""

    def judge(self, action: Action) -> Verdict:
        self.judged.append(action)
        if action.effect in ("none", "read"):
            return Verdict("allow", "a look is free")
        return Verdict("ask", "it changes something", offer=f"{action.tool}(*)")


class RefusingGate(OpenGate):
    """Denies every action that is more than a look."""

    def judge(self, action: Action) -> Verdict:
        self.judged.append(action)
        if action.effect in ("none", "read"):
            return Verdict("allow", "a look is free")
        return Verdict("deny", "nothing may be changed", rule="Edit")


class Person:
    """Gives prepared answers in order; without one left it cannot be asked."""

    def __init__(self, *answers: Approval | str) -> None:
        self._answers = list(answers)
        self.asked: list[ApprovalRequest | Question] = []

    async def decide(self, request: ApprovalRequest) -> Approval:
        self.asked.append(request)
        answer = self._next()
        assert isinstance(answer, Approval)
        return answer

    async def answer(self, question: Question) -> str:
        self.asked.append(question)
        answer = self._next()
        assert isinstance(answer, str)
        return answer

    def _next(self) -> Approval | str:
        if not self._answers:
            message = "nobody is there"
            raise CannotAsk(message)
        return self._answers.pop(0)
