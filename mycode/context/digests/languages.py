"""What a source file defines, by its language: definitions, imports and tests, found by pattern."""

from __future__ import annotations

import re

TYPES = {
    "py": "python", "pyi": "python", "pyx": "python", "ts": "typescript", "tsx": "typescript", "mts": "typescript",
    "cts": "typescript", "js": "javascript", "jsx": "javascript", "mjs": "javascript", "cjs": "javascript", "go": "go",
    "rs": "rust", "java": "java", "kt": "kotlin", "c": "c", "h": "c", "cc": "c++", "cpp": "c++", "cxx": "c++",
    "hpp": "c++", "hh": "c++", "rb": "ruby", "php": "php", "cs": "c#", "swift": "swift", "scala": "scala",
    "sh": "shell", "bash": "shell", "zsh": "shell", "md": "markdown", "rst": "restructuredtext", "json": "json",
    "jsonl": "json", "yaml": "yaml", "yml": "yaml", "toml": "toml", "ini": "ini", "cfg": "ini", "xml": "xml",
    "html": "html", "css": "css", "scss": "css", "sql": "sql", "proto": "protobuf", "txt": "text", "csv": "csv",
}  # fmt: skip
SHOWN = {"typescript": "TypeScript", "javascript": "JavaScript", "php": "PHP", "json": "JSON", "html": "HTML"}


def file_type(path: str) -> str:
    """The language or format that a file's name promises, `text` when it promises none."""
    name = path.rsplit("/", 1)[-1].lower()
    if name in {"dockerfile", "makefile", "rakefile", "gemfile"}:
        return {"rakefile": "ruby", "gemfile": "ruby"}.get(name, name)
    return TYPES.get(name.rpartition(".")[2], "text") if "." in name else "text"


def exports(text: str) -> list[str]:
    """Names that TypeScript or JavaScript text exports, in order."""
    listed = (part for group in _EXPORT_LIST.findall(text) for part in group.split(","))
    names = [part.split()[-1] for part in listed if part.strip()]  # `a as b` is exported as b
    return list(dict.fromkeys([*_EXPORT.findall(text), *_EXPORTS_OF.findall(text), *names]))


def definitions(text: str, language: str) -> list[str]:
    """Names of the types and functions that a text defines at its outer levels, in order, tests left out."""
    pattern = _DEFINITIONS.get(language)
    if pattern is None:
        return []
    names = (next(group for group in match.groups() if group) for match in pattern.finditer(text))
    return [name for name in dict.fromkeys(names) if not is_test_name(name)]


def imports(text: str, language: str) -> int:
    """How many modules or files a text imports."""
    pattern = _IMPORTS.get(language)
    if pattern is None:
        return 0
    count = len(pattern.findall(text))
    if language == "go" and (block := _GO_IMPORT_BLOCK.search(text)):
        count += len(re.findall(r'"[^"\n]+"', block.group(1)))
    return count


def tests(text: str, language: str) -> list[str]:
    """Names of the tests that a text defines, in order."""
    pattern = _TESTS.get(language)
    return list(dict.fromkeys(pattern.findall(text))) if pattern else []


def is_test_name(name: str) -> bool:
    return name.startswith(("test_", "Test")) and len(name) > 5 and (name[4] == "_" or name[4].isupper())


_EXPORT = re.compile(
    r"export\s+(?:default\s+)?(?:abstract\s+|async\s+|declare\s+)?"
    r"(?:const|let|var|function\*?|class|interface|type|enum)\s+(\w+)"
)
_EXPORT_LIST = re.compile(
    r"^(?:export\s{1,8}(?:type\s{1,8})?|module\.exports\s{0,8}=\s{0,8})\{([\w\s,$]*)\}", re.MULTILINE
)
_EXPORTS_OF = re.compile(r"^(?:module\.)?exports\.(\w+)\s*=", re.MULTILINE)
_GO_IMPORT_BLOCK = re.compile(r"^import \(([^)]*)\)", re.MULTILINE)
_SCRIPT = re.compile(
    r"^(?:export\s+)?(?:default\s+)?(?:abstract\s+|async\s+|declare\s+)*(?:function\*?|class|interface|enum|type)\s+(\w+)"
    r"|^(?:export\s+)?const\s+(\w+)\s*(?::[^=\n]+)?=\s*(?:async\s*)?(?:\(|function|\w+\s*=>)",
    re.MULTILINE,
)
_C = re.compile(
    r"^(?:typedef\s+)?(?:struct|class|enum(?:\s+class)?|union|namespace)\s+(\w+)\s*[:{]"
    r"|^(?:[A-Za-z_][\w:<>,]*[\s*&]+)+((?:\w+::)*~?\w+)\s*\([^;{}]*\)\s*(?:const\s*)?\{|^#define\s+(\w+)",
    re.MULTILINE,
)
_DEFINITIONS = {
    "python": re.compile(r"^(?:class|(?:async )?def)\s+(\w+)", re.MULTILINE),
    "typescript": _SCRIPT,
    "javascript": _SCRIPT,
    "go": re.compile(r"^func\s+(?:\([^)]*\)\s*)?(\w+)|^type\s+(\w+)", re.MULTILINE),
    "rust": re.compile(
        r"^\s{0,4}(?:pub(?:\([^)]*\))?\s+)?(?:async\s+|unsafe\s+|const\s+)*"
        r"(?:fn|struct|enum|trait|mod|type|macro_rules!)\s+(\w+)",
        re.MULTILINE,
    ),
    "java": re.compile(
        r"^\s{0,4}(?:(?:public|protected|private|static|final|abstract|sealed|synchronized|default)\s+)*"
        r"(?:class|interface|enum|record|@interface)\s+(\w+)"
        r"|^\s{2,4}(?:(?:public|protected|private|static|final|abstract|synchronized)[ \t]+){1,6}"
        r"[\w<>\[\],.? ]{1,120}?[ \t](\w+)\s{0,8}\(",
        re.MULTILINE,
    ),
    "c": _C,
    "c++": _C,
    "ruby": re.compile(r"^\s{0,4}(?:class|module|def)\s+((?:self\.)?[\w:]+[?!]?)", re.MULTILINE),
    "php": re.compile(
        r"^\s{0,4}(?:(?:abstract|final|public|protected|private|static|readonly)\s+)*"
        r"(?:class|interface|trait|enum|function)\s+(\w+)",
        re.MULTILINE,
    ),
}  # fmt: skip
_MODULE = r"^import\s[^;\n]*?from\s+['\"][^'\"]+['\"]|^import\s+['\"]|\}\s+from\s+['\"][^'\"]+['\"]"
_IMPORTS = {
    "python": re.compile(r"^(?:import|from)\s+[\w.]+", re.MULTILINE),
    "typescript": re.compile(_MODULE, re.MULTILINE),
    "javascript": re.compile(_MODULE + r"|require\(['\"]", re.MULTILINE),
    "go": re.compile(r"^import\s+(?:\w+\s+)?\"", re.MULTILINE),
    "rust": re.compile(r"^[ \t]*(?:pub\s+)?use\s+[\w:]+", re.MULTILINE),
    "java": re.compile(r"^import\s+(?:static\s+)?[\w.]+", re.MULTILINE),
    "c": re.compile(r"^[ \t]*#\s*include\b", re.MULTILINE),
    "c++": re.compile(r"^[ \t]*#\s*include\b", re.MULTILINE),
    "ruby": re.compile(r"^[ \t]*require(?:_relative)?\b", re.MULTILINE),
    "php": re.compile(r"^[ \t]*(?:use\s+[\w\\]+|require(?:_once)?\b|include(?:_once)?\b)", re.MULTILINE),
}  # fmt: skip
_SCRIPT_TESTS = re.compile(r"\b(?:it|test)(?:\.\w+)?\(\s*['\"`]([^'\"`\n]+)['\"`]")
_C_TESTS = re.compile(r"\bTEST(?:_F|_P|_CASE)?\s*\(\s*([\w, \"]+?)\s*\)")
_TESTS = {
    "python": re.compile(r"^[ \t]*(?:async )?def\s+(test_\w+)|^class\s+(?:Test\w+)", re.MULTILINE),
    "typescript": _SCRIPT_TESTS,
    "javascript": _SCRIPT_TESTS,
    "go": re.compile(r"^func\s+((?:Test|Benchmark|Fuzz|Example)\w*)\s*\(", re.MULTILINE),
    "rust": re.compile(r"#\[(?:\w+::)?test\]\s*(?:async\s+)?fn\s+(\w+)"),
    "java": re.compile(r"@(?:Test|ParameterizedTest)\b[^\n]*\s+(?:public\s+|private\s+)?void\s+(\w+)"),
    "c": _C_TESTS,
    "c++": _C_TESTS,
    "ruby": re.compile(
        r"^[ \t]*(?:(?:it|specify|test)[ (]+['\"](?=[^'\"\n])|def[ \t]+(?=test_))([^'\"\n(]+)", re.MULTILINE
    ),
    "php": re.compile(r"(?:#\[Test\]\s{0,80}(?:public\s{1,8})?function\s+|function\s+(?=test))(\w+)"),
}  # fmt: skip
