"""The tools are found by name and described to the model in few words."""

import json
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from mycode.core.models import ToolSpec
from mycode.core.tools import Found
from mycode.llm.tokens import Tokens
from mycode.tools.processes import Processes
from mycode.tools.registry import Registry, builtin_tools, parameters
from mycode.tools.todo import TodoList
from mycode.tools.workspace import Workspace
from tests.support.tool_doubles import ScriptedApprover

GOLDEN = Path(__file__).parents[1] / "data" / "tools.json"
TOKENS_OF_ALL_TOOLS = 1_500


class NothingToRecall:
    def search(self, query: str, limit: int = 8) -> tuple[Found, ...]:
        return ()

    def expand(self, handle: str) -> str:
        return ""


@pytest.fixture
def registry(workspace: Path) -> Registry:
    return builtin_tools(
        Workspace(workspace),
        processes=Processes(workspace, {}, lambda argv, _: argv),
        approver=ScriptedApprover(),
        todo=TodoList(),
        recall=NothingToRecall(),
        limit=lambda: 10_000,
    )


def test_what_the_model_reads_of_the_tools_is_reviewed(registry: Registry) -> None:
    """A change of a description or schema is a change of the product: write the new text into the golden file."""
    told = json.loads(msgspec.json.encode(registry.specs()))
    assert told == json.loads(GOLDEN.read_text())


def test_all_tools_together_are_small(registry: Registry) -> None:
    counter = Tokens("gpt-5")
    counter.load()
    assert counter.exact
    functions = [{"type": "function", "function": json.loads(msgspec.json.encode(spec))} for spec in registry.specs()]
    assert counter.count(json.dumps(functions, ensure_ascii=False)) < TOKENS_OF_ALL_TOOLS


def test_the_same_tools_give_the_same_bytes(registry: Registry) -> None:
    assert msgspec.json.encode(registry.specs()) == msgspec.json.encode(registry.specs())


def test_every_schema_is_flat_and_says_what_is_required(registry: Registry) -> None:
    for spec in registry.specs():
        text = json.dumps(spec.parameters)
        assert spec.parameters["type"] == "object", spec.name
        assert not any(noise in text for noise in ("$ref", "$defs", "anyOf", '"title"', '"default"')), spec.name


def test_misspelt_names_find_their_nearest(registry: Registry) -> None:
    assert registry.nearest("Read_File")[0] == "read_file"
    assert registry.nearest("bash")[0] == "execute_bash"
    assert registry.nearest("zzzzzz") == ()
    assert registry.get("read_fil") is None


def test_two_tools_of_one_name_are_refused(registry: Registry) -> None:
    tool = registry.get("todo")
    with pytest.raises(ValueError, match="two tools are named todo"):
        Registry([tool, tool])


class Inner(Struct, frozen=True):
    """Not for the model."""

    name: Annotated[str, Meta(description="Told")]


class Outer(Struct, frozen=True):
    """Not for the model either."""

    inner: Inner
    many: tuple[Inner, ...] = ()
    maybe: int | None = None
    either: int | str = 1
    kind: Literal["a", "b"] = "a"


def test_schemas_keep_what_a_model_needs_and_nothing_else() -> None:
    inner = {
        "type": "object",
        "properties": {"name": {"description": "Told", "type": "string"}},
        "required": ["name"],
    }
    assert parameters(Outer) == {
        "type": "object",
        "properties": {
            "inner": inner,
            "many": {"type": "array", "items": inner},
            "maybe": {"type": "integer"},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "kind": {"enum": ["a", "b"], "type": "string"},
        },
        "required": ["inner"],
    }


def test_a_spec_is_the_tools_name_words_and_schema(registry: Registry) -> None:
    tool = registry.get("read_file")
    assert tool is not None
    assert registry.specs()[0] == ToolSpec("read_file", tool.description, parameters(tool.Args))
