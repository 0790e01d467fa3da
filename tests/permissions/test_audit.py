"""The log of verdicts shows when it was changed."""

import multiprocessing
from pathlib import Path

import msgspec
import pytest

from mycode.core.errors import SessionError
from mycode.permissions.audit import AuditLog, AuditRecord, Broken


def record(title: str) -> AuditRecord:
    return AuditRecord(1.0, "verdict", "s1", "default", "execute_bash", title, "ask", "why", None, "person")


def log_of(path: Path, *titles: str) -> AuditLog:
    log = AuditLog(path)
    for title in titles:
        log.append(record(title))
    return log


def test_records_are_numbered_chained_and_read_back(tmp_path: Path):
    log = log_of(tmp_path / "logs" / "audit.jsonl", "a", "b", "c")

    records = list(log.read())

    assert [(one.seq, one.title) for one in records] == [(1, "a"), (2, "b"), (3, "c")]
    assert records[1].previous == records[0].hash
    assert log.verify() is None


def test_only_the_owner_may_read_it(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    path.touch(0o666)
    path.chmod(0o666)

    log_of(path, "a")

    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (lambda lines: [lines[0].replace(b'"ask"', b'"allow"'), *lines[1:]], Broken(1, "the line was changed")),
        (lambda lines: [lines[0], lines[2]], Broken(2, "lines before it are missing or were put in")),
        (lambda lines: lines[1:], Broken(1, "lines before it are missing or were put in")),
        (lambda lines: [lines[0], lines[2], lines[1]], Broken(2, "lines before it are missing or were put in")),
        (lambda lines: [*lines[:2], lines[2][:40]], Broken(3, "the line cannot be read")),
        (lambda lines: lines[:2], Broken(3, "lines at the end are missing")),
        (lambda lines: [], Broken(1, "lines at the end are missing")),
        (
            lambda lines: [lines[0].replace(b'"mode"', b'"note":"x","mode"'), *lines[1:]],
            Broken(1, "the line was changed"),
        ),
        (
            lambda lines: [lines[0].replace(b'"decision"', b'"decision":"deny","decision"'), *lines[1:]],
            Broken(1, "the line was changed"),
        ),
    ],
)
def test_a_change_shows(tmp_path: Path, change, broken: Broken):
    path = tmp_path / "audit.jsonl"
    log = log_of(path, "a", "b", "c")

    path.write_bytes(b"\n".join(change(path.read_bytes().splitlines())) + b"\n")

    assert log.verify() == broken


def test_a_log_that_was_taken_away_shows_when_it_goes_on(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    log = log_of(path, "a", "b", "c")
    forged = log_of(tmp_path / "other", "x", "y", "z", "more")

    path.unlink()
    gone = log.verify()
    log.append(record("d"))
    path_of_d = log.verify()
    path.write_bytes((tmp_path / "other").read_bytes())

    assert (gone, path_of_d) == (
        Broken(1, "lines at the end are missing"),
        Broken(1, "lines before it are missing or were put in"),
    )
    assert log.verify() == Broken(4, "the log was written anew from here or before")
    assert forged.verify() is None


def test_a_cut_line_is_fenced_and_the_log_goes_on(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    log = log_of(path, "a", "b")
    path.write_bytes(path.read_bytes()[:-20])

    log.append(record("c"))

    assert [one.title for one in log.read()] == ["a", "c"]
    assert log.verify() == Broken(2, "the line cannot be read")


def test_secrets_stay_out_of_it(tmp_path: Path):
    path = tmp_path / "audit.jsonl"

    log_of(path, "curl --token 8f7a6b5c4d3e2f1a one.example")

    assert b"8f7a6b5c4d3e2f1a" not in path.read_bytes()


def test_a_name_with_half_a_letter_and_a_rule_without_end_are_kept_as_far_as_they_can_be(tmp_path: Path):
    log = AuditLog(tmp_path / "audit.jsonl")
    log.append(msgspec.structs.replace(record("edit_file \udcff.txt"), rule="x" * 100_000))
    log.append(record("next"))

    kept = list(log.read())

    assert [(one.title, len(one.rule or "")) for one in kept] == [("edit_file ?.txt", 2000), ("next", 0)]
    assert log.verify() is None


def test_a_link_in_its_place_is_refused(tmp_path: Path):
    (tmp_path / "audit.jsonl").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(SessionError, match="cannot be written"):
        log_of(tmp_path / "audit.jsonl", "a")


def _append_many(path: Path) -> None:
    log_of(path, *["x"] * 25)


def test_several_processes_keep_one_chain(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_append_many, args=(path,)) for _ in range(3)]

    for process in processes:
        process.start()
    for process in processes:
        process.join(60)

    assert AuditLog(path).verify() is None
    assert [one.seq for one in AuditLog(path).read()] == list(range(1, 76))


def test_a_record_is_one_line_of_json(tmp_path: Path):
    path = tmp_path / "audit.jsonl"

    log_of(path, "line\nbreak")

    assert len(path.read_bytes().splitlines()) == 1
    assert msgspec.json.decode(path.read_bytes())["title"] == "line\nbreak"
