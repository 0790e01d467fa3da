"""The second design document: one line for each tool result, without any model."""

import json

from mycode.context import digests
from mycode.context.policy import Policy
from mycode.core.messages import ToolCall, ToolResult
from tests.designs.profiles import profile
from tests.support.context_doubles import Chat, Script, call

S1 = profile("S1")


def digest(tool: str, output: str, **arguments: object) -> digests.ToolSummary:
    shown = ToolCall("c", tool, json.dumps(arguments))
    return digests.tool_summary(shown, ToolResult("c", output), command_limit=S1.tool_results.command_chars)


def compact(summary: digests.ToolSummary) -> str:
    return digests.line(summary, style="compact", limit=S1.tool_results.max_summary_length)


def trimmed(policy: Policy) -> str:
    chat = Chat(4_000, policy=policy)
    chat.say(
        "go",
        *(call("a", "read_file", '{"path": "src/app.ts"}'), ToolResult("a", "export const x = 1\n" * 700)),
        *(call("b", "read_file", '{"path": "src/new.ts"}'), ToolResult("b", "y = 2\n" * 1_000)),
    )
    return next(message.text for message in chat.manager.fit() if isinstance(message, ToolResult))


def test_its_settings_are_the_literal_ones():
    results = S1.tool_results
    assert (results.summarize, results.preserve_errors, results.max_summary_length) == (False, True, 200)
    assert results.include_metadata


def test_a_file_that_was_read_has_its_number_of_lines():
    assert digest("read_file", "line1\nline2\nline3", path="/app.ts").metadata["lines"] == 3


def test_an_output_that_is_an_error_has_that_status_without_an_exit_code():
    assert digest("execute_bash", "Error: Module not found...", command="npm test").status == "error"


def test_a_file_a_command_and_a_search_read_as_phrases():
    assert compact(digest("read_file", "export const a = 1\n" * 245, path="/src/app.ts")) == (
        "[read_file: /src/app.ts (245 lines, TypeScript, has exports)]"
    )
    assert compact(digest("execute_bash", "ok\n" * 41 + "exit code: 0", command="npm test")) == (
        "[bash: npm test | exit 0 | 42 lines output]"
    )
    rows = "\n".join(f"{name}.tsx:{line}:useState()" for name in ("App", "Hook", "List", "Row") for line in (1, 2))
    assert compact(digest("search_files", rows, pattern="useState")) == (
        "[search: 'useState' | 8 matches in 4 files: App.tsx, Hook.tsx, List.tsx, ...]"
    )


def test_a_search_that_finds_nothing_is_partial_and_keeps_its_tool():
    found = digest("search_files", "", pattern="nowhere")
    assert (found.tool_name, found.status, found.metadata["match_count"]) == ("search_files", "partial", 0)


def test_a_long_command_is_cut_at_fifty_characters():
    assert digest("execute_bash", "exit code: 0", command="x" * 80).key_facts[0] == "Command: " + "x" * 49 + "…"


def test_lines_share_one_format():
    line = digests.line(digest("read_file", "a\nb", path="/a.ts"))
    assert line == "[✓ read_file: File: /a.ts | Lines: 2 | Type: typescript]"


def test_a_trimmed_result_is_a_mark_with_its_age_or_a_line_where_that_is_on():
    assert trimmed(S1).startswith("[truncated - 2 steps ago]")
    line = trimmed(profile("S1", "tool_results.summarize=true"))
    assert line.startswith("[read_file: src/app.ts (700 lines, TypeScript, has exports)]")
    assert len(line) <= 200 + len(" (m3)")


def test_the_whole_error_output_is_kept():
    chat = Chat(4_000, policy=S1)
    error = "Error: Module not found\n" + "at frame\n" * 20 + "exit code: 1"
    chat.say(
        "go",
        *(call("a", "read_file", '{"path": "src/app.ts"}'), ToolResult("a", "export const x = 1\n" * 500)),
        *(call("b", "execute_bash", '{"command": "npm test"}'), ToolResult("b", error, is_error=True)),
        *(call("c", "read_file", '{"path": "n.ts"}'), ToolResult("c", "y = 2\n" * 1_000)),
    )
    sent = [message.text for message in chat.manager.fit()]
    assert "[truncated - 4 steps ago] (m3)" in sent
    assert error in sent


async def test_no_model_is_ever_asked():
    model = Script("never")
    chat = Chat(64_000, policy=S1, models=[model])
    chat.turns(10, size=4_000)
    await chat.fold()
    assert chat.manager.usage().summaries == 1
    assert model.requests == []
