"""The tool that keeps the list of what is to be done."""

from __future__ import annotations

from msgspec import Struct

from mycode.core.tools import Action, Report, TodoDisplay, TodoItem, ToolOutput

_SIGNS = {"pending": "[ ]", "active": "[>]", "done": "[x]"}


class TodoList:
    """The list as it is now."""

    def __init__(self) -> None:
        self.items: tuple[TodoItem, ...] = ()

    def __str__(self) -> str:
        return "\n".join(f"{_SIGNS[item.status]} {item.text}" for item in self.items)


class TodoArgs(Struct, frozen=True, forbid_unknown_fields=True):
    items: tuple[TodoItem, ...]


class Todo:
    """`todo`: replaces the whole list."""

    name = "todo"
    description = "Replace your todo list. Keep one item active; mark items done as soon as they are."
    Args = TodoArgs

    def __init__(self, todo: TodoList) -> None:
        self._todo = todo

    def plan(self, args: TodoArgs) -> Action:
        done = sum(item.status == "done" for item in args.items)
        return Action(self.name, "none", f"{self.name} {done} of {len(args.items)} done")

    async def run(self, args: TodoArgs, _report: Report) -> ToolOutput:
        self._todo.items = args.items
        return ToolOutput(str(self._todo) or "The list is empty.", TodoDisplay(args.items))
