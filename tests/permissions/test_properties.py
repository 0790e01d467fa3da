"""What holds for any command, not only for those someone thought of."""

from hypothesis import given
from hypothesis import strategies as st

from mycode.core.tools import Action, Mode, Verdict
from mycode.permissions.decide import decide
from mycode.permissions.places import Places
from mycode.permissions.rules import Rules, make_rules

PLACES = Places(workspace=("/w/project",), home="/home/me")
SEVERITY = {"allow": 0, "ask": 1, "deny": 2}
MODES: tuple[Mode, ...] = ("default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions")


def judged(command: str, rules: Rules = Rules(), mode: Mode = "default", *, boxed: bool = False) -> Verdict:  # noqa: B008 - a constant
    action = Action("execute_bash", "execute", command, command=command)
    return decide(action, mode=mode, rules=rules, places=PLACES, boxed=boxed)


_harmless = st.sampled_from(
    ["ls -la", "cat a.txt", "git status", "rg x", "git diff --stat", "head -n 5 f", "echo hi", "pwd", "wc -l f", "true"]
)
_unknown = st.sampled_from(
    ["frobnicate", "npm i", "./run", "rm x", "make", "git push", "tee f", "sh", "sed -i s/a/b/ f"]
)
_joint = st.sampled_from([" && ", " || ", "; ", " | ", "\n", " & ", " |& "])
_deny_rule = st.sampled_from(["Bash(evil *)", "Bash(evil)", "Bash(evil:*)", "Bash(ev*)"])


@given(st.lists(_harmless, max_size=4), _unknown, st.lists(_harmless, max_size=4), _joint)
def test_one_unknown_part_is_enough_to_ask(before: list[str], unknown: str, after: list[str], joint: str):
    assert judged(joint.join([*before, unknown, *after])).decision == "ask"


@given(st.lists(_harmless, min_size=1, max_size=6), st.sampled_from([" && ", " || ", "; ", " | ", "\n"]))
def test_parts_that_only_look_need_no_question_together(parts: list[str], joint: str):
    assert judged(joint.join(parts)).decision == "allow"


_WRAPS = (
    "{}",
    "X=1 {}",
    "timeout 5 {}",
    "nohup {}",
    "sudo {}",
    "sudo -u me {}",
    "env A=b {}",
    "xargs {}",
    "nice -n 5 {}",
    "exec {}",
    "bash -c '{}'",
    'sh -c "{}"',
    "eval {}",
    "$({})",
    "`{}`",
    "echo $({})",
    "({})",
    "{{ {}; }}",
    "if {}; then ls; fi",
    "! {}",
    "ls; {}",
    "ls | {}",
    "ls & {}",
    "cat <({})",
    "f() {{ {}; }}; f",
    "for i in a; do {}; done",
    "find . -exec {} \\;",
    "{} > f",
    "while {}; do ls; done",
    "case x in x) {};; esac",
    "setsid {}",
    "trap '{}' EXIT",
    "npx -- {}",
    "watch {}",
    "cat <<E\n$({})\nE",
    "time {}",
    "command {}",
    "ls # x\n{}",
    "A=$({})",
    "[[ x =~ $({}) ]]",
    "coproc {}",
    "busybox {}",
    "xargs -n1 -I% {}",
)
_SPELLINGS = (
    "evil",
    "e\\vil",
    "'evil'",
    '"evil"',
    "ev''il",
    'e"vi"l',
    "/usr/bin/evil",
    "./evil",
    "ev\\\nil",
    "$'evil'",
    "$'\\x65vil'",
)


@given(
    st.sampled_from(_WRAPS),
    st.sampled_from(_SPELLINGS),
    st.sampled_from(["", " x", " -f x"]),
    _deny_rule,
    st.sampled_from(MODES),
)
def test_a_deny_rule_survives_every_wrapping_and_spelling(wrap: str, name: str, tail: str, rule: str, mode: Mode):
    if ("bash -c" in wrap or "trap" in wrap) and "'" in name:
        name = "evil"
    if "sh -c" in wrap and ('"' in name or "$" in name):
        name = "evil"

    assert judged(wrap.format(name + tail), make_rules(deny=[rule]), mode).decision == "deny"


_rule_texts = st.lists(
    st.sampled_from(
        [
            "Bash",
            "Bash(git *)",
            "Bash(ls *)",
            "Bash(rm *)",
            "Bash(cat *)",
            "Bash(frobnicate)",
            "Read(~/**)",
            "Edit(*.py)",
        ]
    ),
    max_size=3,
)
_command = st.one_of(
    _harmless,
    _unknown,
    st.tuples(_harmless, _joint, _unknown).map("".join),
    st.text("abls cat$(){}`'\"\\;|&<>*~/.-=\n", max_size=30),
)


@given(_command, _rule_texts, _rule_texts, _rule_texts, st.sampled_from(MODES), st.booleans())
def test_another_deny_or_ask_rule_never_makes_anything_more_allowed(
    command: str, allow: list[str], deny: list[str], ask: list[str], mode: Mode, boxed: bool
):
    less = judged(command, make_rules(allow=allow), mode, boxed=boxed)
    more = judged(command, make_rules(allow=allow, deny=deny, ask=ask), mode, boxed=boxed)

    assert SEVERITY[more.decision] >= SEVERITY[less.decision]


@given(st.text("abls cat$(){}`'\"\\;|&<>*~/.-=\n\r\t!#", max_size=40), _rule_texts)
def test_what_is_not_fully_understood_is_never_allowed_by_rules(command: str, allow: list[str]):
    from mycode.permissions.shell_grammar import parse

    verdict = judged(command, make_rules(allow=allow))

    assert verdict.decision != "allow" or not parse(command).unclear


@given(_command, st.sampled_from(MODES), st.booleans())
def test_every_verdict_says_why_in_one_sentence_and_offers_only_what_helps(command: str, mode: Mode, boxed: bool):
    verdict = judged(command, mode=mode, boxed=boxed)

    assert verdict.reason.strip()
    assert all(part.reason.strip() for part in verdict.parts)
    if verdict.offer is not None:
        assert verdict.decision == "ask"
        assert judged(command, make_rules(allow=[verdict.offer]), mode, boxed=boxed).decision == "allow"


@given(
    st.sampled_from(["rm -rf /", "rm -rf ~", "mkfs /dev/sda", "cd / && rm -rf *", ":(){ :|:& };:"]),
    _rule_texts,
    st.sampled_from(MODES),
)
def test_what_cannot_be_undone_is_never_allowed(command: str, allow: list[str], mode: Mode):
    assert judged(command, make_rules(allow=allow), mode, boxed=True).decision != "allow"


def test_towers_of_wrappers_are_judged_in_time_and_to_the_end():
    tower = "sudo " * 1500

    assert judged(tower + "evil", make_rules(deny=["Bash(evil *)"])).decision == "deny"
    assert judged("env " + "A=1 " * 500 + "evil", make_rules(deny=["Bash(evil *)"])).decision == "deny"
    assert judged("bash -c 'echo x > a; echo x > b.py'", make_rules(deny=["Edit(*.py)"])).decision == "deny"
    assert judged("a(){" * 2400, make_rules(deny=["Bash(evil *)"])).decision == "ask"
    assert judged("cd a;" * 1900 + "evil", make_rules(deny=["Bash(evil *)"])).decision == "deny"


def test_what_is_too_much_to_be_judged_asks_in_every_mode_and_deny_rules_hold():
    forbidden = make_rules(deny=["Bash(evil *)"])

    for much in ("a b " * 20_000, "a;" * 20_000, ">a " * 20_000):
        assert [judged(much, mode=mode).decision for mode in ("default", "bypassPermissions")] == ["ask", "ask"]
        assert judged(much, mode="dontAsk").decision == "deny"
        assert judged(f"evil;{much}", forbidden, "bypassPermissions").decision == "deny"
