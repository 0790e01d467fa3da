"""Streamed markdown is cut into blocks that come out once, as soon as they are finished, whatever the pieces were."""

from hypothesis import given
from hypothesis import strategies as st

from mycode.render.blocks import Block, MarkdownStream
from mycode.render.markdown import open_block, whole
from mycode.render.screen import Canvas

ANSWER = """\
# Title

Some *text* with `code` and [a link](http://x.y/z).

- one
- two
  more
  - nested

1. first
   ```python
   def f():

       return 1
   ```
   after it
2. second

| a | b |
|---|---|
| 1 | 2 |

> quoted

~~~
raw [red]x[/red]
~~~
The year was
1986. A great year.
"""

LINES = st.lists(
    st.sampled_from(
        [
            "",
            "- item",
            "  - nested",
            "1. one",
            "7. seven",
            "```py",
            "```",
            "~~~",
            "# head",
            "| a |",
            "|---|",
            "    code",
            "words",
        ]
    ),
    max_size=25,
)


def blocks(text: str, cuts: list[int] | None = None) -> list[Block]:
    stream = MarkdownStream()
    found: list[Block] = []
    start = 0
    for cut in [*sorted(cuts or []), len(text)]:
        found += stream.feed(text[start:cut])
        start = cut
    return found + stream.finish()


def test_an_answer_is_rendered_block_by_block() -> None:
    shown = Canvas(60, color=False).text(*whole(ANSWER))

    assert shown == (
        "Title\n"
        "\n"
        "Some text with code and a link (http://x.y/z).\n"
        "\n"
        " • one\n"
        " • two more\n"
        "    • nested\n"
        "\n"
        " 1 first\n"
        "\n"
        "     def f():\n"
        "\n"
        "         return 1\n"
        "\n"
        "   after it\n"
        " 2 second\n"
        "\n"
        " a  b\n"
        " ────\n"
        " 1  2\n"
        "\n"
        "▌ quoted\n"
        "\n"
        "  raw [red]x[/red]\n"
        "\n"
        "The year was 1986. A great year.\n"
    )


def test_each_line_of_open_code_comes_out_at_once() -> None:
    stream = MarkdownStream()

    assert stream.feed("Look:\n```python\nx = 1\ny =") == [
        Block("Look:"),
        Block("x = 1", code=True, language="python", gap=True),
    ]
    assert stream.in_code
    assert stream.open == "y ="


def test_a_block_stays_open_until_its_end_is_certain() -> None:
    stream = MarkdownStream()

    assert stream.feed("A paragraph\nthat goes ") == []
    assert stream.open == "A paragraph\nthat goes "
    assert stream.feed("on.\n\nThe next") == [Block("A paragraph\nthat goes on.")]
    assert stream.finish() == [Block("The next", gap=True)]
    assert open_block(stream) is None


def test_an_endless_paragraph_is_settled_in_parts() -> None:
    found = blocks("more words\n" * 250)

    assert [block.source.count("\n") + 1 for block in found] == [100, 100, 50]
    assert not any(block.gap for block in found)


def test_control_sequences_cut_in_two_by_the_stream_are_still_harmless() -> None:
    stream = MarkdownStream()

    found = [*stream.feed("safe \x1b"), *stream.feed("[2Kstill\n"), *stream.finish()]

    assert found == [Block("safe still")]


def test_a_link_shows_where_it_leads() -> None:
    shown = Canvas(60).text(*whole("[harmless](http://evil.example/)"))

    assert "http://evil.example/" in shown
    assert "\x1b]8" not in shown


@given(lines=LINES, data=st.data())
def test_how_the_text_was_cut_into_deltas_makes_no_difference(lines: list[str], data: st.DataObject) -> None:
    text = "\n".join(lines)
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=10))

    assert blocks(text, cuts) == blocks(text)


@given(lines=LINES)
def test_no_word_of_an_answer_is_lost_or_doubled(lines: list[str]) -> None:
    text = "\n".join(
        f"{line} w{number}" if line and not line.startswith(("```", "~~~", "|")) else line
        for number, line in enumerate(lines)
    )

    said = " ".join(block.source for block in blocks(text)).split()

    assert [word for word in said if word[0] == "w" and word[1:].isdigit()] == [
        word for word in text.split() if word[0] == "w" and word[1:].isdigit()
    ]


@given(st.text(max_size=200))
def test_any_text_can_be_rendered_at_any_width(text: str) -> None:
    for width in (1, 13, 300):
        shown = Canvas(width, color=False).text(*whole(text))
        assert "\x1b" not in shown
