"""How the text of a command is read."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycode.permissions.shell_grammar import MOST_PARTS, Part, parse
from mycode.permissions.shell_grammar import _read_plain as read_plain
from mycode.permissions.shell_grammar import _read_with_grammar as read_with_grammar


def words(part: Part) -> list[str | None]:
    return [word.value for word in part.words]


def test_plain_commands_are_read_word_by_word():
    script = parse('git log -n 3 \'a b\' "c\\"d" e\\ f && head -5 | wc -l; A=1 ls 2>/dev/null\npwd # where')

    assert script.unclear == ()
    assert [words(part) for part in script.parts] == [
        ["git", "log", "-n", "3", "a b", 'c"d', "e f"],
        ["head", "-5"],
        ["wc", "-l"],
        ["ls"],
        ["pwd"],
    ]
    assert [(name, value.value) for name, value in script.parts[3].assignments] == [("A", "1")]
    assert [(one.sign, one.target and one.target.value) for one in script.parts[3].redirects] == [(">", "/dev/null")]


def test_a_line_may_be_continued_between_words_only():
    assert parse("git log \\\n -3").unclear == ()
    assert parse("gi\\\nt log").unclear != ()


@pytest.mark.parametrize(
    "text",
    [
        "a $(b)",
        "a `b`",
        "a $B",
        "a ${B}",
        "a $((1))",
        "a <(b)",
        "a <<E\nE",
        "a <<< b",
        "(a)",
        "{ a; }",
        "a & b",
        "a |& b",
        "if a; then b; fi",
        "f() { a; }",
        "[[ a ]]",
        "! a",
        "a {b,c}",
        "a ~b",
        "=a",
        "a =b",
        "a $'b'",
        "a\rb",
        "a\x00",
        "a 'b",
        "a |",
        "a &&",
        "&& a",
        "; a",
        "a;; b",
        "a[1]=2",
        "a+=(b)",
        "a >&b c(d)",
        "a\u00a0b",
        "a '\u202e'",
        "",
        "x*y",
    ],
)
def test_whatever_is_more_than_words_and_pipes_is_not_clear(text: str):
    script = parse(text)

    assert script.unclear or not script.parts


def test_commands_inside_substitutions_functions_and_loops_are_found():
    script = parse("f() { one $(two); }; for x in `three`; do four <(five) > six; done; cat <<E\n$(seven)\nE")

    assert {part.program for part in script.parts} >= {"one", "two", "three", "four", "five", "cat", "seven"}


def test_known_variables_are_put_into_guesses():
    script = parse('X=/etc; cat "$HOME/a" $X/b ${UNKNOWN}/c', variables={"HOME": "/home/me"})

    assert [word.best for word in script.parts[-1].words] == ["cat", "/home/me/a", "/etc/b", "/c"]


def test_very_long_and_very_many_are_not_clear_and_still_read():
    many = parse("; ".join(["true"] * MOST_PARTS + ["last"]))
    long = parse("echo " + "a" * 10_001 + "; last")

    assert many.unclear == ("it has 51 commands",)
    assert many.parts[-1].program == "last"
    assert long.unclear[0] == "it is 10,012 characters long"
    assert long.parts[-1].program == "last"


def test_a_tower_of_brackets_does_not_fall():
    assert parse("$(" * 5000 + "a" + ")" * 5000).unclear


_WORD = st.text("abcXYZ019_./:,+@%-^", min_size=1, max_size=8)
_QUOTED = st.text('ab c$`;|&<>(){}*?!#=~"', max_size=8).map(lambda text: f"'{text}'")
_ARGUMENT = st.one_of(_WORD, _QUOTED, st.text("ab c;|&<>(){}*?#=~'", max_size=8).map(lambda text: f'"{text}"'))
_NAME = st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True).filter(
    lambda name: (
        name
        not in {
            "if",
            "then",
            "else",
            "elif",
            "fi",
            "for",
            "while",
            "until",
            "do",
            "done",
            "case",
            "esac",
            "in",
            "select",
            "time",
            "coproc",
            "function",
            "export",
            "declare",
            "local",
            "unset",
            "typeset",
        }
    )
)
_COMMAND = st.tuples(_NAME, st.lists(_ARGUMENT, max_size=4)).map(lambda pair: " ".join([pair[0], *pair[1]]))
_SCRIPT = st.tuples(
    _COMMAND, st.lists(st.tuples(st.sampled_from([" && ", " | ", "; ", " || ", "\n"]), _COMMAND), max_size=3)
)


@given(_SCRIPT)
def test_the_strict_reader_agrees_with_the_shell_grammar(pieces: tuple[str, list[tuple[str, str]]]):
    text = pieces[0] + "".join(operator + command for operator, command in pieces[1])

    strict, whole = read_plain(text), read_with_grammar(text, {})

    assert strict is not None
    assert [words(part) for part in strict.parts] == [words(part) for part in whole.parts]
    assert whole.unclear == ()


@given(st.text("ab '\"\\;|&<>$(){}*#~=\n\r\t!", max_size=25))
def test_what_the_strict_reader_takes_shlex_takes_alike(text: str):
    strict = read_plain(text)

    if strict is not None and not any(sign in text for sign in ";|&<>#\n") and strict.parts:
        part = strict.parts[0]
        given_words = [f"{name}={value.value}" for name, value in part.assignments] + [
            word.value for word in part.words
        ]
        assert given_words == shlex.split(text)


@given(st.text(max_size=80))
def test_any_text_is_read_without_an_exception(text: str):
    parse(text)
