"""Files and lines are found without what is ignored, with and without git, with and without ripgrep, alike."""

import asyncio
import hashlib
import os
import re
import shutil
import struct
import subprocess
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycode.core.errors import ToolError
from mycode.permissions.gate import PermissionGate
from mycode.permissions.paths import find_places
from mycode.permissions.rules import make_rules
from mycode.tools.grep import Grep, GrepArgs
from mycode.tools.search import ListFiles, ListFilesArgs, SearchFiles, SearchFilesArgs, glob_regex, tree
from mycode.tools.walking import walk
from mycode.tools.workspace import Workspace

ENGINES = [None, *([found] if (found := shutil.which("rg")) else [])]


def _silent(_text: str) -> None:
    return


@pytest.fixture(params=["plain folder", "repository"])
def project(request: pytest.FixtureRequest, workspace: Path) -> Path:
    files = {
        ".gitignore": "*.log\nbuild/\n!keep.log\n",
        "README.md": "Hello Needle\n",
        "keep.log": "needle kept\n",
        "noise.log": "needle lost\n",
        "build/out.txt": "needle lost\n",
        "src/app.py": "def needle():\n    return 'haystack'\n\nneedle()\n",
        "src/deep/.gitignore": "secret.txt\n",
        "src/deep/secret.txt": "needle lost\n",
        "src/deep/open.txt": "nothing\n",
        "blob.bin": "\0needle",
    }
    for name, text in files.items():
        file = workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (workspace / "loop").symlink_to(workspace)
    if request.param == "repository":
        subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    return workspace


def test_ignored_files_are_left_out_and_links_are_not_followed(project: Path) -> None:
    assert [path for path in walk(project, limit=100) if path != "loop"] == [
        ".gitignore",
        "README.md",
        "blob.bin",
        "keep.log",
        "src/app.py",
        "src/deep/.gitignore",
        "src/deep/open.txt",
    ]


def test_a_walk_stops_at_its_limit(project: Path) -> None:
    assert len(list(walk(project, limit=3))) == 3


def test_an_ignore_file_that_cannot_be_read_ignores_nothing(workspace: Path) -> None:
    (workspace / "a").write_text("")
    for name, make in (("folder", Path.mkdir), ("pipe", os.mkfifo)):
        (workspace / name).mkdir()
        make(workspace / name / ".gitignore")
        (workspace / name / "b").write_text("")
    found = [path for path in walk(workspace, limit=9) if not path.endswith(".gitignore")]
    assert found == ["a", "folder/b", "pipe/b"]


def test_a_pattern_without_sense_is_passed_over(workspace: Path) -> None:
    (workspace / ".gitignore").write_text("!\na\n")
    (workspace / "a").write_text("")
    (workspace / "b").write_text("")
    assert list(walk(workspace, limit=9)) == [".gitignore", "b"]


async def test_files_are_found_by_glob_and_by_part_of_a_name(project: Path) -> None:
    search = SearchFiles(Workspace(project))
    by_glob = await search.run(SearchFilesArgs("**/*.txt"), _silent)
    by_part = await search.run(SearchFilesArgs("APP"), _silent)
    below = await search.run(SearchFilesArgs("*.txt", "src/deep"), _silent)
    assert (by_glob.text, by_part.text, below.text) == ("src/deep/open.txt", "src/app.py", "src/deep/open.txt")


async def test_nothing_found_says_how_much_was_looked_at(project: Path) -> None:
    text = (await SearchFiles(Workspace(project)).run(SearchFilesArgs("*.rs"), _silent)).text
    assert text.startswith("No file matches *.rs in . (")


@pytest.mark.parametrize("engine", ENGINES)
async def test_lines_are_found_in_order_with_their_numbers(project: Path, engine: str | None) -> None:
    text = (await Grep(Workspace(project), engine).run(GrepArgs("needle"), _silent)).text
    assert text == "keep.log:1: needle kept\nsrc/app.py:1: def needle():\nsrc/app.py:4: needle()"


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_glob_and_a_path_narrow_the_search(project: Path, engine: str | None) -> None:
    grep = Grep(Workspace(project), engine)
    by_glob = await grep.run(GrepArgs("(?i)needle", glob="*.md"), _silent)
    one_file = await grep.run(GrepArgs("hay", "src/app.py"), _silent)
    assert (by_glob.text, one_file.text) == ("README.md:1: Hello Needle", "src/app.py:2: return 'haystack'")


@pytest.mark.parametrize("engine", ENGINES)
async def test_look_around_works_with_every_engine(project: Path, engine: str | None) -> None:
    text = (await Grep(Workspace(project), engine).run(GrepArgs("needle(?= kept)"), _silent)).text
    assert text == "keep.log:1: needle kept"


async def test_a_bad_expression_is_told_with_the_literal_form(project: Path) -> None:
    with pytest.raises(ToolError) as caught:
        await Grep(Workspace(project)).run(GrepArgs("call("), _silent)
    assert str(caught.value).endswith("For the text itself use call\\(")


async def test_a_link_out_of_the_project_is_not_read(project: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("needle outside\n")
    (project / "link.txt").symlink_to(tmp_path / "outside.txt")
    text = (await Grep(Workspace(project)).run(GrepArgs("outside"), _silent)).text
    assert text == "No line matches outside in .."


@pytest.mark.parametrize("engine", ENGINES)
async def test_an_index_that_names_files_elsewhere_leads_no_search_there(
    engine: str | None, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside.txt").write_text("needle outside\n")
    (workspace / "a.txt").write_text("needle\n")
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    names = [str(tmp_path / "outside.txt"), os.path.relpath(tmp_path / "outside.txt", workspace)]
    (workspace / ".git/index").write_bytes(index_of(names))
    listed = subprocess.run(["git", "ls-files"], cwd=workspace, check=True, capture_output=True, text=True).stdout
    text = (await Grep(Workspace(workspace), engine).run(GrepArgs("needle"), _silent)).text
    assert (sorted(listed.split()), text) == (sorted(names), "a.txt:1: needle")
    assert list(walk(workspace, limit=9)) == ["a.txt"]


def index_of(names: list[str]) -> bytes:
    """A git index with these names, which git itself would not write."""
    data = b"DIRC" + struct.pack(">II", 2, len(names))
    for name in sorted(map(os.fsencode, names)):
        entry = bytes(24) + struct.pack(">I", 0o100644) + bytes(12) + bytes(20) + struct.pack(">H", len(name)) + name
        data += entry + b"\0" * (8 - len(entry) % 8)
    return data + hashlib.sha1(data, usedforsecurity=False).digest()


async def test_more_matches_than_fit_are_counted(workspace: Path) -> None:
    (workspace / "many.txt").write_text("x\n" * 500)
    text = (await Grep(Workspace(workspace)).run(GrepArgs("x"), _silent)).text
    assert text.splitlines()[0] == "500 matches in 1 file; the first 200:"
    assert len(text.splitlines()) == 201


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_word_that_is_everywhere_is_counted_without_keeping_every_line(
    engine: str | None, workspace: Path
) -> None:
    for name in "abcd":
        (workspace / f"{name}.txt").write_text("needle\n" * 30_000)
    (workspace / "long.txt").write_text("needle" * 500_000 + "\n")
    grep = Grep(Workspace(workspace), engine)
    tracemalloc.start()
    text = (await grep.run(GrepArgs("needle"), _silent)).text
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert text.splitlines()[:2] == ["120001 matches in 5 files; the first 200:", "a.txt:1: needle"]
    assert text.splitlines()[-1] == "a.txt:200: needle"
    assert peak < 20_000_000
    long = (await grep.run(GrepArgs("needle", "long.txt"), _silent)).text
    assert long == f"long.txt:1: {'needle' * 50} …"


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_mark_at_the_beginning_and_the_end_of_the_last_line_are_no_text(
    engine: str | None, workspace: Path
) -> None:
    (workspace / "a.txt").write_bytes(b"\xef\xbb\xbf#include\n\nend\n")
    (workspace / "empty.txt").write_bytes(b"")
    grep = Grep(Workspace(workspace), engine)
    found = [(await grep.run(GrepArgs(pattern), _silent)).text for pattern in ("^#inc", "^$")]
    assert found == ["a.txt:1: #include", "a.txt:2: "]


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_pipe_among_the_files_holds_up_no_search(engine: str | None, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    (workspace / "a.txt").write_text("needle\n")
    text = (await Grep(Workspace(workspace), engine, seconds=20).run(GrepArgs("needle"), _silent)).text
    assert text == "a.txt:1: needle"


async def test_a_missing_folder_is_one_sentence(workspace: Path) -> None:
    with pytest.raises(ToolError, match="There is no folder gone"):
        await ListFiles(Workspace(workspace)).run(ListFilesArgs("gone"), _silent)


async def test_a_tree_shows_what_fits_and_counts_the_rest(project: Path) -> None:
    text = (await ListFiles(Workspace(project)).run(ListFilesArgs(), _silent)).text
    assert "src/\n  app.py\n  deep/\n    .gitignore\n    open.txt" in text


def test_a_deep_tree_is_cut_at_the_depth_that_fits() -> None:
    files = [f"a/b{n}/c/file" for n in range(20)]
    assert tree(files, 5) == ["a/ (20 files)"]
    assert tree(["a/x", "top"], 10) == ["a/", "  x", "top"]


@given(st.text(alphabet="ab./?]}!,\\", min_size=1, max_size=12), st.sampled_from(["", "*", "**", "**/"]))
def test_a_glob_matches_itself_where_it_holds_no_sign_and_stars_stay_within_names(text: str, star: str) -> None:
    literal = text.replace("?", "q")
    assert glob_regex(literal).fullmatch(literal)
    assert bool(glob_regex(star + "x").fullmatch("a/b/x")) == (star in ("**", "**/"))


@pytest.mark.parametrize("pattern", ["[", "{", "[]", "{}", "[!", "a[b", "[z-a]"])
def test_an_open_bracket_is_a_letter_and_a_bad_range_is_told(pattern: str) -> None:
    if pattern == "[z-a]":
        with pytest.raises(ToolError, match="cannot be read"):
            glob_regex(pattern)
    else:
        assert glob_regex(pattern).fullmatch("never/such") is None


async def test_a_search_can_be_left_in_the_middle(project: Path) -> None:
    task = asyncio.create_task(Grep(Workspace(project)).run(GrepArgs("needle"), _silent))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_line_in_an_old_encoding_is_found_and_shown_with_a_sign_for_what_is_unreadable(
    workspace: Path, engine: str | None
) -> None:
    (workspace / "old.txt").write_bytes(b"caf\xe9 needle\n")
    text = (await Grep(Workspace(workspace), engine).run(GrepArgs("needle"), _silent)).text
    assert text == "old.txt:1: caf\ufffd needle"


@pytest.mark.parametrize("engine", ENGINES)
async def test_what_must_not_be_shown_is_passed_over_and_it_is_said(workspace: Path, engine: str | None) -> None:
    files = {".env": "KEY=needle\n", "vault/a.txt": "needle\n", "src/app.py": "needle\n", "cert.pem": "needle\n"}
    for name, text in files.items():
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(text)
    rules = make_rules(deny=["Read(./vault/**)"])
    place, gate = Workspace(workspace), PermissionGate("default", rules, find_places(workspace))

    grepped = await Grep(place, engine, gate.hidden).run(GrepArgs("needle"), _silent)
    found = await SearchFiles(place, gate.hidden).run(SearchFilesArgs("**/*"), _silent)
    listed = await ListFiles(place, gate.hidden).run(ListFilesArgs(), _silent)

    left_out = "[3 files were left out: secrets may be in there, or a rule forbids it]"
    one = "[1 file was left out: secrets may be in there, or a rule forbids it]"
    assert grepped.text == f"src/app.py:1: needle\n{left_out}"
    assert found.text == f".env\ncert.pem\nsrc/app.py\n{one}"
    assert listed.text == f".env\ncert.pem\nsrc/\n  app.py\n{one}"


async def test_what_the_person_named_or_allowed_is_searched(workspace: Path) -> None:
    (workspace / ".aws").mkdir()
    (workspace / ".aws/config").write_text("needle\n")
    (workspace / "a.pem").write_text("needle\n")
    place = Workspace(workspace)

    async def hits(path: str, gate: PermissionGate) -> list[str]:
        told = await Grep(place, None, gate.hidden).run(GrepArgs("needle", path), _silent)
        return [line.partition(":")[0] for line in told.text.splitlines() if ":1:" in line]

    plain = PermissionGate("default", None, find_places(workspace))
    allowing = PermissionGate("default", make_rules(allow=["Read(*.pem)"]), find_places(workspace))
    forbidding = PermissionGate("bypassPermissions", make_rules(deny=["Read(*.pem)"]), find_places(workspace))
    told = [await hits("a.pem", plain), await hits(".aws", plain), await hits(".", allowing)]
    assert told == [["a.pem"], [".aws/config"], ["a.pem"]]
    assert await hits(".", forbidding) == [".aws/config"]


async def test_a_folder_that_became_a_link_after_it_was_judged_is_not_searched(workspace: Path, tmp_path: Path) -> None:
    (workspace / "src").mkdir()
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/a").write_text("needle\n")
    place = Workspace(workspace)
    grep = Grep(place)
    grep.plan(GrepArgs("needle", "src"))
    (workspace / "src").rmdir()
    (workspace / "src").symlink_to(tmp_path / "theirs")
    with pytest.raises(ToolError, match="A link came to lie on the way to src"):
        await grep.run(GrepArgs("needle", "src"), _silent)


@pytest.mark.skipif(shutil.which("rg") is None, reason="only ripgrep could be led astray")
async def test_a_folder_that_becomes_a_link_during_the_search_shows_nothing_of_where_it_leads(
    workspace: Path, tmp_path: Path
) -> None:
    (workspace / "src").mkdir()
    (workspace / "src/a.txt").write_text("nothing\n")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/a.txt").write_text("needle\n")
    engine = tmp_path / "rg"
    swap = f"mv {workspace}/src {tmp_path}/was; ln -s {tmp_path}/theirs {workspace}/src"
    engine.write_text(f'#!/bin/sh\n{swap}\nexec {shutil.which("rg")} "$@"\n')
    engine.chmod(0o755)
    told = await Grep(Workspace(workspace), str(engine)).run(GrepArgs("needle"), _silent)
    assert (workspace / "src").is_symlink()
    assert told.text == "No line matches needle in .."


@pytest.mark.parametrize("pattern", ["(a|aa)+$", "(?=a)(a|aa)+$"])
async def test_an_expression_that_takes_for_ever_is_stopped_and_holds_up_nothing(workspace: Path, pattern: str) -> None:
    (workspace / "a.txt").write_text("a" * 100 + "b\n")
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    with pytest.raises(ToolError, match="took longer than 1 s"):
        await Grep(Workspace(workspace), None, seconds=1).run(GrepArgs(pattern), _silent)
    ticking.cancel()
    assert ticks > 10


@pytest.mark.parametrize(
    "pattern", ["*a" * 30 + "*b", "**/" * 30 + "b", "**/a/" * 6 + "b", "?*" * 40 + "b", "**" * 20 + "b", "*[*]a*b"]
)
def test_no_glob_takes_for_ever(pattern: str) -> None:
    assert glob_regex(pattern).fullmatch("/".join(["a" * 60] * 30)) is None


def test_a_glob_with_many_open_ends_is_refused() -> None:
    with pytest.raises(ToolError, match="too many"):
        glob_regex("**/a/" * 20 + "b")


@given(st.lists(st.sampled_from(["*", "a", "b", "?", "ab", "[ab]", "[*b]"]), max_size=7), st.text("abc*", max_size=8))
def test_a_glob_finds_what_the_plain_meaning_of_its_signs_finds(parts: list[str], name: str) -> None:
    plain = "".join({"*": "[^/]*", "?": "[^/]"}.get(part, part) for part in parts)
    assert bool(glob_regex("".join(parts)).fullmatch(name)) == bool(re.fullmatch(plain, name))
