"""Answers for whoever cannot be asked: nobody sits at the terminal."""

from mycode.core.errors import CannotAsk
from mycode.core.tools import Approval, ApprovalRequest, Question


class NobodyToAsk:
    """An `Approver` that refuses every question with a sentence on how to answer it beforehand."""

    async def decide(self, request: ApprovalRequest) -> Approval:
        offer = request.verdict.offer
        way = f"Allow it with --allowed-tools '{offer}', or choose" if offer else "Choose"
        message = (
            f"{request.action.title} needs an approval and nobody can be asked: {request.verdict.reason} "
            f"{way} another --permission-mode."
        )
        raise CannotAsk(message)

    async def answer(self, question: Question) -> str:
        message = f"The model asked “{question.text}” and nobody can answer. Say it in the prompt and run again."
        raise CannotAsk(message)
