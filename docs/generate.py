"""Writes the pages of the documentation that the program itself knows best: settings, events, commands, exit codes.

`python docs/generate.py` writes them, `python docs/generate.py --check` fails when one has drifted.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import itertools
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path

import msgspec

from mycode.config.settings import Settings
from mycode.core import errors, events

DOCS = Path(__file__).parent


_SETTINGS_INTRO = """\
`mycode` reads TOML. Highest first: the machine's `/etc/mycode/settings.toml`, the command line, `MYCODE_*` variables,
`.mycode/settings.local.toml` and `.mycode/settings.toml` of a trusted project (they may tighten, never loosen), your own
`settings.toml`, the defaults below. `mycode config show --origin` says where each value came from. Any key can be set for one
run by `--set context.auto.trigger_ratio=0.75`, or by a variable: `MYCODE_CONTEXT__AUTO__TRIGGER_RATIO=0.75`.
"""
_EVENTS_INTRO = """\
Everything that can be seen happening arrives as one of these values. Front ends consume them, nobody prints from below.
Each is a plain value that survives JSON; `type` tells them apart. New kinds may appear: ignore what you do not know.
"""


def pages() -> dict[str, str]:
    """File name -> whole text of every generated page."""
    return {
        "settings.md": settings_page(),
        "events.md": events_page(),
        "commands.md": commands_page(),
        "exit-codes.md": exit_codes_page(),
    }


def settings_page() -> str:
    parts = [
        "# Settings\n",
        _SETTINGS_INTRO,
    ]
    for path, table in _tables(Settings, ()):
        fields = [field for field in msgspec.structs.fields(table) if not _is_table(field.type)]
        name = ".".join(path)
        parts.append(f"## `[{name}]`\n\n{_first_line(table, name)}\n" if path else "")
        if not fields:
            continue
        said = _attribute_docs(table)
        rows = ["| key | default | meaning |", "|---|---|---|"]
        for field in fields:
            default = "unset" if field.default is None else _toml(field.default)
            meaning = " ".join(part for part in (said.get(field.name, ""), _choices(field.type)) if part)
            rows.append(f"| `{field.name}` | `{default}` | {meaning} |")
        parts.append("\n".join(rows) + "\n")
    return "\n".join(part for part in parts if part)


def events_page() -> str:
    parts = [
        "# Events\n",
        _EVENTS_INTRO,
    ]
    for kind in typing.get_args(events.Event):
        parts.append(f"## `{kind.__struct_config__.tag}`\n")
        text = inspect.cleandoc(kind.__doc__ or "")
        if text and not text.startswith(kind.__name__ + "("):
            parts.append(text + "\n")
        rows = ["| field | type |", "|---|---|"]
        rows += [f"| `{name}` | `{_type_name(hint)}` |" for name, hint in typing.get_type_hints(kind).items()]
        parts.append("\n".join(rows) + "\n")
    parts.append("# The values inside\n")
    for struct in _values(typing.get_args(events.Event)):
        parts.append(f"## `{struct.__name__}`\n")
        text = inspect.cleandoc(struct.__doc__ or "")
        if text and not text.startswith(struct.__name__ + "("):
            parts.append(text + "\n")
        rows = ["| field | type |", "|---|---|"]
        rows += [f"| `{name}` | `{_type_name(hint)}` |" for name, hint in typing.get_type_hints(struct).items()]
        parts.append("\n".join(rows) + "\n")
    parts.append(_STREAM_JSON)
    return "\n".join(parts)


_STREAM_JSON = """\
# `--output-format stream-json`

One JSON object a line, `type` first, each with `session_id` and an ISO `timestamp`.

| line | when | main fields |
|---|---|---|
| `system` / `init` | first | `cwd`, `model`, `tools`, `permissionMode` |
| `user` | the prompt, and each tool result | `message.content[]` of `text` or `tool_result` blocks, `uuid` |
| `assistant` | each whole answer of the model | `message.content[]` of `thinking`, `text`, `tool_use` blocks, `message.usage`, `uuid` |
| `stream_event` | only with `--include-partial-messages` | `event.type` = `text_delta` or `thinking_delta` |
| `system` / `compact_boundary` | a summary was laid | `compact_metadata`: `trigger`, `reason`, `depth`, `pre_tokens`, `post_tokens` |
| `system` / `context_masked` | old tool results were shortened | `pre_tokens`, `post_tokens` |
| `system` / `api_retry` | the request is tried again | `attempt`, `max_retries`, `retry_delay_ms`, `error_status`, `error` |
| `system` / `permission_asked`, `permission_denied` | a call needed an approval, or was refused | `tool_use_id`, `title`, `reason` |
| `system` / `informational` | a warning | `message` |
| `result` | last | `subtype`, `is_error`, `exit_code`, `result`, `error`, `num_turns`, `duration_ms`, `total_cost_usd`, `usage`, `permission_denials` |

`total_cost_usd` is `null` when a price is unknown, never 0. `--output-format json` prints the `result` object alone.
"""


def commands_page() -> str:
    parts = ["# Commands\n", "## From the shell\n"]
    for words, text in _shell_commands():
        parts.append(f"### `{' '.join(words)}`\n\n```text\n{text}\n```\n")
    parts.append("## In a chat\n\nType `/help NAME` for one of them with examples.\n")
    parts.append(_slash_commands())
    return "\n".join(parts)


def exit_codes_page() -> str:
    listing = inspect.cleandoc(errors.__doc__ or "").split("\n", 2)[2].strip("\n")
    return f"""# Exit codes

Only a finished turn, with nothing denied and nothing cut off, exits with 0.

| code | meaning |
|---|---|
| 0 | the turn finished |
| 1 | it failed after retries, was refused, or was cut off at the output limit |
| 2 | the command line is wrong |
| 41 | no key, the provider refuses it, or there is no such model |
| 42 | bad input: no prompt, unreadable file, bad transcript |
| 44 | the sandbox was asked for and cannot start |
| 52 | a setting is wrong |
| 53 | the turn limit (`--max-turns`) was reached |
| 54 | the model repeated itself and nobody wanted it to go on |
| 56 | the budget (`--max-budget-usd`) would have been passed |
| 57 | the turn finished, but a tool call was not permitted |
| 59 | a question had to be put and nobody could be asked |
| 75 | the provider is overloaded, unreachable or limits the rate: worth trying again later |
| 129 | the terminal was closed |
| 130 | interrupted |
| 143 | terminated |

The errors behind them:

```text
{listing}
```
"""


def _shell_commands() -> Iterator[tuple[list[str], str]]:
    import typer

    from mycode.cli.app import app

    def walk(command: typing.Any, words: list[str]) -> Iterator[tuple[list[str], str]]:
        context = command.make_context(" ".join(words), [], resilient_parsing=True, terminal_width=100)
        with context:
            yield words, command.get_help(context).rstrip()
            names = command.list_commands(context) if hasattr(command, "list_commands") else []
            children = [(name, command.get_command(context, name)) for name in names]
        for name, child in children:
            if not child.hidden:
                yield from walk(child, [*words, name])

    yield from walk(typer.main.get_command(app), ["mycode"])


def _slash_commands() -> str:
    from mycode.repl.commands import registry

    rows = ["| command | what it does |", "|---|---|"]
    for command in registry.standard().commands:
        aliases = "".join(f", `/{alias}`" for alias in command.aliases)
        usage = command.usage.replace("|", "\\|")
        rows.append(f"| `{usage}`{aliases} | {command.help} |")
    return "\n".join(rows) + "\n"


_Table = type[msgspec.Struct]


def _tables(table: _Table, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], _Table]]:
    yield path, table
    for field in msgspec.structs.fields(table):
        if _is_table(field.type):
            yield from _tables(field.type, (*path, field.name))


def _is_table(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)


def _first_line(table: type, name: str) -> str:
    line = inspect.cleandoc(table.__doc__ or "").split("\n")[0]
    line = line.removeprefix(f"`[{name}]`: ")
    return line[:1].upper() + line[1:]


def _attribute_docs(table: type) -> dict[str, str]:
    tree = ast.parse(inspect.getsource(importlib.import_module(table.__module__)))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == table.__name__)
    found: dict[str, str] = {}
    for field, following in itertools.pairwise(body):
        match field, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=said)):
                found[name] = " ".join(str(said).split()).replace("|", "\\|")
            case _:
                pass
    return found


def _toml(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case tuple() | list():
            return "[" + ", ".join(_toml(item) for item in value) + "]"
        case _:
            return str(value)


def _values(kinds: tuple[_Table, ...]) -> list[_Table]:
    """The structs that events hold, and those that these hold, each once, in the order of their first mention."""
    found: list[_Table] = []
    waiting: list[object] = [hint for kind in kinds for hint in typing.get_type_hints(kind).values()]
    while waiting:
        hint = waiting.pop(0)
        waiting = [*typing.get_args(hint), *waiting]
        if _is_table(hint) and hint not in found:
            struct = typing.cast("_Table", hint)
            found.append(struct)
            waiting = [*typing.get_type_hints(struct).values(), *waiting]
    return found


def _choices(hint: object) -> str:
    values = _literals(hint)
    return f"One of {', '.join(f'`{value}`' for value in values)}." if values else ""


def _literals(hint: object) -> tuple[object, ...]:
    if typing.get_origin(hint) is typing.Literal:
        return typing.get_args(hint)
    return tuple(value for part in typing.get_args(hint) for value in _literals(part))


def _type_name(hint: object) -> str:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return " or ".join(_type_name(part) for part in typing.get_args(hint))
    if typing.get_origin(hint) is typing.Literal:
        return ", ".join(f'"{value}"' for value in typing.get_args(hint))
    if hint is type(None):
        return "null"
    match typing.get_origin(hint), typing.get_args(hint):
        case builtins.tuple, (item, builtins.Ellipsis):
            return f"list of {_type_name(item)}"
        case builtins.tuple, items:
            return f"list of {', '.join(_type_name(item) for item in items)}"
        case builtins.dict, _:
            return "object"
        case _:
            pass
    if isinstance(hint, type) and not typing.get_args(hint):
        return hint.__name__
    return str(hint).replace("typing.", "")


def main() -> int:
    drifted = []
    for name, text in pages().items():
        file = DOCS / name
        if "--check" in sys.argv[1:]:
            if not file.exists() or file.read_text(encoding="utf-8") != text:
                drifted.append(name)
        else:
            file.write_text(text, encoding="utf-8")
    if drifted:
        sys.stderr.write(f"Drifted from the program: {', '.join(drifted)}. Run python docs/generate.py.\n")
    return 1 if drifted else 0


if __name__ == "__main__":
    sys.exit(main())
