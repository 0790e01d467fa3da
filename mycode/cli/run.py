"""What one run of the program was asked for: where it works, with which settings and which model."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mycode.agent.environment import repository_root
from mycode.agent.limits import Limits, check_price
from mycode.cli.log import keep_log
from mycode.cli.options import RunOptions, flags
from mycode.config.folders import Folders, find_folders
from mycode.config.load import Loaded, literal, load
from mycode.config.trust import is_trusted
from mycode.core.errors import ConfigError, UsageError
from mycode.core.models import Model, Price
from mycode.core.redact import redact
from mycode.llm.connect import ModelChoice, find_model, open_model
from mycode.permissions.audit import AuditLog
from mycode.session.store import Store

NO_MODEL = """No model to talk to. Three ways to go on:
  1. Set a key, e.g. `export ANTHROPIC_API_KEY=...` or `export OPENAI_API_KEY=...`, and start again.
  2. Start a local server (Ollama, LM Studio, llama.cpp, vLLM), or name one: --model openai/NAME --api-base URL.
  3. Run `mycode demo` to see it work without either."""


class Run:
    """Places, settings and warnings of one run; opens the store and the model when they are first needed."""

    def __init__(self, options: RunOptions, env: Mapping[str, str]) -> None:
        keep_log()
        self.options = options
        self.env = env
        self.cwd = Path.cwd()
        self.root = repository_root(self.cwd) or self.cwd
        self.folders: Folders = find_folders(env)
        self.loaded: Loaded = load(
            self.folders,
            env=env,
            flags=_with_set(flags(options), options.settings),
            project=self.root,
            trusted=is_trusted(self.folders.data, self.root),
        )
        self.settings = self.loaded.settings
        self.warnings = list(self.loaded.warnings)
        self._leaving = contextlib.ExitStack()

    @property
    def limits(self) -> Limits:
        return Limits(self.settings.session.max_steps, self.settings.session.max_budget_usd)

    def open_store(self) -> Store:
        """The sessions on disk; a folder that vanishes with the run when nothing is to be kept."""
        if self.settings.session.persist:
            folder = self.folders.sessions
        else:
            import tempfile

            folder = Path(self._leaving.enter_context(tempfile.TemporaryDirectory(prefix="mycode-")))
        store = Store(
            folder,
            redact=None if self.settings.session.store_secrets else redact,
            typed=self.folders.data / "prompts",
        )
        self._leaving.callback(store.close)
        return store

    def open_model(self, name: str | None = None) -> Model:
        """The model of this run (or another by name). Raises ConfigError with the ways to go on when there is none."""
        if self.options.replay is not None:
            from mycode.llm.scripted import load_cassette

            return load_cassette(self.options.replay)
        table = self.settings.model
        name = name or table.name
        api_base = table.api_base or self.env.get("MYCODE_API_BASE")
        if name is None:
            found = find_model(self.env)
            if found is None:
                raise ConfigError(NO_MODEL)
            name, api_base = found.name, api_base or found.api_base
        choice = ModelChoice(
            name=name,
            api_base=api_base,
            api_key=self.env.get("MYCODE_API_KEY"),
            transport=table.transport,
            context_window=table.context_window,
            output_limit=table.output_limit,
            effort=table.effort,
            price=_price(table.input_price, table.output_price),
            first_byte_timeout=table.first_byte_timeout,
            idle_timeout=table.idle_timeout,
            retry_seconds=table.retry_seconds,
        )
        model = open_model(choice, self.env)
        if self.options.record is not None:
            from mycode.llm.scripted import RecordingModel

            model = RecordingModel(model, self.options.record)
        check_price(self.limits, model.info)
        return model

    def known_models(self) -> list[tuple[str, str]]:
        """(name, why) of the models that could be talked to now: one for each provider whose key is set."""
        from mycode.llm.providers import PROVIDERS

        return [
            (f"{provider.name}/{provider.default}", "key is set")
            for provider in PROVIDERS.values()
            if provider.default and provider.key(self.env)
        ]

    def warm(self, model: Model) -> None:
        """Imports litellm if that is the lane the model takes."""
        from mycode.llm.connect import warm

        warm(model)

    def audit_log(self) -> AuditLog:
        """Where verdicts and approvals are kept."""
        return AuditLog(self.folders.data / "audit.jsonl")

    def close(self) -> None:
        """Lets go of what was opened; a folder that was not to be kept vanishes."""
        self._leaving.close()


def _price(input_price: float | None, output_price: float | None) -> Price | None:
    if input_price is None and output_price is None:
        return None
    return Price(input=(input_price or 0.0) / 1e6, output=(output_price or 0.0) / 1e6)


def _with_set(tree: dict[str, Any], pairs: tuple[str, ...]) -> dict[str, Any]:
    """`--set table.key=value`; the value is a TOML literal, else plain text."""
    for pair in pairs:
        key, equals, text = pair.partition("=")
        *tables, last = key.strip().split(".")
        if not equals or not tables or not last:
            raise UsageError(f"--set {pair}: write it as table.key=value, e.g. --set context.auto.trigger_ratio=0.7.")
        place = tree
        for table in tables:
            place = place.setdefault(table, {})
        place[last] = literal(text)
    return tree
