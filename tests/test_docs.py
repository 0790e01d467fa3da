"""What the documentation says is true: commands, links, examples, generated pages."""

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from mycode.core import errors

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PAGES = sorted([README, ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")])
FIRST_COMMAND = (
    "python3 -m venv .venv && .venv/bin/pip install -q --disable-pip-version-check . && .venv/bin/mycode demo"
)


def _named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _fenced(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _tracked() -> list[Path]:
    """The files of the project: what git knows, or all of them where there is no git."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        files = [ROOT / name.decode() for name in listed.stdout.split(b"\0") if name]
    else:
        files = [file for file in ROOT.rglob("*") if not any(part.startswith(".") for part in file.parts)]
    return [file for file in files if file.is_file()]


@pytest.mark.parametrize("page", ["settings.md", "events.md", "commands.md", "exit-codes.md"])
def test_a_generated_page_says_what_the_program_says(page: str) -> None:
    written = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert written == _generator().pages()[page], "run python docs/generate.py"


def test_every_exit_code_of_an_error_is_explained() -> None:
    page = (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    explained = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    used = {kind.exit_code for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "exit_code")}
    assert used <= explained
    assert all(kind in page for kind, value in vars(errors).items() if isinstance(value, type))


def test_the_readme_begins_with_exactly_two_commands_and_the_second_is_what_ci_runs() -> None:
    section = README.read_text(encoding="utf-8").split("## Two commands\n")[1].split("\n## ")[0]
    shown = re.findall(r"^```bash\n(.*?)\n```$", section, re.MULTILINE | re.DOTALL)
    in_ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8").split("# README: the second command\n")[1].split("\n")[0]
    assert shown == [FIRST_COMMAND, in_ci]


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_every_link_inside_the_project_leads_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "", text)
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("https://", "http://", "mailto:")):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name) if name else page
        if not file.exists() or (anchor and anchor not in _anchors(file)):
            broken.append(target)
    assert broken == []


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [page for page in PAGES if _fenced(page, "python")], ids=_named)
def test_every_python_example_runs(page: Path) -> None:
    for example in _fenced(page, "python"):
        exec(compile(example, str(page), "exec"), {"__name__": "example"})


@pytest.mark.parametrize("page", [page for page in PAGES if _fenced(page, "toml")], ids=_named)
def test_every_example_of_settings_is_understood(page: Path) -> None:
    import tomllib

    import msgspec

    from mycode.config.settings import Settings

    for example in _fenced(page, "toml"):
        msgspec.convert(tomllib.loads(example), Settings, strict=True)


def test_every_setting_named_for_one_run_is_understood() -> None:
    from mycode.config.folders import Folders
    from mycode.config.load import load

    nowhere = Folders(ROOT / "none", ROOT / "none", ROOT / "none")
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = dict(re.findall(r"(MYCODE_\w+__\w+)=([\w.]+)", text))
    for key, value in re.findall(r"--set ([a-z][\w.]*)=([\w.]+)", text):
        named["MYCODE_" + key.upper().replace(".", "__")] = value
    assert named
    assert len(load(nowhere, env=named, flags={}).origins) == len(named)


def test_every_option_named_in_a_page_exists() -> None:
    known = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")))
    unknown = []
    for page in PAGES:
        for line in re.findall(
            r"`mycode (?!demo --)[^`]*`|^mycode .*$", page.read_text(encoding="utf-8"), re.MULTILINE
        ):
            words = re.sub(r"\"[^\"]*\"|'[^']*'", "", line.split("#")[0])
            unknown += [(page.name, word) for word in re.findall(r"(?<!\S)--[a-z][\w-]*", words) if word not in known]
    assert unknown == []


def test_every_slash_command_named_in_a_page_exists() -> None:
    from mycode.repl.commands import registry

    known = set(registry.standard().names())
    unknown = []
    for page in PAGES:
        for name in re.findall(r"`/([a-z][a-z-]*)(?: [^`]*)?`", page.read_text(encoding="utf-8")):
            unknown += [(page.name, name)] if name not in known else []
    assert unknown == []


def test_the_changelog_has_the_form_it_says_it_has() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert text.startswith("# Changelog\n")
    assert "https://keepachangelog.com/" in text
    versions = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", version) for version in versions[1:])
    kinds = set(re.findall(r"^### (.+)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def _foreign() -> dict[str, re.Pattern[str]]:
    """What has no place in any file; put together from pieces, so that this file does not hold it."""
    hosts = ["py" + "pi.org", "python" + "hosted.org", "npm" + "js.org", "arti" + r"factory\.", "index" + "-url"]
    places = [
        "/wo" + r"rk/(?:main|shared|venv|lead|scratch)",
        "/ro" + "ot/",
        r"/home/(?!(?:me|ada|user)\b)\w+/",
        r"/Users/(?!(?:me|ada|user)\b)\w+/",
    ]
    makers = [
        "co-auth" + "ored-by",
        r"generated (?:by|with) (?:an? )?(?:ai|llm|claude|gpt|copilot)\b",
        "written by an? (?:ai|llm)",
    ]
    ways = [
        r"\bthe br" + r"ief\b",
        r"\bissue " + r"#?\d",
        r"\bse" + r"ed doc",
        "se" + r"eds/",
        "sha" + r"red/(?:se|re|de)",
        r"\bS[0-4] se" + "ed",
    ]
    groups = {"a registry": hosts, "a machine's path": places, "a maker": makers, "a way of working": ways}
    return {what: re.compile("|".join(words), re.IGNORECASE) for what, words in groups.items()}


@pytest.mark.parametrize("what", ["a registry", "a machine's path", "a maker", "a way of working"])
def test_no_file_speaks_of_anything_but_the_project(what: str) -> None:
    pattern = _foreign()[what]
    found = []
    for file in _tracked():
        text = file.read_bytes().decode("utf-8", errors="replace")
        found += [f"{_named(file)}: {hit.group()}" for hit in pattern.finditer(text)]
    assert found == []


def test_the_picture_was_made_by_the_program_and_fetches_nothing() -> None:
    picture = (ROOT / "docs" / "terminal.svg").read_text(encoding="utf-8")
    assert "Summarizing" in picture
    assert re.findall(r"(?:url\(|href=|src=)[\"']?https?:", picture) == []
    assert sys.prefix not in picture


def test_every_requirement_is_there_and_names_a_test() -> None:
    text = (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (R\d+) \| (.+) \|$", text, re.MULTILINE))
    assert list(rows) == [f"R{number}" for number in range(1, 121)]
    assert re.findall(r"^\| (C\d+) \|", text, re.MULTILINE) == [f"C{number}" for number in range(1, 25)]
    assert [number for number, row in rows.items() if "`tests/" not in row] == []


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    named = set(re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", page.read_text(encoding="utf-8")))
    assert [test for test in sorted(named) if test[1] not in _tests_in(ROOT / test[0])] == []


@pytest.mark.parametrize("name", ["reliability.md", "security.md"])
def test_every_row_that_promises_something_names_a_test(name: str) -> None:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    tables = re.findall(r"^\|[^\n]*shown by \|\n\|[-|]+\|\n((?:\|[^\n]*\n)+)", text, re.MULTILINE)
    rows = [row for table in tables for row in table.splitlines()]
    assert rows
    assert [row for row in rows if "`tests/" not in row] == []


def _tests_in(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8")) if file.exists() else ast.Module([], [])
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
