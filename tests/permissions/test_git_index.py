"""Repositories inside a repository are found in its index, however git writes it."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from mycode.permissions.git_index import embedded, gitlinks
from mycode.permissions.survey import on_disk

NAMES = ("a", "a/b/c/inner", "lib", "lib-two", "z" * 300)


def git(folder: Path, *words: str) -> str:
    given = ["git", "-c", "user.name=me", "-c", "user.email=me@example.com", *words]
    return subprocess.run(given, cwd=folder, check=True, capture_output=True, text=True).stdout


def repository(folder: Path, *options: str) -> Path:
    """A repository with files and, besides them, three folders that are repositories of their own."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", *options)
    for name in NAMES[1:2] + NAMES[3:]:
        file = folder / name / "file" if name == "lib-two" else folder / f"{name[:200]}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "x")
    head = git(folder, "rev-parse", "HEAD").strip()
    for name in ("lib", "a/b/c/inner", "z" * 300):
        git(folder, "update-index", "--add", "--cacheinfo", f"160000,{head},{name}")
    return folder


@pytest.mark.parametrize("options", [(), ("--object-format=sha256",)])
@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_they_are_found_in_every_version(tmp_path: Path, options: tuple[str, ...], version: str):
    folder = repository(tmp_path / "w", *options)
    if version == "3":
        (folder / "later").touch()
        git(folder, "add", "-N", "later")
    git(folder, "update-index", "--index-version", version)
    (folder / "lib/.git").mkdir(parents=True)

    assert (folder / ".git/index").read_bytes()[7] == int(version)
    assert gitlinks(folder / ".git") == ("a/b/c/inner", "lib", "z" * 300)
    assert list(embedded(folder, folder / ".git")) == [folder / "lib/.git"]
    said = on_disk().repository(str(folder))
    assert said is not None
    assert said.runs == "the repository inside lib"


def test_those_inside_a_submodule_are_found_where_its_own_folder_is(tmp_path: Path):
    folder, module = repository(tmp_path / "w"), repository(tmp_path / "m")
    (folder / ".git/modules").mkdir()
    (module / ".git").rename(folder / ".git/modules/lib")
    (folder / "lib/lib/.git").mkdir(parents=True)
    (folder / "lib/.git").write_text("gitdir: ../.git/modules/lib\n")

    assert list(embedded(folder, folder / ".git")) == [folder / "lib/.git", folder / "lib/lib/.git"]


def test_an_index_in_two_files_is_read_whole_or_not_at_all(tmp_path: Path):
    folder = repository(tmp_path / "w")
    git(folder, "update-index", "--split-index")
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{git(folder, 'rev-parse', 'HEAD').strip()},more")

    found = gitlinks(folder / ".git")

    assert sorted(found or ()) == ["a/b/c/inner", "lib", "more", "z" * 300]


@pytest.mark.parametrize("change", [lambda data: data[:100], lambda _: b"no index", lambda data: data[:7] + b"\x09"])
def test_what_is_no_index_is_said_to_be_unreadable(tmp_path: Path, change):
    folder = repository(tmp_path / "w")
    index = folder / ".git/index"
    index.write_bytes(change(index.read_bytes()))

    said = on_disk().repository(str(folder))

    assert gitlinks(folder / ".git") is None
    assert said is not None
    assert said.runs == "its index cannot be read"


def entry(mode: int, name: bytes, flags: int = 0) -> bytes:
    """One entry as version 2 writes it."""
    text = bytes(24) + mode.to_bytes(4) + bytes(32) + (flags | len(name)).to_bytes(2) + name
    return text + bytes(8 - len(text) % 8)


def table(*entries: bytes, more: bytes = b"") -> bytes:
    data = b"DIRC" + (2).to_bytes(4) + len(entries).to_bytes(4) + b"".join(entries) + more
    return data + hashlib.sha1(data).digest()


def part(name: bytes, content: bytes) -> bytes:
    return name + len(content).to_bytes(4) + content


FILE, INNER = entry(0o100644, b"a"), entry(0o160000, b"inner")
BLOCKS = part(b"IEOT", (1).to_bytes(4) + b"".join(number.to_bytes(4) for number in (12, 1, 12 + 72 + 8, 1)))
ELSEWHERE = part(b"ZZZZ", INNER) + BLOCKS


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(table(FILE, entry(0o1160000, b"inner")), id="a kind with more letters than git writes"),
        pytest.param(table(entry(0o100644, b"a\0" + b"b" * 20), INNER), id="a name with its end in the middle"),
        pytest.param(table(FILE[:60] + b"\0\3a" + bytes(9), INNER), id="a length that is another"),
        pytest.param(
            table(FILE, FILE, more=ELSEWHERE + part(b"EOIE", (12 + 144 + 80).to_bytes(4) + bytes(20))),
            id="entries for another thread elsewhere",
        ),
        pytest.param(
            table(FILE, more=ELSEWHERE + part(b"EOIE", (12 + 72 + 80).to_bytes(4) + bytes(20))),
            id="what follows the entries begins elsewhere",
        ),
    ],
)
def test_an_index_that_two_programs_could_read_in_two_ways_is_unreadable(tmp_path: Path, data: bytes):
    git(tmp_path, "init", "-q")
    (tmp_path / ".git/index").write_bytes(data)

    assert gitlinks(tmp_path / ".git") is None


def test_the_same_index_without_the_oddity_is_read(tmp_path: Path):
    git(tmp_path, "init", "-q")
    (tmp_path / ".git/index").write_bytes(table(FILE, INNER))

    assert gitlinks(tmp_path / ".git") == ("inner",)


@pytest.mark.parametrize("version", ["2", "4"])
def test_what_git_writes_for_several_threads_is_read(tmp_path: Path, version: str):
    folder = repository(tmp_path / "w")
    for number in range(60):
        (folder / f"more-{number}").touch()
    git(folder, "add", *(f"more-{number}" for number in range(60)))
    options = ("index.threads=4", "index.recordOffsetTable=true", "index.recordEndOfIndexEntries=true")
    settings = [word for option in options for word in ("-c", option)]
    git(folder, *settings, "update-index", "--force-write-index", "--index-version", version)

    assert b"EOIE" in (folder / ".git/index").read_bytes()
    assert gitlinks(folder / ".git") == ("a/b/c/inner", "lib", "z" * 300)


def test_repositories_in_a_folder_of_which_nothing_is_checked_out_are_found(tmp_path: Path):
    git(tmp_path, "init", "-q")
    (tmp_path / ".git/index").write_bytes(table(FILE, entry(0o040000, b"left/out/"), more=part(b"sdir", b"")))
    (tmp_path / "left/out/deep/.git").mkdir(parents=True)

    assert list(embedded(tmp_path, tmp_path / ".git")) == [tmp_path / "left/out/deep/.git"]


@pytest.mark.parametrize("missing", ["HEAD", "objects", "refs"])
def test_a_repository_that_git_would_pass_over_for_another_is_told(tmp_path: Path, missing: str):
    git(tmp_path, "init", "-q")
    before = on_disk().repository(str(tmp_path))
    (tmp_path / ".git" / missing).rename(tmp_path / missing)

    said = on_disk().repository(str(tmp_path))

    assert before is not None
    assert said is not None
    assert (before.runs, said.runs) == (None, "git may take another repository than this .git, which is not whole")


def test_a_repository_without_an_index_has_none(tmp_path: Path):
    (tmp_path / "w").mkdir()
    git(tmp_path / "w", "init", "-q")

    assert gitlinks(tmp_path / "w/.git") == ()
