"""What the real program does to files: only what was asked for, byte for byte, or nothing at all."""

import os
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Program
from tests.support.script import Answer, Call, call, say
from tests.support.scripted_server import serving


@pytest.fixture
def program(workspace: Path, tmp_path: Path) -> Program:
    return Program(workspace, tmp_path / "home")


def told(program: Program, *steps: Answer | Call, meanwhile: Any = None) -> list[str]:
    """The results that the model was told of these steps, in order; `meanwhile` happens before the second request."""
    answers: list[Answer] = [Answer(calls=(step,)) if isinstance(step, Call) else step for step in steps]
    script = iter([*answers, say("Done.")])

    def played(body: dict[str, Any]) -> Answer:
        if len(server.asked) == 2 and meanwhile is not None:
            meanwhile()
        return next(script)

    with serving(played) as server:
        done = replace(program, model_url=server.url).ask("go", "--yolo")
        messages: Sequence[dict[str, Any]] = server.asked[-1].body["messages"]
    assert (done.stdout, done.returncode) == ("Done.\n", 0)
    return [str(message["content"]) for message in messages if message["role"] == "tool"]


def look(path: str) -> Call:
    return Call("read_file", {"path": path})


def edit(path: str, old: str, new: str) -> Call:
    return Call("edit_file", {"path": path, "edits": [{"old": old, "new": new}]})


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"one\r\ntwo\r\nthree\r\n", "two", "2a\n2b", b"one\r\n2a\r\n2b\r\nthree\r\n"),
        (b"one\rtwo\rthree", "two", "2", b"one\r2\rthree"),
        (b"one\r\ntwo\nthree\rfour", "two", "2", b"one\r\n2\nthree\rfour"),
        (b"\xef\xbb\xbfone\ntwo\n", "two", "2", b"\xef\xbb\xbfone\n2\n"),
        (b"one\ntwo", "two", "2", b"one\n2"),
        (b"one\ntwo\n\n\n", "two", "2", b"one\n2\n\n\n"),
        (b"na\xefve caf\xe9\nplain\n", "plain", "PLAIN", b"na\xefve caf\xe9\nPLAIN\n"),
        ("漢字\tשלום\u00a0\ntwo\n".encode(), "two", "$1 \\1 &", "漢字\tשלום\u00a0\n$1 \\1 &\n".encode()),
    ],
    ids=["crlf", "cr", "mixed", "mark", "no end", "many ends", "latin-1", "wide"],
)
def test_only_what_was_named_changes(program: Program, before: bytes, old: str, new: str, after: bytes) -> None:
    (program.cwd / "a.txt").write_bytes(before)
    told(program, look("a.txt"), edit("a.txt", old, new))
    assert (program.cwd / "a.txt").read_bytes() == after


def test_a_letter_that_the_files_encoding_may_not_have_is_refused(program: Program) -> None:
    before = b"na\xefve caf\xe9\nplain\n"
    (program.cwd / "a.txt").write_bytes(before)
    results = told(program, look("a.txt"), edit("a.txt", "plain", "漢"))
    assert (program.cwd / "a.txt").read_bytes() == before
    assert "exit code" not in results[1]
    assert b"\xef\xbf\xbd" not in (program.cwd / "a.txt").read_bytes()


def test_a_file_that_somebody_saved_meanwhile_is_refused_and_one_that_was_touched_is_not(program: Program) -> None:
    for name in ("saved.txt", "touched.txt"):
        (program.cwd / name).write_text("one\ntwo\n")

    def meanwhile() -> None:
        (program.cwd / "saved.txt").write_text("one\ntwo\nby hand\n")
        os.utime(program.cwd / "touched.txt", (1, 1))

    both = Answer(calls=(look("saved.txt"), look("touched.txt")))
    results = told(program, both, edit("saved.txt", "two", "2"), edit("touched.txt", "two", "2"), meanwhile=meanwhile)
    assert "changed since" in results[2]
    assert (program.cwd / "saved.txt").read_text() == "one\ntwo\nby hand\n"
    assert (program.cwd / "touched.txt").read_text() == "one\n2\n"


def test_several_edits_of_one_file_in_one_answer_are_all_there(program: Program) -> None:
    (program.cwd / "a.txt").write_text("".join(f"line {number};\n" for number in range(8)))
    edits = Answer(calls=tuple(edit("a.txt", f"line {number};", f"LINE {number};") for number in range(8)))
    told(program, look("a.txt"), edits)
    assert (program.cwd / "a.txt").read_text() == "".join(f"LINE {number};\n" for number in range(8))


def test_modes_stay_and_links_lead_where_they_led(program: Program, tmp_path: Path) -> None:
    script = program.cwd / "run.sh"
    script.write_text("echo one\n")
    script.chmod(0o750)
    (program.cwd / "link.sh").symlink_to("run.sh")
    told(program, look("link.sh"), edit("link.sh", "one", "two"))
    assert ((program.cwd / "link.sh").is_symlink(), script.read_text()) == (True, "echo two\n")
    assert stat.S_IMODE(script.stat().st_mode) == 0o750


def test_a_link_that_leads_out_is_not_written_through_without_a_question(program: Program, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("mine\n")
    (program.cwd / "link.txt").symlink_to(outside)
    with serving([call("edit_file", edit("link.txt", "mine", "yours").arguments), say("I see.")]) as server:
        done = replace(program, model_url=server.url).ask("go", "--permission-mode", "acceptEdits")
    assert (done.returncode in (57, 59), outside.read_text()) == (True, "mine\n")


def test_one_edit_that_does_not_fit_leaves_all_of_the_call_undone(program: Program) -> None:
    (program.cwd / "a.txt").write_text("one\ntwo\n")
    two = [{"old": "one", "new": "1"}, {"old": "three", "new": "3"}]
    results = told(program, look("a.txt"), call("edit_file", {"path": "a.txt", "edits": two}))
    assert "Nothing was changed in a.txt." in results[1]
    assert (program.cwd / "a.txt").read_text() == "one\ntwo\n"
