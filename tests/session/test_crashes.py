"""Processes die, disks fill up, and several run at once: nothing that was acknowledged is lost."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from mycode.core.errors import SessionError
from mycode.core.messages import UserMessage
from mycode.session.locks import SessionHeld
from mycode.session.store import Store
from tests.support.appending import body
from tests.support.entries import conversation, entry

ROOT = Path(__file__).parents[2]
KILLS = 32


def appender(folder: Path, session: str, count: int, *more: int) -> "subprocess.Popen[str]":
    arguments = [str(folder), session, str(count), *map(str, more)]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.appending", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def empty_session(folder: Path) -> str:
    store = Store(folder)
    session = store.create(title="kept although empty")
    store.close()
    return session


def assert_whole(folder: Path, session: str, acknowledged: int) -> None:
    store = Store(folder)
    entries = list(store.log(session).read(1))
    assert len(entries) >= acknowledged
    assert [one.body for one in entries] == [body(seq) for seq in range(1, len(entries) + 1)]
    assert store.verify(session) == []
    store.close()


def test_nothing_acknowledged_is_lost_when_the_process_is_killed_again_and_again(tmp_path: Path) -> None:
    session = empty_session(tmp_path)
    chance = random.Random(7)
    acknowledged = 0
    for _ in range(KILLS):
        with appender(tmp_path, session, 10_000) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            for _ in range(chance.randrange(12)):
                acknowledged = int(process.stdout.readline())
            for _ in range(chance.randrange(20_000)):
                pass
            process.kill()
            rest = process.stdout.read().splitlines()
            acknowledged = max([acknowledged, *(int(line) for line in rest if line.isdigit())])
        assert process.returncode == -9
        assert_whole(tmp_path, session, acknowledged)
    assert acknowledged > KILLS


def test_processes_in_one_folder_do_not_disturb_each_other(tmp_path: Path) -> None:
    sessions = [empty_session(tmp_path) for _ in range(3)]
    processes = [appender(tmp_path, session, 60) for session in sessions]
    for process in processes:
        out, _ = process.communicate(timeout=60)
        assert out.splitlines()[-1] == "60"
        assert process.returncode == 0
    for session in sessions:
        assert_whole(tmp_path, session, 60)


def test_a_session_held_by_a_living_process_is_refused_until_it_dies(tmp_path: Path) -> None:
    session = empty_session(tmp_path)
    store = Store(tmp_path)
    with appender(tmp_path, session, 10_000) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(SessionHeld, match=f"process {process.pid}"):
            store.claim(session)
        fork = store.fork(session)
        store.append(fork, entry(store.log(fork).last_seq() + 1, UserMessage("beside it")))
        process.kill()
    store.claim(session)
    last = store.log(session).last_seq()
    store.append(session, entry(last + 1, UserMessage("after it")))
    assert store.verify(session) == store.verify(fork) == []


def test_many_processes_may_make_the_database_at_once(tmp_path: Path) -> None:
    code = """if True:
        import sys, pathlib
        from mycode.session.store import Store
        Store(pathlib.Path(sys.argv[1])).create(title="x")"""
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "new")], cwd=ROOT, stderr=subprocess.PIPE)
        for _ in range(6)
    ]
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert errors == [b""] * 6
    assert Store(tmp_path / "new").database.row("SELECT count(*) FROM sessions") == (6,)


def test_a_full_disk_is_told_and_loses_nothing(tmp_path: Path) -> None:
    session = empty_session(tmp_path)
    size = 400_000
    with appender(tmp_path, session, 400, size) as process:
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
    refused = [line for line in lines if line.startswith("refused")]
    assert process.returncode == 0
    assert len(refused) == 1
    assert str(tmp_path / "sessions.db") in refused[0]
    assert "free" in refused[0].lower()
    assert lines[-1] == "400"
    assert_whole(tmp_path, session, 400)


def test_a_torn_write_ahead_log_costs_at_most_what_was_not_acknowledged(tmp_path: Path) -> None:
    session = empty_session(tmp_path)
    with appender(tmp_path, session, 10_000) as process:
        assert process.stdout is not None
        for _ in range(20):
            line = process.stdout.readline()
        process.kill()
    wal = tmp_path / "sessions.db-wal"
    with wal.open("r+b") as file:
        file.seek(0, 2)
        file.write(b"\x00" * 700 + b"half a frame")
    assert_whole(tmp_path, session, int(line))


def test_a_damaged_page_is_a_sentence_that_says_how_to_save_the_rest(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = store.create(title="old")
    store.append(session, *conversation(200))
    store.close()
    with (tmp_path / "sessions.db").open("r+b") as file:
        for page in range(8, 20):
            file.seek(page * 4096)
            file.write(b"\xde\xad" * 2048)
    again = Store(tmp_path)
    with pytest.raises(SessionError, match=r"is damaged .*\.recover"):
        list(again.log(session).read(1))


def test_where_nothing_may_be_written_everything_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    session = store.create(title="old")
    store.append(session, entry(1, UserMessage("a zebra")))
    store.search("zebra")
    store.close()
    monkeypatch.setattr("os.access", lambda *_: False)
    reader = Store(tmp_path)
    assert reader.read_only
    assert [info.title for info in reader.sessions()] == ["old"]
    assert [found.handle for found in reader.search("zebra")] == ["m1"]
    with pytest.raises(SessionError, match=r"cannot be written\. Change its permissions"):
        reader.append(session, entry(2, UserMessage("more")))
    reader.close()


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SessionError, match=r"cannot be used: .* Set MYCODE_HOME"):
        Store(tmp_path / "file" / "data")
