"""Which lane a model takes, where it is, and what is found when nobody chose one."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mycode.core.errors import AuthError, ConfigError
from mycode.core.messages import AssistantMessage, Image
from mycode.core.models import Model
from mycode.llm.chat_completions import ChatCompletionsModel
from mycode.llm.connect import Found, ModelChoice, find_model, full_name, open_model, read_image
from mycode.llm.litellm_model import LitellmModel
from mycode.llm.providers import PROVIDERS, LocalServer, endpoint
from mycode.llm.retry import RetryingModel
from tests.llm.conftest import collect
from tests.support.script import say
from tests.support.scripted_server import ScriptedServer, serving

ROOT = Path(__file__).resolve().parents[2]


def lane_of(model: Model) -> type:
    assert isinstance(model, RetryingModel)
    return type(model.inner)


@pytest.mark.parametrize(
    ("choice", "env", "lane"),
    [
        (ModelChoice("openai/gpt-5"), {}, ChatCompletionsModel),
        (ModelChoice("gpt-5"), {}, ChatCompletionsModel),
        (ModelChoice("ollama/llama3.1"), {}, ChatCompletionsModel),
        (ModelChoice("openrouter/openrouter/auto"), {}, ChatCompletionsModel),
        (ModelChoice("anthropic/claude-opus-5"), {}, LitellmModel),
        (ModelChoice("gemini/gemini-2.5-pro"), {}, LitellmModel),
        (ModelChoice("bedrock/some-model"), {}, LitellmModel),
        (ModelChoice("openai/gpt-5-pro"), {}, LitellmModel),  # speaks responses only
        (ModelChoice("openai/gpt-5", transport="litellm"), {}, LitellmModel),
        (ModelChoice("anthropic/x", api_base="http://127.0.0.1:1/v1", transport="direct"), {}, ChatCompletionsModel),
        (ModelChoice("openai/gpt-5"), {"HTTPS_PROXY": "http://proxy:3128"}, LitellmModel),
        (ModelChoice("openai/gpt-5"), {"https_proxy": "x", "no_proxy": ".openai.com"}, ChatCompletionsModel),
        (ModelChoice("ollama/llama3.1"), {"ALL_PROXY": "http://proxy:3128"}, ChatCompletionsModel),
    ],
)
def test_a_model_takes_the_fast_lane_where_it_can(choice: ModelChoice, env: dict[str, str], lane: type) -> None:
    assert lane_of(open_model(choice, env)) is lane


@pytest.mark.parametrize(
    ("name", "base", "whole"),
    [
        ("gpt-5", None, "openai/gpt-5"),
        ("claude-opus-5", None, "anthropic/claude-opus-5"),
        ("my-model", "http://127.0.0.1:1/v1", "openai/my-model"),
        ("meta-llama/Llama-3", "http://127.0.0.1:1/v1", "openai/meta-llama/Llama-3"),
        ("hosted_vllm/meta-llama/Llama-3", "http://127.0.0.1:1/v1", "hosted_vllm/meta-llama/Llama-3"),
    ],
)
def test_a_name_is_made_whole(name: str, base: str | None, whole: str) -> None:
    assert full_name(ModelChoice(name, api_base=base)) == whole


def test_a_name_that_could_be_anybodys_is_asked_back() -> None:
    with pytest.raises(ConfigError, match="Name the provider too"):
        open_model(ModelChoice("my-model"), {})


@pytest.mark.parametrize(
    ("provider", "written", "url"),
    [
        ("openai", "https://proxy.example/v1/", "https://proxy.example/v1"),
        ("openai", "https://proxy.example/v1/chat/completions", "https://proxy.example/v1"),
        ("ollama", "127.0.0.1:11434", "http://127.0.0.1:11434/v1"),
        ("ollama", "http://box:11434/v1", "http://box:11434/v1"),
    ],
)
def test_a_base_url_is_made_whole(provider: str, written: str, url: str) -> None:
    assert endpoint(PROVIDERS[provider], written) == url


async def test_a_missing_key_is_told_by_the_first_request_with_its_variable() -> None:
    for name, variable in (("openai/gpt-5", "OPENAI_API_KEY"), ("anthropic/claude-opus-5", "ANTHROPIC_API_KEY")):
        with pytest.raises(AuthError, match=variable):
            await collect(open_model(ModelChoice(name), {}))


async def test_key_and_base_url_come_from_the_environment() -> None:
    async with ScriptedServer([say("Hello.")]) as server:
        model = open_model(ModelChoice("openai/gpt-5"), {"OPENAI_API_KEY": "k1", "OPENAI_BASE_URL": server.url})
        message = (await collect(model))[-1]
        await model.aclose()
    assert isinstance(message, AssistantMessage)
    assert message.model == "openai/gpt-5"
    assert server.asked[0].headers["authorization"] == "Bearer k1"
    assert server.asked[0].body["model"] == "gpt-5"


async def test_a_local_server_is_asked_without_a_key() -> None:
    async with ScriptedServer([say("Hello.")]) as server:
        model = open_model(ModelChoice("ollama/llama3.1", api_base=server.root), {})
        await collect(model)
        await model.aclose()
    assert "authorization" not in server.asked[0].headers
    assert server.asked[0].path == "/v1/chat/completions"


def test_the_first_provider_whose_key_is_set_is_found() -> None:
    found = find_model({"MISTRAL_API_KEY": "k", "OPENAI_API_KEY": "k", "XAI_API_KEY": " "}, servers=())
    assert found == Found(f"openai/{PROVIDERS['openai'].default}", None, "OPENAI_API_KEY is set")


def test_else_a_server_on_this_machine_is_found() -> None:
    with serving([], models=("nomic-embed-text", "qwen3:8b")) as server, serving([], models=()) as empty:
        servers = (LocalServer("LM Studio", "lm_studio", empty.port), LocalServer("Ollama", "ollama", server.port))
        found = find_model({}, servers=servers, seconds=5)
    assert found == Found("ollama/qwen3:8b", f"http://127.0.0.1:{server.port}/v1", "Ollama runs on this machine")


def test_where_nobody_listens_nothing_is_found() -> None:
    with serving([]) as server:
        pass
    assert find_model({}, servers=(LocalServer("Ollama", "ollama", server.port),)) is None


def test_opening_a_model_on_the_fast_lane_loads_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "import mycode.llm.chat_completions\n"
        "from mycode.llm.connect import ModelChoice, open_model\n"
        "open_model(ModelChoice('openai/gpt-5'), {'OPENAI_API_KEY': 'k'})\n"
        "heavy = {'litellm', 'tiktoken', 'pydantic', 'httpx', 'openai', 'aiohttp', 'email', 'http.client'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_a_picture_that_became_something_else_is_not_sent(tmp_path: Path) -> None:
    file = tmp_path / "a.png"
    file.write_bytes(b"png")
    image = Image(str(file), "image/png", hashlib.sha256(b"png").hexdigest(), 3)
    seen = [read_image(image)]
    file.write_bytes(b"key")
    seen.append(read_image(image))
    file.unlink()
    (tmp_path / "other").write_bytes(b"png")
    file.symlink_to(tmp_path / "other")
    seen.append(read_image(image))
    file.unlink()
    os.mkfifo(file)
    assert [*seen, read_image(image)] == [b"png", None, None, None]
