"""The first request is small: what every conversation pays for, word for word and in tokens."""

import json
from pathlib import Path

from mycode.agent.environment import Environment
from mycode.agent.system_prompt import system_prompt
from mycode.core.tools import Found
from mycode.llm.tokens import Tokens
from mycode.tools.processes import Processes
from mycode.tools.registry import builtin_tools
from mycode.tools.todo import TodoList
from mycode.tools.workspace import Workspace
from tests.support.gates import Person


class NothingSaid:
    """A conversation in which there is nothing to find."""

    def search(self, query: str, limit: int = 8) -> tuple[Found, ...]:
        return ()

    def expand(self, handle: str) -> str:
        return handle


GOLDEN = Path(__file__).parent.parent / "data" / "system_prompt.md"
FACTS = Environment(cwd="/home/ada/project", platform="Linux 6.1", shell="bash", date="2026-01-02", git_branch="main")


def test_the_system_prompt_is_what_was_last_agreed_on() -> None:
    assert system_prompt(FACTS) == GOLDEN.read_text(encoding="utf-8")


def test_system_prompt_and_all_tools_together_stay_under_2500_tokens(workspace: Path) -> None:
    registry = builtin_tools(
        Workspace(workspace),
        processes=Processes(workspace, {}, lambda argv, _cwd: argv),
        approver=Person(),
        todo=TodoList(),
        recall=NothingSaid(),
        limit=lambda: 10_000,
    )
    tools = [
        {"type": "function", "function": {"name": s.name, "description": s.description, "parameters": s.parameters}}
        for s in registry.specs()
    ]
    counter = Tokens()
    counter.load()
    assert counter.exact
    assert counter.count(system_prompt(FACTS)) + counter.count(json.dumps(tools)) < 2_500
