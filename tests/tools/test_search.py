"""Files and lines are found without what is ignored, with and without git, with and without ripgrep, alike."""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycode.core.errors import ToolError
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


async def test_more_matches_than_fit_are_counted(workspace: Path) -> None:
    (workspace / "many.txt").write_text("x\n" * 500)
    text = (await Grep(Workspace(workspace)).run(GrepArgs("x"), _silent)).text
    assert text.splitlines()[0] == "500 matches in 1 file; the first 200:"
    assert len(text.splitlines()) == 201


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
