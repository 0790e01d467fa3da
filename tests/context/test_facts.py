import json

import msgspec
import pytest

from mycode.context.facts import CommandFact, Fact, FactLedger
from mycode.context.records import compacted
from mycode.core.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from mycode.core.tools import TodoItem


class Told:
    """A conversation told to a ledger."""

    def __init__(self) -> None:
        self.ledger = FactLedger()
        self.seq = 0

    def user(self, text: str) -> "Told":
        self.seq += 1
        self.ledger = self.ledger.add(self.seq, UserMessage(text))
        return self

    def agent(self, text: str) -> "Told":
        self.seq += 1
        self.ledger = self.ledger.add(self.seq, AssistantMessage(text))
        return self

    def ran(self, tool: str, arguments: dict[str, object], output: str = "", *, failed: bool = False) -> "Told":
        call = ToolCall(f"c{self.seq}", tool, json.dumps(arguments))
        self.ledger = self.ledger.add(self.seq + 1, AssistantMessage("", (call,)))
        self.ledger = self.ledger.add(self.seq + 2, ToolResult(call.id, output, is_error=failed), call)
        self.seq += 2
        return self


def test_files_are_known_with_what_was_read_and_how_often_they_were_changed():
    ledger = (
        Told()
        .ran("read_file", {"path": "a.py", "start_line": 10, "end_line": 40}, "x")
        .ran("edit_file", {"path": "a.py", "old_string": "x", "new_string": "y"}, "ok")
        .ran("execute_bash", {"command": "cat b.py && echo hi > c.txt"}, "hi\nexit code: 0")
        .ledger
    )
    assert ledger.files_modified == ("a.py", "c.txt")
    assert ledger.files_read == ("a.py", "b.py")
    assert ledger.files["a.py"].ranges == ((10, 40),)


def test_an_error_is_open_until_the_same_command_passes():
    told = Told().ran("execute_bash", {"command": "make test"}, "error: boom\nexit code: 2")
    assert [error.text for error in told.ledger.open_errors] == ["error: boom"]
    told.ran("execute_bash", {"command": "make lint"}, "exit code: 0")
    assert len(told.ledger.open_errors) == 1
    told.ran("execute_bash", {"command": "make test"}, "exit code: 0")
    assert told.ledger.open_errors == ()
    assert told.ledger.commands[-1] == CommandFact("make test", 0, 6)


@pytest.mark.parametrize(
    "output",
    [
        "There is no tool named execute_bsh. Nearest: execute_bash.",
        "Not run: the arguments are empty. It takes command (text).",
        "Not permitted: git push needs a rule",
        "The person refused this call. Do not repeat it.",
        "Not run: this needs a person's approval and nobody can be asked.",
        "The user doesn't want to proceed with this tool use. The tool use was rejected.",
        "exec command rejected by user",
        "<tool_use_error>InputValidationError: path is missing</tool_use_error>",
    ],
)
def test_what_was_never_carried_out_is_no_command_no_change_and_no_open_error(output):
    told = Told().ran("execute_bash", {"command": "git push"}, output, failed=True)
    told.ran("write_file", {"path": "a.py", "content": "x"}, output, failed=True).ran("sing", {"song": "la"}, output)
    assert (told.ledger.commands, told.ledger.open_errors, told.ledger.files_modified) == ((), (), ())


def test_an_edit_that_says_it_was_not_made_is_an_open_error_and_no_change():
    answer = "No replacement was performed, old_str `a` did not appear verbatim in a.py."
    told = Told().ran("str_replace_editor", {"command": "str_replace", "path": "a.py", "old_str": "a"}, answer)
    assert [error.text for error in told.ledger.open_errors] == [answer]
    assert told.ledger.files_modified == ()


def test_a_newer_failure_of_the_same_command_takes_the_place_of_the_older():
    told = Told()
    for reason in ("error: one", "error: two"):
        told.ran("execute_bash", {"command": "make"}, f"{reason}\nexit code: 1")
    assert [error.text for error in told.ledger.open_errors] == ["error: two"]


def test_a_test_has_its_last_result():
    told = Told().ran("execute_bash", {"command": "pytest"}, "FAILED tests/t.py::test_a - boom\nexit code: 1")
    assert not told.ledger.tests["tests/t.py::test_a"].passed
    told.ran("execute_bash", {"command": "pytest"}, "tests/t.py::test_a PASSED\nexit code: 0")
    assert told.ledger.tests["tests/t.py::test_a"].passed


def test_constraints_and_decisions_are_kept_word_for_word_and_once():
    told = Told().user("Add a cache. Never touch the public API! Use redis, not memcached.\nWhat must it do?")
    told.user("Never touch the public API!")
    told.agent("Looks good. I decided to keep the cache in redis. Next step.")
    assert [said.text for said in told.ledger.constraints] == [
        "Never touch the public API!",
        "Use redis, not memcached.",
    ]
    assert [said.text for said in told.ledger.decisions] == ["I decided to keep the cache in redis."]


def test_the_todo_list_is_the_newest_one_and_finished_work_is_not_open():
    told = Told().ran("todo", {"items": [{"text": "one", "status": "active"}, {"text": "two"}]})
    told.ran("todo", {"items": [{"text": "one", "status": "done"}, {"text": "two", "status": "active"}]})
    assert told.ledger.todo == (TodoItem("one", "done"), TodoItem("two", "active"))
    assert told.ledger.open_todo == (TodoItem("two", "active"),)


def test_what_must_be_kept_is_what_still_holds():
    told = Told().user("Do not rename files.")
    told.ran("write", {"path": "a.py", "content": "x"}, "ok").ran(
        "bash", {"command": "make"}, "fatal: no\nexit code: 1"
    )
    assert told.ledger.must_keep() == (
        Fact("file_modified", "a.py", 3),
        Fact("constraint", "Do not rename files.", 1),
        Fact("open_error", "fatal: no", 5),
    )


def test_an_older_ledger_is_not_changed_by_adding_to_it():
    before = Told().user("hello").ledger
    after = before.add(2, UserMessage("Always write tests."))
    assert (before.last_seq, before.constraints, after.last_seq) == (1, (), 2)


def test_a_message_is_found_again_by_its_seq_among_thousands():
    ledger = FactLedger()
    for seq in range(1, 1001):
        ledger = ledger.add(seq, UserMessage(f"name_number_{seq}"))
    found = ledger.passage(777)
    assert found is not None
    assert found.mentions[0].name.text == "name_number_777"
    assert ledger.passage(5000) is None


def test_a_test_that_failed_has_passed_once_its_command_passes_even_unnamed():
    told = Told().ran("execute_bash", {"command": "pytest -q"}, "FAILED tests/a.py::test_x\nexit code: 1")
    told.ran("execute_bash", {"command": "pytest -q"}, "1 failed\nexit code: 1")
    assert not told.ledger.tests["tests/a.py::test_x"].passed
    told.ran("execute_bash", {"command": "pytest -q tests/b.py"}, "1 passed\nexit code: 0")
    assert not told.ledger.tests["tests/a.py::test_x"].passed
    told.ran("execute_bash", {"command": "pytest -q"}, "1 passed\nexit code: 0")
    assert told.ledger.tests["tests/a.py::test_x"].passed


def test_looking_for_what_is_not_there_is_no_error_but_writing_is():
    told = Told().ran("execute_bash", {"command": "sed -n 1,9p gone.py"}, "No such file or directory\nexit code: 2")
    told.ran("execute_bash", {"command": "cd src && grep -rn needle . | head"}, "exit code: 1")
    assert told.ledger.open_errors == ()
    told.ran("execute_bash", {"command": "cat a.py > /ro/b.py"}, "cat: Permission denied\nexit code: 1")
    assert len(told.ledger.open_errors) == 1


def test_a_label_is_not_the_reason_of_a_failure():
    told = Told().ran("execute_bash", {"command": "make"}, "linking objects was refused\nOutput:\nexit code: 2")
    assert told.ledger.open_errors[0].text == "linking objects was refused"


def test_a_document_in_a_command_is_told_by_its_first_line():
    script = "python - <<'EOF'\nimport sys\n" + "print(1)\n" * 50 + "EOF\necho done"
    told = Told().ran("execute_bash", {"command": script}, "error: boom\nexit code: 1")
    assert told.ledger.open_errors[0].source == "python - <<'EOF' import sys … echo done"
    assert told.ledger.commands[0].command == "python - <<'EOF' import sys … echo done"


def test_what_a_record_carries_on_has_a_bounded_size_and_still_what_must_be_kept():
    told = Told().user("Never touch the schema.")
    for number in range(600):
        told.agent(f"I decided to use helper_{number} rather than the old way of doing it, for good reasons.")
        told.ran("read_file", {"path": f"src/module_{number}.py"}, "x")
        told.ran("execute_bash", {"command": f"pytest {number}"}, f"tests/t.py::test_{number} PASSED\nexit code: 0")
    told.ran("edit_file", {"path": "src/kept.py", "old_string": "x", "new_string": "y"}, "ok")
    kept = compacted(told.ledger)
    assert len(msgspec.json.encode(kept)) <= 40_000
    assert kept.must_keep() == told.ledger.must_keep()


def test_a_test_that_failed_once_is_finished_work_when_it_passes_and_others_are_not():
    told = Told().ran(
        "execute_bash", {"command": "pytest -v"}, "a.py::test_x FAILED\na.py::test_y PASSED\nexit code: 1"
    )
    assert told.ledger.passed_later == ()
    told.ran("execute_bash", {"command": "pytest -v"}, "a.py::test_x PASSED\na.py::test_y PASSED\nexit code: 0")
    assert told.ledger.passed_later == ("a.py::test_x",)
    told.ran("execute_bash", {"command": "pytest -v"}, "a.py::test_x FAILED\nexit code: 1")
    assert told.ledger.passed_later == ()


def test_what_the_person_calls_by_its_name_is_known_but_not_every_name_of_a_paste():
    told = Told().user("The switch is zebra_mode_v7, read by load_flags() and --zebra.")
    told.agent("I see other_name in it.").user("\n".join(f"at frame_{n}" for n in range(50)))
    assert [said.text for said in told.ledger.named[:3]] == ["zebra_mode_v7", "load_flags", "--zebra"]
    assert len(told.ledger.named) == 15
