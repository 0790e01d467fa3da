"""The providers that speak chat completions: where they are, which key they want, what they want said differently.

Names are litellm's. Everything that is not in this table goes through litellm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct


class Provider(Struct, frozen=True):
    """A provider of chat completions: its base URL ends where `/chat/completions` begins.

    `keys` and `bases` are the environment variables that name the key and another base URL, the first set one counts.
    `local` servers need no key. `default` is the model taken when nobody chose one and the key is set.
    """

    name: str
    base: str = ""
    keys: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    default: str = ""
    lane: Literal["direct", "litellm"] = "direct"
    local: bool = False
    output_field: str = "max_tokens"
    usage_option: bool = True
    reasoning_field: str = ""
    json_schema: bool = True
    tool_then_user: bool = True

    def key(self, env: Mapping[str, str]) -> str | None:
        return next((env[name].strip() for name in self.keys if env.get(name, "").strip()), None)

    def base_url(self, env: Mapping[str, str]) -> str:
        return next((env[name].strip() for name in self.bases if env.get(name, "").strip()), self.base)


# In the order in which a key is looked for when no model was chosen.
PROVIDERS: dict[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider(
            "anthropic",
            "https://api.anthropic.com",
            ("ANTHROPIC_API_KEY",),
            ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
            "claude-sonnet-5-5",
            lane="litellm",
        ),
        Provider(
            "openai",
            "https://api.openai.com/v1",
            ("OPENAI_API_KEY",),
            ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
            "gpt-6-sol",
            output_field="max_completion_tokens",
        ),
        Provider("gemini", "", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), (), "gemini-pro-latest", lane="litellm"),
        Provider(
            "openrouter",
            "https://openrouter.ai/api/v1",
            ("OPENROUTER_API_KEY", "OR_API_KEY"),
            ("OPENROUTER_API_BASE",),
            "openrouter/auto",
            reasoning_field="reasoning",
        ),
        Provider(
            "mistral",
            "https://api.mistral.ai/v1",
            ("MISTRAL_API_KEY",),
            ("MISTRAL_API_BASE", "MISTRAL_BASE_URL"),
            "devstral-latest",
            usage_option=False,
            tool_then_user=False,
        ),
        Provider(
            "deepseek",
            "https://api.deepseek.com/v1",
            ("DEEPSEEK_API_KEY",),
            ("DEEPSEEK_API_BASE",),
            "deepseek-v4-pro",
            reasoning_field="reasoning_content",
            json_schema=False,
        ),
        Provider("xai", "https://api.x.ai/v1", ("XAI_API_KEY",), ("XAI_API_BASE",), "grok-4.7"),
        Provider(
            "moonshot",
            "https://api.moonshot.ai/v1",
            ("MOONSHOT_API_KEY",),
            ("MOONSHOT_API_BASE",),
            "kimi-k3",
            reasoning_field="reasoning_content",
        ),
        Provider(
            "groq", "https://api.groq.com/openai/v1", ("GROQ_API_KEY",), ("GROQ_API_BASE",), "openai/gpt-oss-120b"
        ),
        Provider(
            "cerebras",
            "https://api.cerebras.ai/v1",
            ("CEREBRAS_API_KEY",),
            ("CEREBRAS_API_BASE",),
            "gpt-oss-120b",
            output_field="max_completion_tokens",
        ),
        Provider(
            "together_ai",
            "https://api.together.xyz/v1",
            ("TOGETHERAI_API_KEY", "TOGETHER_AI_TOKEN", "TOGETHER_API_KEY"),
            ("TOGETHER_AI_API_BASE",),
            "openai/gpt-oss-120b",
        ),
        Provider(
            "fireworks_ai",
            "https://api.fireworks.ai/inference/v1",
            ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY", "FIREWORKSAI_API_KEY"),
            ("FIREWORKS_API_BASE",),
            "accounts/fireworks/models/gpt-oss-120b",
        ),
        Provider("deepinfra", "https://api.deepinfra.com/v1/openai", ("DEEPINFRA_API_KEY",), ("DEEPINFRA_API_BASE",)),
        Provider("nebius", "https://api.studio.nebius.ai/v1", ("NEBIUS_API_KEY",), ("NEBIUS_API_BASE",)),
        Provider("sambanova", "https://api.sambanova.ai/v1", ("SAMBANOVA_API_KEY",), ("SAMBANOVA_API_BASE",)),
        Provider(
            "nvidia_nim", "https://integrate.api.nvidia.com/v1", ("NVIDIA_NIM_API_KEY",), ("NVIDIA_NIM_API_BASE",)
        ),
        Provider("zai", "https://api.z.ai/api/paas/v4", ("ZAI_API_KEY",), ("ZAI_API_BASE",)),
        Provider(
            "ollama", "http://127.0.0.1:11434", ("OLLAMA_API_KEY",), ("OLLAMA_API_BASE", "OLLAMA_HOST"), local=True
        ),
        Provider(
            "ollama_chat", "http://127.0.0.1:11434", ("OLLAMA_API_KEY",), ("OLLAMA_API_BASE", "OLLAMA_HOST"), local=True
        ),
        Provider("lm_studio", "http://127.0.0.1:1234/v1", ("LM_STUDIO_API_KEY",), ("LM_STUDIO_API_BASE",), local=True),
        Provider("llamafile", "http://127.0.0.1:8080/v1", ("LLAMAFILE_API_KEY",), ("LLAMAFILE_API_BASE",), local=True),
        Provider(
            "hosted_vllm", "http://127.0.0.1:8000/v1", ("HOSTED_VLLM_API_KEY",), ("HOSTED_VLLM_API_BASE",), local=True
        ),
        Provider("vllm", "http://127.0.0.1:8000/v1", ("VLLM_API_KEY",), ("VLLM_API_BASE",), local=True),
    )
}


class LocalServer(Struct, frozen=True):
    """A model server that is looked for on loopback: `provider` is how its models are named."""

    title: str
    provider: str
    port: int


LOCAL_SERVERS = (
    LocalServer("Ollama", "ollama", 11434),
    LocalServer("LM Studio", "lm_studio", 1234),
    LocalServer("llama.cpp", "llamafile", 8080),
    LocalServer("vLLM", "hosted_vllm", 8000),
)


class Found(Struct, frozen=True):
    """A model that can be used though nobody chose it: its address if it is not the usual one, and why this one."""

    name: str
    api_base: str | None
    why: str


def endpoint(provider: Provider, base: str) -> str:
    """The base URL made whole: a scheme, no slash at its end, and `/v1` where a local server was named without it."""
    url = base.strip().rstrip("/")
    url = url if "://" in url else f"http://{url}"
    url = url.removesuffix("/chat/completions")
    path = url.partition("://")[2].partition("/")[2]
    return f"{url}/v1" if provider.local and not path else url
