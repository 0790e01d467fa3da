"""How rules are written and what they match."""

import pytest

from mycode.core.errors import ConfigError
from mycode.permissions.places import Places
from mycode.permissions.rules import matches_path, parse_rule

PLACES = Places(workspace=("/w/project",), home="/home/me")


@pytest.mark.parametrize(
    ("rule", "match", "not_match"),
    [
        ("Bash(git commit *)", ["git commit -m x", "git commit"], ["git commits", "git", "git push"]),
        ("Bash(git commit:*)", ["git commit -m x", "git commit"], ["git commits"]),
        ("Bash(ls*)", ["ls", "lsof -i"], ["al"]),
        ("Bash(npm run build)", ["npm run build"], ["npm run build --watch"]),
        ("Bash(git * main)", ["git checkout main", "git push origin main"], ["git main", "git push main x"]),
        ("Bash(echo 'a b' *)", ["echo 'a b' c"], ["echo a b c"]),
        ("Bash(echo \\*)", ["echo '*'"], ["echo x"]),
        (
            "WebFetch(domain:example.com)",
            ["https://example.com/x"],
            ["https://a.example.com/", "https://badexample.com/"],
        ),
        ("WebFetch(domain:*.example.com)", ["https://a.example.com/"], ["https://example.com/"]),
        ("mcp__files", ["mcp__files__read"], ["mcp__filesystem__read"]),
        ("mcp__files__read", ["mcp__files__read"], ["mcp__files__write"]),
        ("mcp__files__*", ["mcp__files__write"], ["mcp__other__write"]),
    ],
)
def test_a_rule_holds_for_its_own_examples(rule: str, match: list[str], not_match: list[str]):
    assert parse_rule(rule, "allow", match=match, not_match=not_match).text == rule


@pytest.mark.parametrize(
    ("spec", "inside", "outside"),
    [
        ("//etc/hosts", "/etc/hosts", "/w/project/etc/hosts"),
        ("~/.ssh/**", "/home/me/.ssh/id", "/home/me/.sshx"),
        ("/src/**", "/w/settings/src/a/b", "/w/project/src/a"),
        ("src/**", "/w/project/src/a/b", "/w/project/x/src/a"),
        ("./.env", "/w/project/.env", "/w/project/sub/.env"),
        (".env", "/w/project/sub/.env", "/w/other/.env"),
        ("*.py", "/w/project/a/b.py", "/w/project/a/b.pyc"),
        ("src/*.py", "/w/project/src/a.py", "/w/project/src/b/a.py"),
        ("**/test/*.[ch]", "/w/project/x/y/test/a.c", "/w/project/test/a.o"),
        ("a?c", "/w/project/abc", "/w/project/a/c"),
        ("build/", "/w/project/x/build/y", "/w/project/builder"),
    ],
)
def test_path_patterns_are_read_as_in_gitignore(spec: str, inside: str, outside: str):
    rule = parse_rule(f"Read({spec})", "allow", base="/w/settings")

    assert matches_path(rule, inside, PLACES)
    assert not matches_path(rule, outside, PLACES)


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        ("", "cannot be read"),
        ("Bash(", "cannot be read"),
        ("Bash()", "nothing between its brackets"),
        ("Bash(echo 'x)", "not closed"),
        ("Bash(a\nb)", "line break"),
        ("Sing(loud)", "no known tool"),
        ("WebFetch(example.com)", "needs a host"),
        ("WebFetch(domain:https://x)", "needs a host"),
        ("mcp__a__b(x)", "takes nothing in brackets"),
        ("Read(!src)", "begins with `!`"),
    ],
)
def test_a_bad_rule_is_named(rule: str, complaint: str):
    with pytest.raises(ConfigError, match="permission rule") as caught:
        parse_rule(rule, "deny")

    assert complaint in str(caught.value)


def test_a_rule_that_fails_its_own_example_is_an_error():
    with pytest.raises(ConfigError, match="should match `git pull`"):
        parse_rule("Bash(git push *)", "deny", match=["git pull"])
    with pytest.raises(ConfigError, match="should not match `git push -n`"):
        parse_rule("Bash(git push *)", "deny", not_match=["git push -n"])
