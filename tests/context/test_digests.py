import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mycode.context import digests
from mycode.context.digests import languages
from mycode.core.messages import ToolCall, ToolResult


def digest(tool: str, arguments: dict[str, object], output: str, *, failed: bool = False, **settings: int) -> str:
    return digests.line(summary(tool, arguments, output, failed=failed, **settings))


def summary(tool: str, arguments: dict[str, object], output: str, *, failed: bool = False, **settings: int):
    return digests.tool_summary(
        ToolCall("c", tool, json.dumps(arguments)), ToolResult("c", output, is_error=failed), **settings
    )


@pytest.mark.parametrize(
    ("tool", "arguments", "output", "expected"),
    [
        (
            "read_file",
            {"path": "src/app.ts"},
            "import { a } from './a'\nexport const start = () => a\nexport class App {}",
            "[✓ read_file: File: src/app.ts | Lines: 3 | Type: typescript | Exports: start, App | Imports: 1 modules]",
        ),
        (
            "execute_bash",
            {"command": "npm test"},
            "12 passing\nexit code: 0",
            "[✓ execute_bash: Command: npm test | Exit: 0 | Output: 2 lines]",
        ),
        (
            "bash",
            {"command": "python app.py"},
            "<returncode>1</returncode>\n<output>\nValueError: bad port\n</output>",
            "[❌ bash: Command: python app.py | Exit: 1 | Output: 1 lines | Error: ValueError: bad port]",
        ),
        (
            "search_files",
            {"pattern": "useState"},
            "src/App.tsx:3:useState()\nsrc/App.tsx:9:useState()\nsrc/Hook.ts:1:useState",
            '[✓ search_files: Pattern: "useState" | Matches: 3 | Files: 2 | Top files: src/App.tsx, src/Hook.ts]',
        ),
        (
            "str_replace_editor",
            {"command": "str_replace", "path": "/a/b.py", "old_str": "x = 1", "new_str": "x = 2\ny = 3"},
            "The file has been edited.",
            "[✓ str_replace_editor: File: /a/b.py | Changed: +2 -1 lines]",
        ),
        (
            "apply_patch",
            {"input": "*** Begin Patch\n*** Update File: lib/a.rb\n@@\n-old\n+new\n*** End Patch"},
            "Done!",
            "[✓ apply_patch: File: lib/a.rb | Changed: +1 -1 lines]",
        ),
        (
            "shell",
            {"command": ["bash", "-lc", "cargo test"]},
            "error[E0425]: cannot find value\nExit code: 101",
            "[❌ shell: Command: cargo test | Exit: 101 | Output: 2 lines | Error: error[E0425]: cannot find value]",
        ),
        (
            "Write",
            {"file_path": "app/Main.java", "content": "public class Main {\n}\n"},
            "ok",
            "[✓ Write: File: app/Main.java | Lines: 2 | Type: java | Defines: Main]",
        ),
        ("Glob", {"pattern": "**/*.go"}, "a.go\nb.go", "[✓ Glob: Path: **/*.go | Entries: 2 | First: a.go, b.go]"),
        (
            "todo",
            {"items": [{"text": "write it", "status": "active"}, {"text": "plan it", "status": "done"}]},
            "ok",
            "[✓ todo: Items: 2 | Done: 1 | Active: write it]",
        ),
        (
            "mcp__tracker__get_issue",
            {"id": "ENT-108"},
            "Summaries for checkpoints",
            "[✓ mcp__tracker__get_issue: ENT-108 | Output: 1 lines | Summaries for checkpoints]",
        ),
    ],
)
def test_a_call_and_its_result_become_one_line_of_key_facts(tool, arguments, output, expected):
    assert digest(tool, arguments, output) == expected


CODEX = (
    '{"output":"error[E0308]: mismatched types\\n --> a.rs:3:5","metadata":{"exit_code":101,"duration_seconds":0.1}}'
)
EDIT = {"path": "/r/a.py", "old_str": "a", "new_str": "b"}


@pytest.mark.parametrize(
    ("tool", "arguments", "output", "expected"),
    [
        (
            "Bash",
            {"command": "npm test"},
            "Error: Exit code 1\n\nFAIL a.test.ts",
            "Exit: 1 | Output: 3 lines | Error: FAIL a",
        ),
        (
            "shell",
            {"command": ["bash", "-lc", "cargo test"]},
            CODEX,
            "Exit: 101 | Output: 2 lines | Error: error[E0308]: m",
        ),
        (
            "exec_command",
            {"cmd": "make"},
            "Chunk ID: a1\nWall time: 1.2 seconds\nProcess exited with code 2\nOutput:\nmake: *** [all] Error 1",
            "Exit: 2 | Output: 1 lines | Error: make: *** [all] Error 1",
        ),
        (
            "execute_bash",
            {"command": "pytest"},
            "all good\n[The command completed with exit code 0.]\n[Current working directory: /w]",
            "[✓ execute_bash: Command: pytest | Exit: 0 | Output: 1 lines]",
        ),
        (
            "run_shell_command",
            {"command": "ls"},
            "Output: x\nError: (none)\nExit Code: 0\nSignal: (none)",
            "[✓ run_shell_command: Command: ls | Exit: 0 | Output: 4 lines]",
        ),
        (
            "execute_bash",
            {"command": "cat go.sh"},
            "exit 1\nexit code: 0",
            "[✓ execute_bash: Command: cat go.sh | Exit: 0",
        ),
        ("bash", {"command": "curl x"}, "HTTP status 404 returned", "[✓ bash: Command: curl x | Exit: unknown"),
        (
            "bash",
            {"command": "grep -rn error src"},
            "src/a.py:1: error handling",
            "[✓ bash: Command: grep -rn error src",
        ),
        (
            "bash",
            {"command": "cat x"},
            "cat: x: No such file or directory",
            "Error: cat: x: No such file or directory]",
        ),
        (
            "Read",
            {"file_path": "b.ts"},
            "<tool_use_error>File does not exist.</tool_use_error>",
            "| Error: File does not",
        ),
        (
            "edit_block",
            EDIT,
            "Search content not found in /r/a.py.",
            "[❌ edit_block: File: /r/a.py | Error: Search content",
        ),
        (
            "str_replace_editor",
            {"command": "str_replace", **EDIT},
            "No replacement was performed, old_str `a` did not appear verbatim.",
            "[❌ str_replace_editor: File: /r/a.py | Error: No replacement was performed",
        ),
        (
            "str_replace_editor",
            {"command": "view", "path": "/r/a.py"},
            "Here's the result of running `cat -n` on /r/a.py:\n     1\timport os\n     2\tclass B: pass\n",
            "| Lines: 2 | Type: python | Defines: B | Imports: 1 modules]",
        ),
        (
            "str_replace_editor",
            {"command": "view", "path": "/r"},
            "Here's the files and directories up to 2 levels deep in /r, excluding hidden items:\n/r\n/r/a.py",
            "[✓ str_replace_editor: Path: /r | Entries: 2 | First: /r, /r/a.py]",
        ),
        (
            "text_file",
            {"command": "create", "path": "a.py", "file_text": "x = 1"},
            "ok",
            "[✓ text_file: File: a.py | Lines: 1",
        ),
        ("str_replace_editor", {"command": "undo_edit", "path": "a.py"}, "ok", "File: a.py | Undone]"),
        (
            "replace_in_file",
            {"path": "a.py", "diff": "<<<<<<< SEARCH\na\n=======\nb\nc\n>>>>>>> REPLACE"},
            "ok",
            "Changed: +2 -1 lines]",
        ),
        (
            "shell",
            {"command": ["apply_patch", "*** Begin Patch\n*** Update File: a/b.py\n@@\n-x\n+y\n*** End Patch"]},
            "Success.",
            "[✓ shell: File: a/b.py | Changed: +1 -1 lines]",
        ),
        (
            "Grep",
            {"pattern": "foo", "path": "src/x.py"},
            "12:foo\n15:foo",
            "Matches: 2 | Files: 1 | Top files: src/x.py]",
        ),
        ("Grep", {"pattern": "foo"}, "a/b.py:12:foo\na/b.py-13-bar", "Matches: 1 | Files: 1 | Top files: a/b.py]"),
        (
            "Grep",
            {"pattern": "foo", "output_mode": "count"},
            "a.py:12\nc.py:3\n\nFound 15 total occurrences across 2 files.",
            "Matches: 15 | Files: 2 | Top files: a.py, c.py]",
        ),
        (
            "search_file_content",
            {"pattern": "foo"},
            'Found 2 matches for pattern "foo" in path ".":\n---\nFile: a.ts\nL1: foo\nL7: foo\n---',
            "Matches: 2 | Files: 1 | Top files: a.ts]",
        ),
        (
            "TodoWrite",
            {"todos": '[{"content": "a", "status": "completed"}]'},
            "ok",
            "[✓ TodoWrite: Items: 1 | Done: 1]",
        ),
        ("read_file", {"path": ["a.py", "b.py"]}, "x", "[✓ read_file: File: a.py | "),
        (
            "view_file",
            {"AbsolutePath": "/a.rs", "StartLine": 2, "EndLine": 3},
            "#[test]\nfn t1() {}",
            "Range: 2-3 | Lines: 2",
        ),
        ("", {}, "", "[✓ unknown: Output: 0 lines]"),
    ],
)
def test_other_agents_wrap_name_and_fail_in_their_own_ways(tool, arguments, output, expected):
    assert expected in digest(tool, arguments, output)


def test_exports_are_found_in_lists_and_in_the_older_form_of_javascript():
    assert languages.exports("export var a = 1\nexport {\n b, c as d,\n}\nexport { e } from './e'") == [
        "a",
        "b",
        "d",
        "e",
    ]
    assert languages.exports("module.exports = { f, g };\nexports.h = 1") == ["h", "f", "g"]


def test_tests_are_found_by_their_mark_too():
    assert languages.tests("def test_a\nend\nit 'works' do\nend", "ruby") == ["test_a", "works"]
    php = "#[Test]\npublic function it_works() {}\npublic function testThing() {}\nfunction other() {}"
    assert languages.tests(php, "php") == ["it_works", "testThing"]


@pytest.mark.parametrize("text", ["\n" * 50_000, "  public static " * 5_000, "export {" * 8_000, "it ' " * 9_000])
def test_no_text_makes_the_search_for_names_slow(text: str):
    for language in languages._DEFINITIONS:  # quadratic patterns would need minutes here
        languages.definitions(text, language)
        languages.tests(text, language)
    assert languages.exports(text) == []


def test_arguments_that_were_encoded_twice_are_read_all_the_same():
    twice = ToolCall("c", "read_file", json.dumps(json.dumps({"path": "a.py"})))
    assert digests.read_call(twice).path == "a.py"


def test_a_search_that_was_never_answered_counts_no_matches_as_found():
    found = digests.tool_summary(ToolCall("c", "grep", '{"pattern": "x"}'), None)
    assert (found.status, found.key_facts[-1]) == ("partial", "no result")


def test_the_compact_style_reads_as_a_phrase():
    assert digests.line(
        summary("read_file", {"path": "/src/app.ts"}, "export const a = 1\n" * 245), style="compact"
    ) == ("[read_file: /src/app.ts (245 lines, TypeScript, has exports)]")
    assert digests.line(summary("execute_bash", {"command": "npm test"}, "ok\nexit code: 0"), style="compact") == (
        "[bash: npm test | exit 0 | 2 lines output]"
    )


def test_a_search_without_matches_is_partial():
    found = summary("grep", {"pattern": "nowhere"}, "")
    assert (found.status, found.metadata["match_count"], found.metadata["file_count"]) == ("partial", 0, 0)


def test_an_output_that_tells_an_error_without_an_exit_code_is_an_error():
    assert summary("execute_bash", {"command": "npm test"}, "Error: Module not found...").status == "error"


def test_an_exit_code_that_nobody_told_is_no_success():
    found = summary("execute_bash", {"command": "sleep 1"}, "")
    assert (found.status, found.metadata["exit_code"]) == ("partial", "unknown")


def test_an_exit_code_of_zero_beats_the_word_error_in_the_output():
    assert summary("execute_bash", {"command": "npm test"}, "0 errors\nexit code: 0").status == "success"


def test_a_call_without_its_result_is_partial():
    found = digests.tool_summary(ToolCall("c", "edit_file", '{"path": "a.py"}'), None)
    assert (found.status, found.key_facts[-1]) == ("partial", "no result")


def test_long_lines_are_cut_but_those_of_errors_are_not():
    names = "\n".join(f"export const name{'x' * 60}{n} = 1" for n in range(5))
    assert len(digest("read_file", {"path": "a.ts"}, names)) <= 200
    failed = digests.line(summary("Edit", {"file_path": "d" * 300}, "String not found", failed=True))
    assert failed.endswith("| Error: String not found]")


def test_an_error_is_kept_whole_up_to_its_limit_and_then_by_head_and_tail():
    short = summary("execute_bash", {"command": "x"}, "Traceback\nValueError: a\nexit code: 1")
    assert digests.error_block(short) == short.error
    long = digests.error_block(summary("execute_bash", {"command": "x"}, "error\n" + "y" * 9000), max_chars=100)
    assert long.startswith("error\ny")
    assert "characters left out" in long
    assert len(long) < 160


def test_the_command_is_cut_where_the_setting_says():
    assert summary("execute_bash", {"command": "a" * 80}, "exit code: 0", command_limit=50).key_facts[0] == (
        "Command: " + "a" * 49 + "…"
    )


@pytest.mark.parametrize(
    ("path", "source", "defined", "imported", "tested"),
    [
        ("a.py", "import os\nclass A:\n    pass\ndef go(): ...\ndef test_it(): ...", ["A", "go"], 1, ["test_it"]),
        ("a.go", 'import (\n\t"fmt"\n\t"os"\n)\ntype T struct{}\nfunc (t T) Run() {}\nfunc TestRun(t *testing.T) {}',
         ["T", "Run"], 2, ["TestRun"]),
        ("a.rs", "use std::fs;\npub struct S;\npub fn run() {}\n#[test]\nfn works() {}",
         ["S", "run", "works"], 1, ["works"]),
        ("A.java", "import a.B;\npublic class A {\n  public void go() {}\n  @Test\n  void works() {}\n}",
         ["A", "go"], 1, ["works"]),
        ("a.cpp", "#include <map>\nclass Q {\n};\nint main(int n) {\n}", ["Q", "main"], 1, []),
        ("a.rb", "require 'set'\nclass Box\n  def open!\n  end\nend", ["Box", "open!"], 1, []),
        ("a.php", "<?php\nuse App\\Kernel;\nclass Box {\n  public function open() {}\n}", ["Box", "open"], 1, []),
    ],
)  # fmt: skip
def test_definitions_imports_and_tests_are_found_in_many_languages(path, source, defined, imported, tested):
    language = languages.file_type(path)
    assert (
        languages.definitions(source, language),
        languages.imports(source, language),
        languages.tests(source, language),
    ) == (
        defined,
        imported,
        tested,
    )


@settings(max_examples=100)
@given(st.text(max_size=30), st.text(max_size=200), st.text(max_size=200), st.booleans())
def test_no_tool_no_arguments_and_no_output_make_a_digest_fail(tool, arguments, output, failed):
    line = digests.line(digests.tool_summary(ToolCall("c", tool, arguments), ToolResult("c", output, is_error=failed)))
    assert line.startswith(("[✓ ", "[❌ "))
    assert line.endswith("]")
    assert "\n" not in line


TRACE = """Traceback (most recent call last):
  File "app.py", line 3, in <module>
    raise ValueError("failed hard")
ValueError: no such column
"""


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (TRACE, "ValueError: no such column"),
        (
            TRACE + "\nDuring handling of the above exception, another exception occurred:\n\n"
            + TRACE.replace("no such column", "worse") + "exit code: 1",
            "ValueError: worse",
        ),
        ("Traceback (most recent call last):\n… 12 lines left out …\nKeyError: 'x'\nexit code: 1", "KeyError: 'x'"),
        ("  + Exception Group Traceback (most recent call last):\n  |   File x\n  | GroupE: two\n", "GroupE: two"),
        ("Traceback (most recent call last):\n  File x\n    raise Err", ""),
        ("Error:\n\n  the disk is full\n", "Error: the disk is full"),
        ("ok\nFAILED a.py::test_x - assert 1 == 2", "FAILED a.py::test_x - assert 1 == 2"),
    ],
)  # fmt: skip
def test_an_error_is_told_by_its_message_and_not_by_the_word_above_it(output: str, told: str):
    assert digests.first_error(output) == told
