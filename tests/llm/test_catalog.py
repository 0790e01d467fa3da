"""What is known of models without asking anybody."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import msgspec

from mycode.core.models import ModelInfo, Price
from mycode.llm.catalog import describe, find, provider_of
from mycode.llm.providers import PROVIDERS


def test_a_known_model_has_its_window_limit_price_and_abilities() -> None:
    info = describe("openai/gpt-5")
    assert info == ModelInfo(
        "openai/gpt-5",
        "openai",
        window=272_000,
        output_limit=128_000,
        price=Price(1.25e-6, 1e-5, 1.25e-7),
        vision=True,
        reasoning=True,
    )


def test_an_unknown_model_has_a_guessed_window_and_no_price() -> None:
    info = describe("openai/never-heard-of")
    assert (info.window, info.window_known, info.price) == (128_000, False, None)


def test_what_the_person_sets_wins() -> None:
    info = describe("openai/gpt-5", window=9_000, output_limit=700)
    assert (info.window, info.output_limit, info.window_known) == (9_000, 700, True)


def test_a_price_is_not_borrowed_from_another_provider() -> None:
    assert describe("openrouter/gpt-5").price is None


def test_a_bare_name_belongs_to_its_provider() -> None:
    assert (provider_of("gpt-5"), provider_of("claude-opus-5"), provider_of("never")) == ("openai", "anthropic", None)


def test_each_entry_found_by_scanning_is_the_entry_of_the_table() -> None:
    place = find_spec("litellm")
    assert place is not None
    assert place.origin is not None
    file = Path(place.origin).with_name("model_prices_and_context_window_backup.json")
    table = msgspec.json.decode(file.read_bytes())
    chat = [name for name, entry in table.items() if entry.get("mode") == "chat" and name != "sample_spec"]
    for name in chat[::97]:
        found = find(name)
        assert found is not None, name
        assert found.litellm_provider == table[name]["litellm_provider"]
        assert found.input_cost_per_token == table[name].get("input_cost_per_token")


def test_the_model_taken_for_each_key_is_one_that_the_table_knows() -> None:
    unknown = [
        provider.name
        for provider in PROVIDERS.values()
        if provider.default and not describe(f"{provider.name}/{provider.default}").window_known
    ]
    assert unknown == ["openrouter"]  # its `auto` is a router, not a model
