"""The list of what is to be done is replaced as a whole and can be read by others."""

from mycode.core.tools import TodoDisplay, TodoItem
from mycode.tools.todo import Todo, TodoArgs, TodoList


def _silent(_text: str) -> None:
    return


async def test_the_whole_list_is_replaced_each_time() -> None:
    todo = TodoList()
    tool = Todo(todo)
    await tool.run(TodoArgs((TodoItem("old"),)), _silent)
    items = (TodoItem("read", "done"), TodoItem("edit", "active"), TodoItem("test"))
    output = await tool.run(TodoArgs(items), _silent)
    assert todo.items == items
    assert output.text == "[x] read\n[>] edit\n[ ] test"
    assert output.display == TodoDisplay(items)


async def test_an_empty_list_is_told() -> None:
    todo = TodoList()
    todo.items = (TodoItem("old"),)
    assert (await Todo(todo).run(TodoArgs(()), _silent)).text == "The list is empty."
    assert todo.items == ()


def test_planning_changes_nothing_and_counts() -> None:
    todo = TodoList()
    action = Todo(todo).plan(TodoArgs((TodoItem("a", "done"), TodoItem("b"))))
    assert (action.effect, action.title, todo.items) == ("none", "todo 1 of 2 done", ())
