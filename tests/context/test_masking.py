import json

from mycode.context.masking import plan
from mycode.context.policy import Masking, ToolResults
from mycode.context.projection import Laid, Row
from mycode.core.messages import AssistantMessage, Message, ToolResult, UserMessage
from tests.support.context_doubles import Quarter, call

SETTINGS = Masking(min_tokens=20)


def rows(*messages: Message) -> list[Row]:
    count = Quarter().count
    return [Row(seq, message, count(message.text) + 4) for seq, message in enumerate(messages, 1)]


def read(n: int, path: str, size: int) -> tuple[Message, Message]:
    return call(f"c{n}", "read_file", json.dumps({"path": path})), ToolResult(f"c{n}", f"text_{n} " * (size // 8))


def masked(found: list[Row], wanted: int = 1 << 40, **parts: object) -> list[int]:
    arguments: dict[str, object] = {"protected_tokens": 0, "spared": frozenset(), "laid": Laid()} | parts
    laid = arguments.pop("laid")
    made = plan(
        found,
        laid,
        SETTINGS,
        ToolResults(),
        wanted=wanted,
        count=Quarter().count,
        redact=str,
        **arguments,  # type: ignore[arg-type]  # as given
    )
    return list(made.stubs)


END = AssistantMessage("done")


def test_what_was_counted_in_a_masked_result_is_kept_beside_its_line_unless_it_is_not_wanted():
    run = json.dumps({"command": "curl -H token=hunter2 " + "x" * 400})
    found = rows(*read(1, "a.py", 400), *(call("b", "bash", run), ToolResult("b", "ok\n" * 99 + "exit code: 0")), END)

    def metadata(style: ToolResults) -> dict[int, dict[str, str | int | bool]]:
        made = plan(
            found,
            Laid(),
            SETTINGS,
            style,
            wanted=1 << 40,
            protected_tokens=0,
            spared=frozenset(),
            count=Quarter().count,
            redact=lambda text: text.replace("hunter2", "***"),
        )
        assert sorted(made.stubs) == [2, 4]
        return made.metadata

    command = "curl -H token=*** " + "x" * (200 - len("curl -H token=*** "))
    assert metadata(ToolResults()) == {
        2: {"path": "a.py", "lines": 1, "type": "python", "has_exports": False, "has_imports": False},
        4: {"command": command, "exit_code": 0, "output_lines": 100, "has_error": False},
    }
    assert metadata(ToolResults(include_metadata=False)) == {}


def test_superseded_results_go_first_then_the_largest():
    found = rows(
        UserMessage("go"),
        *read(1, "a.py", 400),
        *read(2, "b.py", 4_000),
        *read(3, "c.py", 800),
        *read(4, "a.py", 400),
        END,
    )
    assert masked(found) == [3, 5, 7, 9]
    assert masked(found, wanted=10) == [3]


def test_the_same_command_run_again_supersedes_its_result():
    run = json.dumps({"command": "pytest"})
    found = rows(
        *(call("a", "bash", run), ToolResult("a", "x" * 400)),
        *read(2, "b.py", 4_000),
        *(call("c", "bash", run), ToolResult("c", "y" * 400)),
        END,
    )
    assert masked(found, wanted=10) == [2]


def test_the_newest_results_open_errors_and_todo_lists_stay():
    found = rows(
        *read(1, "a.py", 800),
        *(call("t", "todo", "{}"), ToolResult("t", "[ ] item\n" * 100)),
        *read(3, "c.py", 800),
        *read(4, "d.py", 800),
        END,
    )
    assert masked(found, protected_tokens=250) == [2, 6]
    assert masked(found, protected_tokens=250, spared=frozenset({2})) == [6]


def test_what_the_newest_answer_called_for_is_never_masked():
    assert masked(rows(UserMessage("go"), *read(1, "a.py", 4_000))) == []


def test_a_line_has_the_canonical_format_and_a_handle():
    found = rows(*read(1, "src/app.py", 4_000), END)
    made = plan(
        found,
        Laid(),
        SETTINGS,
        ToolResults(),
        wanted=1,
        protected_tokens=0,
        spared=frozenset(),
        count=Quarter().count,
        redact=str,
    )
    assert made.stubs[2].startswith("[✓ read_file: File: src/app.py | Lines: ")
    assert made.stubs[2].endswith("] (m2)")
    assert made.freed > 800


def test_nothing_is_masked_twice():
    found = rows(*read(1, "a.py", 4_000), END)
    assert masked(found, laid=Laid(stubs={2: "x"})) == []
