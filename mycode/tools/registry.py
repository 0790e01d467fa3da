"""Which tools there are: found by name, described to the model, listed in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from mycode.core.models import ToolSpec
from mycode.core.tools import Approver, Recall, Tool, Veil
from mycode.tools.ask import AskUser
from mycode.tools.edit import EditFile
from mycode.tools.fetch import Fetch
from mycode.tools.files import CreateFile, ReadFile
from mycode.tools.grep import Grep
from mycode.tools.patch import ApplyPatch
from mycode.tools.processes import Processes
from mycode.tools.recall import HistoryExpand, HistorySearch
from mycode.tools.search import ListFiles, SearchFiles
from mycode.tools.shell import ExecuteBash, ShellJob
from mycode.tools.todo import Todo, TodoList
from mycode.tools.workspace import Workspace

AnyTool = Tool[Any]


class Registry:
    """The tools of one session, in the order they were given, which is the order the model reads them in."""

    def __init__(self, tools: Iterable[AnyTool]) -> None:
        self._tools: dict[str, AnyTool] = {}
        for tool in tools:
            if tool.name in self._tools:
                message = f"two tools are named {tool.name}"
                raise ValueError(message)
            self._tools[tool.name] = tool

    def get(self, name: str) -> AnyTool | None:
        return self._tools.get(name)

    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def specs(self) -> tuple[ToolSpec, ...]:
        """What is sent to the model; the same tools give the same bytes."""
        return tuple(ToolSpec(tool.name, tool.description, parameters(tool.Args)) for tool in self._tools.values())

    def nearest(self, name: str) -> tuple[str, ...]:
        """Up to three names like `name`, best first."""
        from difflib import get_close_matches

        folded = {known.casefold(): known for known in self._tools}
        return tuple(folded[match] for match in get_close_matches(name.casefold(), folded, n=3, cutoff=0.4))


def builtin_tools(
    workspace: Workspace,
    *,
    processes: Processes,
    approver: Approver,
    todo: TodoList,
    recall: Recall,
    limit: Callable[[], int],
    timeout: float = 120.0,
    ripgrep: str | None = None,
    veil: Veil | None = None,
    more: Iterable[AnyTool] = (),
) -> Registry:
    """Every tool that belongs to the program: a new one is a line here. `more` come from elsewhere.

    `limit` gives the characters that one result may have, `timeout` the seconds a command may take, `ripgrep` is the
    path of that program,
    `veil` says what searches pass over.
    """
    return Registry(
        [
            ReadFile(workspace, limit),
            CreateFile(workspace),
            EditFile(workspace),
            ApplyPatch(workspace),
            ExecuteBash(processes, timeout),
            ShellJob(processes),
            SearchFiles(workspace, veil),
            Grep(workspace, ripgrep, veil),
            ListFiles(workspace, veil),
            Todo(todo),
            AskUser(approver),
            HistorySearch(recall),
            HistoryExpand(recall),
            Fetch(),
            *more,
        ]
    )


def parameters(args: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments, without references and what only validation needs."""
    root = msgspec.json.schema(args)
    return _plain(root, root.get("$defs", {}))


def _plain(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        told = {key: value for key, value in schema.items() if key not in ("$ref", "$defs")}
        named = definitions[schema["$ref"].rpartition("/")[2]]
        # a struct's docstring is for people, a field's own description for the model
        return _plain({key: value for key, value in named.items() if key != "description"} | told, definitions)
    if "anyOf" in schema:
        kinds = [kind for kind in schema["anyOf"] if kind != {"type": "null"}]
        if len(kinds) == 1:
            rest = {key: value for key, value in schema.items() if key != "anyOf"}
            return _plain({**kinds[0], **rest}, definitions)
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NOISE or value == []:
            continue
        if key == "properties":
            value = {name: _plain(part, definitions) for name, part in value.items()}
        elif key == "items":
            value = _plain(value, definitions)
        elif key == "anyOf":
            value = [_plain(part, definitions) for part in value]
        plain[key] = value
    if "enum" in plain:
        plain.setdefault("type", "string")  # some providers insist
    return plain


_NOISE = frozenset({"title", "default", "$defs", "additionalProperties", "minLength", "minItems", "exclusiveMinimum"})
