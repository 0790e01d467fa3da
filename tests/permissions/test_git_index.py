"""Repositories inside a repository are found in its index, however git writes it."""

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


def test_a_repository_without_an_index_has_none(tmp_path: Path):
    (tmp_path / "w").mkdir()
    git(tmp_path / "w", "init", "-q")

    assert gitlinks(tmp_path / "w/.git") == ()
