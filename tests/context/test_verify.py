from mycode.context.facts import Fact
from mycode.context.verify import Source, ground, grounded_items, missing, not_done, ungrounded

KNOWN = Source("src/app.py has class AppConfig; pytest exited with 1 after 1234 tests, version 2.5.1").knows


def test_names_from_nowhere_are_found():
    assert ungrounded("src/app.py and src/ghost.py, AppConfig and GhostConfig", KNOWN) == (
        "src/ghost.py",
        "GhostConfig",
    )


def test_numbers_count_with_or_without_separators():
    assert ungrounded("1,234 tests ran", KNOWN) == ()


def test_only_the_sentence_with_the_wrong_name_goes():
    text, bad = ground("AppConfig is in src/app.py. It calls ghost_function. All is well.", KNOWN)
    assert text == "AppConfig is in src/app.py. All is well."
    assert bad == ("ghost_function",)


def test_list_marks_survive_and_empty_lines_go():
    text, _ = ground("- AppConfig\n- ghost_function\n1. src/app.py", KNOWN)
    assert text == "- AppConfig\n1. src/app.py"


def test_items_go_whole():
    assert grounded_items(["use AppConfig", "use GhostConfig"], KNOWN) == (("use AppConfig",), ("GhostConfig",))


def test_facts_are_told_word_for_word_or_nearly():
    facts = [
        Fact("file_modified", "src/a.py", 1),
        Fact("open_error", "ValueError: bad input in parse_config", 2),
        Fact("decision", "We use sqlite for storage", 3),
    ]
    text = "Changed src/a.py.\nThere is a ValueError bad input in parse_config.\nNothing about storage."
    assert [fact.kind for fact in missing(facts, text)] == ["decision"]


def test_finished_work_is_recognized_by_its_words():
    items = ["Fix the login test.", "write docs"]
    assert not_done(items, ["fix the login test"]) == ("write docs",)
