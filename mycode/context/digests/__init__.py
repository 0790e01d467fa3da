"""The rule-based digest of one tool call and its result: a status, a few key facts, one line."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct, structs

from mycode.context.digests.calls import CallFacts, Family, items_of, only_looks, read_call
from mycode.context.digests.languages import SHOWN, definitions, exports, file_type, imports, tests
from mycode.context.digests.outputs import complaint, exit_code, first_error, plain_output, refusal
from mycode.core.messages import ToolCall, ToolResult

__all__ = [
    "CallFacts",
    "Family",
    "ToolSummary",
    "error_block",
    "exit_code",
    "first_error",
    "line",
    "placeholder",
    "plain_output",
    "read_call",
    "tool_summary",
]

Status = Literal["success", "error", "partial"]
Style = Literal["bracket", "compact"]


class ToolSummary(Struct, frozen=True):
    """What is worth knowing of a call and its result (R6). `error` is the whole error text, empty without one."""

    tool_name: str
    family: Family
    status: Status
    key_facts: tuple[str, ...] = ()
    metadata: dict[str, str | int | bool] = {}
    error: str = ""


def tool_summary(call: ToolCall | None, result: ToolResult | None, *, command_limit: int = 60) -> ToolSummary:
    """Digests any tool's call and result; either may be missing, and no text can make it fail (R7-R11).

    A result that is not there is `partial`: it may have had effects.
    """
    facts = read_call(call) if call else CallFacts("unknown", "other")
    facts = facts if facts.tool.strip() else structs.replace(facts, tool="unknown")
    text = plain_output(result.text) if result else ""
    raw = result.text if result else ""
    failed = bool(result and result.is_error) or (facts.family in _ANSWERING and bool(refusal(raw)))
    match facts.family:
        case "read":
            summary = _read(facts, text, failed=failed)
        case "bash":
            summary = _bash(facts, raw, text, failed=failed, command_limit=command_limit)
        case "search":
            summary = _search(facts, text, failed=failed)
        case "list":
            summary = _list(facts, text, failed=failed)
        case "write":
            summary = _write(facts, text, failed=failed)
        case "edit":
            summary = _edit(facts, text, failed=failed)
        case "todo":
            summary = _todo(facts, text, failed=failed)
        case _:
            summary = _other(facts, text, failed=failed)
    if result is None:
        return ToolSummary(
            summary.tool_name, summary.family, "partial", (*summary.key_facts, "no result"), summary.metadata
        )
    return summary


def line(summary: ToolSummary, *, style: Style = "bracket", limit: int = 200) -> str:
    """The summary as one line: `[✓ tool: fact | fact]`, with ❌ for an error (R12); `compact` is the short prose form.

    Lines are cut at `limit` characters (R33), those of errors are not (C18).
    """
    text = _compact(summary) if style == "compact" else _bracket(summary)
    if len(text) <= limit or summary.status == "error":
        return text
    return text[: max(1, limit - 2)].rstrip(" |,") + "…]"


def error_block(summary: ToolSummary, *, max_chars: int = 2000) -> str:
    """The error text of a failed call, whole up to `max_chars`, then its head and tail (C18)."""
    text = summary.error
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


def placeholder(age: int) -> str:
    """What stands for a tool result that is neither shown nor digested: how many steps ago it was (R34)."""
    return f"[truncated - {age} steps ago]"


_ANSWERING: frozenset[Family] = frozenset({"read", "write", "edit", "search", "list"})
"""Families whose tools say in words that they did not do what they were asked for."""
_PATH = r"(?:[A-Za-z]:\\)?[\w@.+~/\\-]"
_MATCH_LINE = re.compile(rf"^(?:\./)?({_PATH}+)[:-]\d+([:-])", re.MULTILINE)
_FILE_LINE = re.compile(rf"^(?:\./|File: |```\d+:\d+:)?({_PATH}*[\w-]\.[A-Za-z]\w{{0,9}})(?::\d+)?:?\s*$", re.MULTILINE)
_FILE_PREFIX = re.compile(rf"^(?:\./)?({_PATH}*[\w-]\.[A-Za-z]\w{{0,9}}):", re.MULTILINE)
_FILE_NAME = re.compile(r"\.[A-Za-z]\w{0,9}$")
_BARE_LINE = re.compile(r"^\s{0,4}(?:L(?:ine )?)?\d+:", re.MULTILINE)
_COUNT = re.compile(r"\b[Ff]ound (\d+) (?:total )?(?:match|occurrence|result)")
_NOTHING = re.compile(r"\s*(?:no (?:match|file|result|entr)|found 0 |0 (?:match|file|result)|nothing )", re.IGNORECASE)
_FOLDER = re.compile(r"\s*Here's the files and directories\b[^\n]*\n")
_BLOCK = re.compile(r"^<{5,9} ?SEARCH[^\n]*\n(.*?)\n?^={5,9}\n(.*?)\n?^>{5,9} ?REPLACE", re.MULTILINE | re.DOTALL)


def _lines(text: str) -> int:
    return text.count("\n") + 1 if text else 0


def _failure(facts: CallFacts, key_facts: list[str], text: str) -> ToolSummary:
    reason = first_error(text) or text.strip().split("\n", 1)[0]
    if reason:
        key_facts.append(f"Error: {reason[:100]}")
    metadata: dict[str, str | int | bool] = {"has_error": True}
    if facts.path:
        metadata["path"] = facts.path
    return ToolSummary(facts.tool, facts.family, "error", tuple(key_facts), metadata, text)


def _read(facts: CallFacts, text: str, *, failed: bool) -> ToolSummary:
    if _FOLDER.match(text):
        return _list(facts, text.partition("\n")[2], failed=failed)
    path = facts.path or facts.detail or "unknown"
    key_facts = [f"File: {path}"]
    if failed:
        return _failure(facts, key_facts, text)
    language, count = file_type(path), _lines(text)
    found = [name for name in tests(text, language) if name]
    if facts.first_line > 1 or facts.last_line:
        first = max(1, facts.first_line)
        key_facts.append(f"Range: {first}-{max(first, min(facts.last_line or first + count - 1, first + count - 1))}")
    key_facts += [f"Lines: {count}", f"Type: {language}"]
    if language in {"typescript", "javascript"}:
        names, label = exports(text)[:5], "Exports"
    else:
        names, label = [name for name in definitions(text, language) if name not in found][:5], "Defines"
    if names:
        key_facts.append(f"{label}: {', '.join(names)}")
    if modules := imports(text, language):
        key_facts.append(f"Imports: {modules} modules")
    if found:
        key_facts.append(f"Tests: {len(found)}")
    return ToolSummary(
        facts.tool,
        "read",
        "success",
        tuple(key_facts),
        {
            "path": path,
            "lines": count,
            "type": language,
            "has_exports": "export " in text,
            "has_imports": "import " in text,
        },
    )


def _bash(facts: CallFacts, raw: str, text: str, *, failed: bool, command_limit: int) -> ToolSummary:
    command = " ".join(facts.command.split()) or "unknown"
    code = exit_code(raw)
    error = complaint(text) if code is None and not failed and only_looks(facts.command) else first_error(text)
    count = _lines(text)
    shown = command if len(command) <= command_limit else command[: command_limit - 1].rstrip() + "…"
    key_facts = [f"Command: {shown}", f"Exit: {'unknown' if code is None else code}", f"Output: {count} lines"]
    if code is not None:
        status: Status = "error" if code else "success"
    elif failed or error:
        status = "error"
    else:  # an exit code nobody told is no success (C17)
        status = "partial" if facts.tool == "execute_bash" else "success"
    if status == "error" and not error:
        rows = (row.strip() for row in reversed(text.split("\n")))
        error = next((row for row in rows if row and exit_code(row) is None), "")
    if error:
        key_facts.append(f"Error: {error[:100]}")
    metadata: dict[str, str | int | bool] = {
        "command": facts.command or "unknown",
        "exit_code": "unknown" if code is None else code,
        "output_lines": count,
        "has_error": bool(error),
    }
    return ToolSummary(facts.tool, "bash", status, tuple(key_facts), metadata, text if status == "error" else "")


def _search(facts: CallFacts, text: str, *, failed: bool) -> ToolSummary:
    pattern = facts.pattern or facts.detail or "unknown"
    key_facts = [f'Pattern: "{pattern}"']
    if failed:
        return _failure(facts, key_facts, text)
    matches, files = _matches(text)
    if matches and not files and _FILE_NAME.search(facts.path):
        files = [facts.path]  # in one file, a search does not name it
    key_facts += [f"Matches: {matches}", f"Files: {len(files)}"]
    if files:
        key_facts.append(f"Top files: {', '.join(files[:3])}")
    return ToolSummary(
        facts.tool,
        "search",
        "success" if matches else "partial",
        tuple(key_facts),
        {"pattern": pattern, "match_count": matches, "file_count": len(files), "top_files": ", ".join(files[:3])},
    )


def _matches(text: str) -> tuple[int, list[str]]:
    """How many matches a search tells of, and in which files: by `file:line:`, by names, by lines, or in words."""
    if _NOTHING.match(text):
        return 0, []
    rows = _MATCH_LINE.findall(text)
    counted = sum(1 for _, sign in rows if sign == ":") or len(rows)
    files = [path for path, _ in rows] or _FILE_LINE.findall(text) or _FILE_PREFIX.findall(text)
    if not rows:
        counted = len(_BARE_LINE.findall(text)) or len(files) or sum(1 for row in text.split("\n") if row.strip())
    if told := _COUNT.search(text):
        counted = int(told[1])
    return counted, list(dict.fromkeys(files))


def _list(facts: CallFacts, text: str, *, failed: bool) -> ToolSummary:
    where = facts.pattern or facts.path or facts.detail or "."
    if failed:
        return _failure(facts, [f"Path: {where}"], text)
    names = [row.strip().removeprefix("- ") for row in text.split("\n") if row.strip()]
    found = 0 if len(names) == 1 and _NOTHING.match(names[0]) else len(names)
    key_facts = [f"Path: {where}", f"Entries: {found}"]
    if found:
        key_facts.append(f"First: {', '.join(names[:3])}")
    return ToolSummary(
        facts.tool, "list", "success" if found else "partial", tuple(key_facts), {"path": where, "entry_count": found}
    )


def _write(facts: CallFacts, text: str, *, failed: bool) -> ToolSummary:
    path = facts.path or "unknown"
    if failed:
        return _failure(facts, [f"File: {path}"], text)
    arguments = facts.arguments
    content = next(
        (v for k in ("content", "contents", "file_text", "text") if isinstance(v := arguments.get(k), str)), ""
    )
    count, language = _lines(content.rstrip("\n")), file_type(path)
    key_facts = [f"File: {path}", f"Lines: {count}", f"Type: {language}"]
    names = exports(content) if language in {"typescript", "javascript"} else definitions(content, language)
    if names:
        key_facts.append(f"Defines: {', '.join(names[:5])}")
    return ToolSummary(
        facts.tool, "write", "success", tuple(key_facts), {"path": path, "lines": count, "type": language}
    )


def _edit(facts: CallFacts, text: str, *, failed: bool) -> ToolSummary:
    path = ", ".join(facts.paths[:3]) or "unknown"
    if failed:
        return _failure(facts, [f"File: {path}"], text)
    if facts.arguments.get("command") == "undo_edit":
        return ToolSummary(
            facts.tool, "edit", "success", (f"File: {path}", "Undone"), {"path": facts.path or "unknown"}
        )
    added, removed, edits = _change(facts.arguments)
    key_facts = [f"File: {path}", f"Changed: +{added} -{removed} lines"]
    if edits > 1:
        key_facts.append(f"Edits: {edits}")
    return ToolSummary(
        facts.tool,
        "edit",
        "success",
        tuple(key_facts),
        {"path": facts.path or "unknown", "lines_added": added, "lines_removed": removed, "edits": edits},
    )


def _change(arguments: dict[str, object]) -> tuple[int, int, int]:
    """Lines added, lines removed and number of edits, from an edit's arguments."""
    several = arguments.get("edits")
    if isinstance(several, list):
        parts = [_change(item) for item in several if isinstance(item, dict)]
        return sum(p[0] for p in parts), sum(p[1] for p in parts), len(parts)
    old = next((v for k in _OLD_KEYS if isinstance(v := arguments.get(k), str)), "")
    new = next((v for k in _NEW_KEYS if isinstance(v := arguments.get(k), str)), "")
    if old or new:
        return _lines(new), _lines(old), 1
    texts = [v for v in arguments.values() if isinstance(v, str)]
    texts += ["\n".join(map(str, v)) for v in arguments.values() if isinstance(v, list)]
    if blocks := [block for text in texts for block in _BLOCK.findall(text)]:
        return sum(_lines(new) for _, new in blocks), sum(_lines(old) for old, _ in blocks), len(blocks)
    rows = next((text for text in texts if "\n+" in text or "\n-" in text), "").split("\n")
    added = sum(row.startswith("+") and not row.startswith("+++") for row in rows)
    removed = sum(row.startswith("-") and not row.startswith("---") for row in rows)
    return added, removed, max(1, sum(row.startswith("@@") for row in rows[1:]))


_OLD_KEYS = ("old_string", "old_str", "oldText", "old_text", "old", "search", "oldString")
_NEW_KEYS = (
    "new_string",
    "new_str",
    "newText",
    "new_text",
    "new",
    "replace",
    "insert_text",
    "newString",
    "content",
    "code_edit",
)


def _todo(facts: CallFacts, text: str, *, failed: bool) -> ToolSummary:
    if failed:
        return _failure(facts, [], text)
    items = items_of(facts.arguments)
    done = sum(str(item.get("status", "")) in {"done", "completed"} for item in items)
    current = next((item for item in items if str(item.get("status", "")) in {"active", "in_progress"}), None)
    key_facts = [f"Items: {len(items)}", f"Done: {done}"] if items else [facts.detail[:80] or "read"]
    if current:
        key_facts.append(
            "Active: " + str(current.get("text") or current.get("content") or current.get("step") or "")[:80]
        )
    return ToolSummary(facts.tool, "todo", "success", tuple(key_facts), {"items": len(items), "done": done})


def _other(facts: CallFacts, text: str, *, failed: bool) -> ToolSummary:
    key_facts = [fact for fact in (facts.target[:80],) if fact]
    if failed:
        return _failure(facts, key_facts, text)
    count = _lines(text)
    error = first_error(text.split("\n", 1)[0])
    key_facts.append(f"Output: {count} lines")
    if text:
        key_facts.append(" ".join(text.split())[:60])
    return ToolSummary(
        facts.tool,
        facts.family,
        "error" if error else "success",
        tuple(key_facts),
        {"output_lines": count, "has_error": bool(error)},
        text if error else "",
    )


def _bracket(summary: ToolSummary) -> str:
    mark = "❌" if summary.status == "error" else "✓"
    return f"[{mark} {_one_line(summary.tool_name)}: {' | '.join(_one_line(fact) for fact in summary.key_facts)}]"


def _compact(summary: ToolSummary) -> str:
    data = summary.metadata
    failed = "❌ " if summary.status == "error" else ""
    match summary.family:
        case "read" if "lines" in data:
            kind = str(data["type"])
            parts = [f"{data['lines']} lines", SHOWN.get(kind, kind.capitalize())]
            if data.get("has_exports"):
                parts.append("has exports")
            text = f"{summary.tool_name}: {data['path']} ({', '.join(parts)})"
        case "bash" if "command" in data:
            command = summary.key_facts[0].removeprefix("Command: ")
            text = f"bash: {command} | exit {data['exit_code']} | {data['output_lines']} lines output"
        case "search" if "match_count" in data:
            files = str(data["top_files"])
            more = ", ..." if int(data["file_count"]) > 3 else ""
            text = f"search: '{data['pattern']}' | {data['match_count']} matches in {data['file_count']} files"
            text += f": {files}{more}" if files else ""
        case _:
            text = f"{summary.tool_name}: {' | '.join(summary.key_facts)}"
    return f"[{failed}{_one_line(text)}]"


def _one_line(text: str) -> str:
    return " ".join(text.split())
