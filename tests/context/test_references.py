from mycode.context.references import Reference, extract


def kinds(text: str) -> dict[str, str]:
    return {reference.text: reference.kind for reference in extract(text)}


def test_every_kind_of_name_is_recognised_by_its_shape():
    text = (
        "see src/auth/token.py and tests/test_auth.py::test_expiry at https://example.org/d?page=2, commit 9fceb02d\n"
        "gives TokenError in auth.verify() via parse_header or readConfig with --dry-run after 3600 `no valid token`"
    )
    assert kinds(text) == {
        "https://example.org/d?page=2": "url",
        "src/auth/token.py": "path",
        "tests/test_auth.py::test_expiry": "test_id",
        "tests/test_auth.py": "path",
        "9fceb02d": "hash",
        "TokenError": "error",
        "auth.verify": "dotted",
        "parse_header": "symbol",
        "readConfig": "symbol",
        "--dry-run": "flag",
        "3600": "number",
        "no valid token": "quoted",
    }


def test_plain_prose_names_nothing():
    assert extract("The tests pass now, and there is nothing left to do and/or to say.") == ()


def test_names_come_once_in_the_order_of_their_first_mention():
    assert extract("beta_two then alpha_one then beta_two") == (
        Reference("beta_two", "symbol"),
        Reference("alpha_one", "symbol"),
    )


def test_a_line_number_after_a_path_is_not_part_of_it():
    assert kinds("pkg/server.go:120: undefined") == {"pkg/server.go": "path", "120": "number"}
