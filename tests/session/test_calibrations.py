from pathlib import Path

from mycode.context.budget import Learned
from mycode.session.calibrations import MOST, Calibrations


def test_what_was_learned_is_known_in_the_next_session(tmp_path: Path):
    file = tmp_path / "new" / "calibrations.json"
    counts, windows = Learned(1.0625), Learned(1.25, 32_000, 200_000, guessed=True)
    Calibrations(file).keep({("openai", "gpt-5"): counts})
    Calibrations(file).keep({("anthropic", "claude"): windows})
    assert Calibrations(file).get("openai", "gpt-5") == counts
    assert Calibrations(file).get("anthropic", "claude") == windows
    assert file.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in file.parent.iterdir()] == ["calibrations.json"]


def test_a_damaged_file_and_mad_values_count_as_nothing_learned(tmp_path: Path):
    file = tmp_path / "calibrations.json"
    mad = '{"a/b": {"window": 9000, "of": 8000}}'
    for text in ("", "[1]", '{"a/b": "x"}', '{"a/b": 40}', "\xff", mad, '{"a/b": {"window": -1}}'):
        file.write_text(text, encoding="latin-1")
        assert Calibrations(file).get("a", "b") is None


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path):
    (tmp_path / "file").write_text("")
    Calibrations(tmp_path / "file" / "calibrations.json").keep({("a", "b"): Learned(1.1)})
    assert Calibrations(tmp_path / "file" / "calibrations.json").get("a", "b") is None


def test_only_the_newest_models_are_kept(tmp_path: Path):
    kept = Calibrations(tmp_path / "calibrations.json")
    kept.keep({("p", f"m{number}"): Learned(1.1) for number in range(MOST + 5)})
    assert kept.get("p", "m0") is None
    assert kept.get("p", f"m{MOST + 4}") == Learned(1.1)


def test_a_file_of_an_older_version_holds_mere_multipliers(tmp_path: Path):
    file = tmp_path / "calibrations.json"
    file.write_text('{"a/b": 1.2, "a/c": 1}')
    kept = Calibrations(file)
    kept.keep({("a", "d"): Learned(1.3)})
    assert [kept.get("a", name) for name in "bcd"] == [Learned(1.2), Learned(), Learned(1.3)]
