"""What a tool call is about, whatever agent made it: its family, and the file, command or pattern it names."""

from __future__ import annotations

import re
from typing import Literal

import msgspec
from msgspec import Struct

from mycode.core.messages import ToolCall

Family = Literal[
    "read", "write", "edit", "bash", "search", "list", "todo", "ask", "recall", "fetch", "task", "plan", "other"
]


class CallFacts(Struct, frozen=True):
    """The arguments of a call in one vocabulary; empty text and tuples where it names none.

    `paths` are all files it works on, the first one the most telling; `detail` is what a person would add to the name.
    """

    tool: str
    family: Family
    paths: tuple[str, ...] = ()
    command: str = ""
    pattern: str = ""
    detail: str = ""
    first_line: int = 0
    last_line: int = 0
    arguments: dict[str, object] = {}

    @property
    def path(self) -> str:
        return self.paths[0] if self.paths else ""

    @property
    def target(self) -> str:
        """The one thing this call is about."""
        return self.command or self.path or self.pattern or self.detail


def read_call(call: ToolCall) -> CallFacts:
    """Reads a call's arguments; arguments that are no JSON object are taken as plain text."""
    arguments = decode(call.arguments)
    name = call.name.rpartition("__")[2] if call.name.startswith("mcp__") else call.name
    key = re.sub(r"[^a-z]", "", name.lower())
    family: Family = _FAMILIES.get(key) or _by_shape(key, arguments)
    command = _command(arguments)
    if call.name == "str_replace_editor" or key in {"strreplacebasededittool", "editor", "texteditor"}:
        family = _EDITOR.get(_text(arguments, "command"), "edit")
        command = ""
    paths = _paths(arguments)
    if paths and command in _EDITOR and family in {"bash", "edit", "write"}:
        family, command = _EDITOR[command], ""
    if key == "applypatch" or (family == "bash" and "*** Begin Patch" in command):
        patch = command or _text(arguments, "patch", "input", "raw", "diff", "text")
        found = re.findall(r"^(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ b/)(.+?)\s*$", patch, re.MULTILINE)
        return CallFacts(call.name, "edit", tuple(dict.fromkeys(found)) or paths, arguments=arguments)
    if family == "bash" and not command:
        command = _text(arguments, "raw", "input", "code", "script", "chars")
    first, last = _line_range(arguments)
    return CallFacts(
        call.name,
        family,
        paths,
        command if family in {"bash", "other"} else "",
        _text(arguments, "pattern", "query", "regex", "search_term", "search", "q", "glob", "glob_pattern"),
        _detail(arguments),
        first,
        last,
        arguments,
    )


def decode(arguments: str) -> dict[str, object]:
    """The JSON object of a call's arguments, also one that was encoded twice; anything else stands under `raw`."""
    value: object = arguments
    for _ in range(2):
        try:
            value = msgspec.json.decode(value) if isinstance(value, str) else value
        except (msgspec.DecodeError, UnicodeError):
            break
    if isinstance(value, dict):
        return value
    value = value if isinstance(value, str) else arguments
    return {"raw": value} if value.strip() else {}


def items_of(arguments: dict[str, object]) -> list[dict[str, object]]:
    """The items of a list of things to do, also when the list itself came as JSON text."""
    found = next((value for name in ("todos", "items", "plan") if (value := arguments.get(name))), None)
    if isinstance(found, str):
        try:
            found = msgspec.json.decode(found)
        except (msgspec.DecodeError, UnicodeError):
            return []
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def only_looks(command: str) -> bool:
    """Whether a command only looked for something: what it did not find is an answer, no error to be solved."""
    steps = [step.strip() for step in _SEPARATOR.split(command) if step.strip()]
    return bool(steps) and all(_LOOK.match(step) for step in steps)


def arguments_text(arguments: str) -> str:
    """The values of a call's arguments as a reader sees them: unescaped, one per line, keys left out."""
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeError):
        return arguments
    return _flat(value)


def files_of_command(command: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files a shell command reads, and those it writes, as far as its plain words show it."""
    reads: list[str] = []
    writes = [path for path in _REDIRECT.findall(command) if _looks_like_file(path)]
    head = command.split("<<", 1)[0]
    for part in _SEPARATOR.split(head):
        found = part.split()
        while found and ("=" in found[0] or found[0] in {"sudo", "time", "env", "command"}):
            found = found[1:]
        if not found:
            continue
        program = found[0].rpartition("/")[2]
        names = [word.strip("'\"") for word in found[1:] if not word.startswith("-")]
        if program in _READERS:
            if program == "sed" and any(word == "-i" or word.startswith("-i") for word in found[1:3]):
                writes += [name for name in names[1:] if _looks_like_file(name)]
            else:
                reads += [name for name in names if _looks_like_file(name) and name not in writes]
        elif program in {"tee", "touch"}:
            writes += [name for name in names if _looks_like_file(name)]
        elif program in {"mv", "cp"} and len(names) == 2:
            reads, writes = [*reads, names[0]], [*writes, names[1]]
        elif program == "rm":
            writes += [name for name in names if _looks_like_file(name)]
    return tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(writes))


_TOOLS: dict[Family, str] = {
    "read": (
        "readfile read view viewfile openfile open cat notebookread readmanyfiles readmultiplefiles readfiles "
        "viewimage fsread"
    ),
    "write": "createfile write writefile create writetofile newfile savefile fswrite",
    "edit": (
        "editfile edit multiedit strreplace applydiff replaceinfile searchreplace notebookedit insert replace "
        "applypatch patch strreplaceeditor strreplacebasededittool insertedit replacestringinfile "
        "searchandreplace editnotebook editblock replacefilecontent multireplacefilecontent replaceinfilecontent "
        "applyedit updatefile texteditor editor"
    ),
    "bash": (
        "executebash bash shell localshell runcommand execcommand terminal runterminalcmd executecommand "
        "runshellcommand shellcommand exec run ipython runinterminal writestdin powershell python runcmd "
        "localshellcall containerexec executeipythoncell runpython runcode codeexecution bashcodeexecution "
        "runterminalcommand executeshellcommand startprocess"
    ),
    "search": (
        "grep searchfiles search searchcode codebasesearch grepsearch ripgrep rg searchdir searchfilecontent "
        "findinfiles semanticsearch searchfile"
    ),
    "list": "listfiles ls glob listdir listdirectory filesearch findfile findfiles tree globfiles find",
    "todo": (
        "todo todowrite todoread updateplan taskcreate taskupdate tasklist updatetodos updatetodolist managetodolist"
    ),
    "ask": "askuser askuserquestion askfollowupquestion requestuserinput",
    "recall": "historysearch historyexpand",
    "fetch": "fetch webfetch websearch fetchurl browse readurl httprequest urlfetch",
    "task": "task agent dispatchagent subagent spawnagent taskoutput skill",
    "plan": "exitplanmode enterplanmode plan think",
}
"""Names of tools without case and signs, by what they do; whatever agent they come from."""
_FAMILIES: dict[str, Family] = {name: family for family, names in _TOOLS.items() for name in names.split()}
_EDITOR: dict[str, Family] = {
    "view": "read",
    "create": "write",
    "str_replace": "edit",
    "insert": "edit",
    "undo_edit": "edit",
}
_PATH_KEYS = (
    *("path", "file_path", "filePath", "filepath", "file", "filename", "notebook_path", "target_file"),
    *("absolute_path", "relative_path", "file_name", "uri", "TargetFile", "AbsolutePath", "relative_workspace_path"),
    *("FilePath", "fileName", "path_to_file", "DirectoryPath"),
)
_ONE_INDEXED = ("start_line_one_indexed", "end_line_one_indexed_inclusive")
_READERS = frozenset({"cat", "sed", "head", "tail", "nl", "less", "more", "bat", "wc", "awk", "view", "open"})
_REDIRECT = re.compile(r"(?<![0-9&<>])>>?\s*['\"]?([\w@.+/~-]+)")
_SEPARATOR = re.compile(r"&&|\|\||[;|\n]")
_LOOK = re.compile(
    r"(?:cd|pwd|echo|printf|ls|cat|head|tail|sed -n|grep|egrep|fgrep|rg|ag|find|fd|wc|stat|file|tree|which|type|nl|sort"
    r"|uniq|cut|command -v|test|\[|true|git (?:log|status|diff|show|blame|branch))(?:\s|$)"
)
_FILE_LIKE = re.compile(
    r"[\w@.+~/-]*[\w-]\.[A-Za-z]\w{0,9}|[\w@.+~-]*/[\w@.+~/-]*\w|Makefile|Dockerfile|Gemfile|Rakefile"
)


def _looks_like_file(word: str) -> bool:
    return word != "/dev/null" and _FILE_LIKE.fullmatch(word) is not None


def _by_shape(key: str, arguments: dict[str, object]) -> Family:
    """The family of a tool nobody told us about, from the arguments it takes and the words in its name."""
    if "command" in arguments or "cmd" in arguments:
        return "bash"
    has_path = any(name in arguments for name in _PATH_KEYS)
    if has_path and any(
        name in arguments for name in ("old_string", "old_str", "new_string", "new_str", "diff", "edits")
    ):
        return "edit"
    if has_path and any(name in arguments for name in ("content", "contents", "file_text", "text")):
        return "write"
    if any(word in key for word in ("search", "grep", "query")) and _text(arguments, "pattern", "query", "q", "regex"):
        return "search"
    if has_path and any(word in key for word in ("read", "view", "cat", "open", "get")):
        return "read"
    if "url" in arguments:
        return "fetch"
    return "other"


def _command(arguments: dict[str, object]) -> str:
    for name in ("command", "cmd", "commands", "script"):
        value = arguments.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            parts = [str(part) for part in value]
            if len(parts) >= 3 and parts[0].rpartition("/")[2] in {"bash", "sh", "zsh"} and parts[1].startswith("-"):
                return parts[2]
            return " ".join(parts)
        if isinstance(value, dict):
            return _command(value)
    action = arguments.get("action")
    return _command(action) if isinstance(action, dict) else ""


def _paths(arguments: dict[str, object]) -> tuple[str, ...]:
    for name in _PATH_KEYS:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return (value,)
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return tuple(value)
    found = arguments.get("paths") or arguments.get("files") or arguments.get("file_paths")
    if isinstance(found, list):
        named = (item if isinstance(item, str) else _text(item, *_PATH_KEYS) for item in found)
        return tuple(path for path in named if path)
    directory = _text(arguments, "directory", "dir", "dir_path", "cwd_path")
    return (directory,) if directory else ()


def _line_range(arguments: dict[str, object]) -> tuple[int, int]:
    both = arguments.get("view_range") or arguments.get("line_range")
    if isinstance(both, list) and len(both) == 2 and all(isinstance(n, int) for n in both):
        return int(both[0]), max(0, int(both[1]))
    first = _number(arguments, "offset", "start_line", "line", "start", "StartLine", "startLine", *_ONE_INDEXED[:1])
    last = _number(arguments, "end_line", "end", "EndLine", "endLine", *_ONE_INDEXED[1:])
    if first and not last and (limit := _number(arguments, "limit", "lines", "num_lines")):
        last = first + limit - 1
    return first, last


def _number(arguments: dict[str, object], *names: str) -> int:
    return next((int(v) for n in names if isinstance(v := arguments.get(n), int) and not isinstance(v, bool)), 0)


def _text(arguments: object, *names: str) -> str:
    if not isinstance(arguments, dict):
        return ""
    return next((v for n in names if isinstance(v := arguments.get(n), str) and v), "")


def _detail(arguments: dict[str, object]) -> str:
    named = _text(
        arguments, "url", "description", "question", "title", "subject", "name", "handle", "id", "prompt", "raw"
    )
    if named:
        return " ".join(named.split())
    return " ".join(_flat(arguments).split())[:80]


def _flat(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(_flat(item) for item in value.values())
    if isinstance(value, list):
        return "\n".join(_flat(item) for item in value)
    return "" if value is None or isinstance(value, bool) else str(value)
