"""Numbers, diffs, pictures and styles: the small forms that everything shown is made of."""

import pytest
from rich.text import Text

from mycode.core.tools import DiffDisplay
from mycode.render.diff import diff
from mycode.render.numbers import duration, money, percent, percent_less, plural, tokens
from mycode.render.screen import Canvas, picture
from mycode.render.theme import theme


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0"), (999, "999"), (1000, "1k"), (12_440, "12.4k"), (128_000, "128k"), (999_700, "1M"), (1_050_000, "1.05M")],
)
def test_tokens_are_short(count: int, shown: str) -> None:
    assert tokens(count) == shown


@pytest.mark.parametrize(
    ("share", "shown"), [(0, "0 %"), (0.0001, "0.1 %"), (0.004, "0.4 %"), (0.07, "7 %"), (1.2, "120 %")]
)
def test_something_is_never_shown_as_nothing(share: float, shown: str) -> None:
    assert percent(share) == shown


@pytest.mark.parametrize(
    ("dollars", "shown"), [(None, "cost unknown"), (0, "$0"), (0.00123, "$0.0012"), (0.5, "$0.500"), (12.3, "$12.30")]
)
def test_an_unknown_price_is_not_zero(dollars: float | None, shown: str) -> None:
    assert money(dollars) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.44, "0.4 s"), (2, "2 s"), (59.6, "1 min 00 s"), (185, "3 min 05 s"), (3720, "1 h 02 min")]
)
def test_times_are_short(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_counts_agree_with_their_noun() -> None:
    assert (plural(1, "message"), plural(1234, "message"), plural(2, "summary", "summaries")) == (
        "1 message",
        "1,234 messages",
        "2 summaries",
    )
    assert percent_less(0, 0) == "0 %"


def test_a_long_diff_is_cut_with_a_count() -> None:
    change = DiffDisplay(
        "a.py", "@@ -0,0 +1,160 @@\n" + "".join(f"+line {n}\n" for n in range(1, 161)), 160, 0, created=True
    )

    shown = Canvas(60, color=False).text(diff(change, limit=3)).splitlines()

    assert shown == ["a.py  new file  +160 -0", "  1 + line 1", "  2 + line 2", "… 158 more lines"]
    assert len(Canvas(60, color=False).text(diff(change, limit=None)).splitlines()) == 161


def test_a_long_line_of_a_diff_is_cut_unless_all_is_wanted() -> None:
    change = DiffDisplay("a.js", "@@ -1 +1 @@\n-" + "a" * 300_000 + "\n+" + "b" * 2_000 + "\n", 1, 1)
    shown, whole = (Canvas(100, plain=True).text(diff(change, limit=limit)) for limit in (40, None))
    assert "… 299,000 more characters" in shown
    assert (shown.count("a") < 1_100, whole.count("b")) == (True, 2_000)


def test_wide_letters_and_emoji_keep_their_place() -> None:
    shown = Canvas(12, color=False).text(Text("漢字漢字漢字漢字 👩‍💻 ok"))

    assert "".join(shown.split()) == "漢字漢字漢字漢字👩‍💻ok"
    assert all(len(line) <= 12 for line in shown.splitlines())


def test_a_picture_of_the_terminal_is_an_svg() -> None:
    svg = picture(Canvas(30).text(Text("hello", style="ok")), title="talk", width=30)

    assert svg.startswith("<svg")
    assert "hello" in svg
    assert "talk" in svg


def test_both_looks_name_the_same_styles_and_only_palette_colours() -> None:
    dark, light = theme("dark"), theme("light")

    assert set(dark.styles) == set(light.styles)
    ours = [light.styles[name] for name in ("muted", "accent", "prompt", "bar.1", "bar.5", "added", "markdown.code")]
    assert all(style.color is None or (style.color.number or 0) < 16 for style in ours)
    assert all(style.color is None or style.color.name not in {"white", "yellow", "cyan"} for style in ours)
