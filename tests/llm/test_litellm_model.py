"""What litellm sends and does on our behalf, and what it must not do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mycode.core.messages import AssistantMessage, ContextNote, ToolResult, UserMessage
from mycode.llm.catalog import describe
from mycode.llm.litellm_model import LitellmModel
from tests.llm.conftest import ask, collect
from tests.support.script import call, say
from tests.support.scripted_server import ScriptedServer

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
async def claude(_litellm: None) -> AsyncIterator[Any]:
    models: list[LitellmModel] = []

    def open_claude(server: ScriptedServer) -> LitellmModel:
        models.append(LitellmModel(describe("anthropic/claude-opus-5"), api_base=server.root, api_key="key"))
        return models[-1]

    yield open_claude
    for model in models:
        await model.aclose()


async def test_cache_marks_reach_the_wire_on_system_tools_and_the_last_stable_message(claude: Any) -> None:
    async with ScriptedServer([say("Hello.")]) as server:
        await collect(claude(server), ask("", UserMessage("hi"), ContextNote("todo", "footer")))
    body = server.asked[0].body
    mark = {"type": "ephemeral"}
    assert body["system"][-1]["cache_control"] == mark
    assert body["tools"][-1]["cache_control"] == mark
    assert [part.get("cache_control") for part in body["messages"][-1]["content"]] == [mark, None]


async def test_signed_thinking_is_sent_back_with_the_results_of_its_calls(claude: Any) -> None:
    async with ScriptedServer([call("read_file", {"path": "a"}, reasoning="hm"), say("Done.")]) as server:
        model = claude(server)
        first = (await collect(model))[-1]
        assert isinstance(first, AssistantMessage)
        await collect(model, ask("", UserMessage("hi"), first, ToolResult(first.tool_calls[0].id, "text")))
    content = server.asked[1].body["messages"][1]["content"]
    assert content[0] == {"type": "thinking", "thinking": "hm", "signature": "signed"}
    assert content[-1]["type"] == "tool_use"


async def test_the_price_of_the_table_makes_the_cost(claude: Any) -> None:
    async with ScriptedServer([say("Hello.")]) as server:
        message = (await collect(claude(server)))[-1]
    assert isinstance(message, AssistantMessage)
    assert message.usage is not None
    assert message.usage.cost_usd is not None
    assert message.usage.cost_usd > 0


def test_importing_it_is_silent_and_reads_no_env_file_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPENAI_BASE_URL=http://hostile.example\nPLANTED=1\n")
    program = (
        "import os\n"
        "from mycode.llm.litellm_model import warm\n"
        "warm('openai/gpt-5')\n"
        "assert 'PLANTED' not in os.environ and 'OPENAI_BASE_URL' not in os.environ\n"
        "print('done')\n"
    )
    run = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (run.stdout, run.stderr) == ("done\n", "")
