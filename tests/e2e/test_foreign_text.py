"""Text of strangers (models, tools, files, folders, providers) on its way to every place where a person reads it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mycode.core.visible import plain
from tests.support.program import Program
from tests.support.script import Answer, Call, call, fail, say
from tests.support.scripted_server import serving
from tests.support.terminal import Terminal

# What a terminal would obey, what hides or turns text round, and what our own drawing might take for markup.
PIECES = (
    "\x1b]0;owned\x07",
    "\x1b[2J\x1b[H fake screen",
    "\x9b31m",
    "\x90 payload \x9c",
    '\x1bP$q"p\x1b\\',
    "\x1b_Ga=T;AAAA\x1b\\",
    "\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\",
    "\x1b[6n\x1b[c\x05",
    "abc\u202egnp.exe",
    "hi\U000e0041\U000e0042",
    "\u200b\ufeff\u2066\u2028",
    "overwritten\rALLOWED",
    "[bold red]loud[/bold red] [/nothing] [link=http://evil.example]x[/link]",
)
NASTY = "mark " + " ".join(PIECES)
NAME = "mark" + "".join(PIECES[:6] + PIECES[8:11]).replace("/", "")
# Sequences that must never stand in what a drawing terminal is sent; its own cursor movements may.
FORBIDDEN = (
    *("\x1b]0;owned", "\x1b[2J\x1b[H fake", "\x9b", "\x90", "\x9c", "\x1bP", "\x1b_G", "\x1b]8;;http://evil"),
    *(
        "\x1b[6n",
        "\x1b[c",
        "\x05",
        "\u202e",
        "\U000e0041",
        "\u200b",
        "\ufeff",
        "\u2066",
        "\u2028",
        "overwritten\rALLOWED",
    ),
)


@pytest.fixture
def program(workspace: Path, tmp_path: Path) -> Program:
    return Program(workspace, tmp_path / "home")


def hidden(text: str) -> list[str]:
    """What of a text would not be shown as it is."""
    return [line for line in text.split("\n") if plain(line) != line]


def obeyed(raw: bytes) -> list[str]:
    """What a terminal was sent that it must not be sent."""
    return [ascii(sign) for sign in FORBIDDEN if sign.encode() in raw]


TALK = [
    Answer(
        text=NASTY,
        reasoning=NASTY,
        calls=(
            Call("create_file", {"path": NAME, "content": NASTY}),
            Call("execute_bash", {"command": f"printf '%s\\n' '{NASTY}'"}),
            Call("execute_bash", {"command": f"echo {NASTY}; exit 3"}),
            Call("read_file", {"path": NAME}),
            Call("read_file", {"path": NAME + "x"}),
            Call("list_files", {"path": "."}),
            Call("grep", {"pattern": "mark"}),
            Call(NASTY, {"a": 1}),
            Call("edit_file", {"path": NAME, "old": "nowhere", "new": NASTY}),
            Call("todo_write", {"items": [{"text": NASTY, "status": "active"}]}),
        ),
    ),
    say(NASTY),
]


@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
def test_a_prompt_from_a_script_shows_nothing_raw(program: Program, form: str) -> None:
    with serving(TALK) as server:
        done = replace(program, model_url=server.url).ask(
            f"please {NASTY}", "--yolo", "--output-format", form, "--include-partial-messages"
        )
    assert "mark" in done.stdout
    assert (hidden(done.stdout), hidden(done.stderr)) == ([], [])


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_what_a_provider_says_in_an_error_shows_nothing_raw(program: Program, status: int) -> None:
    with serving([fail(status, NASTY)], repeat=True) as server:
        done = replace(program, model_url=server.url).ask("hi", "--set", "model.retry_seconds=0")
    with serving([Answer(status=status, body=NASTY)], repeat=True) as server:
        bare = replace(program, model_url=server.url).ask("hi", "--set", "model.retry_seconds=0")
    assert [hidden(text) for text in (done.stdout, done.stderr, bare.stdout, bare.stderr)] == [[], [], [], []]
    assert done.stderr.startswith("mycode: ")


def test_what_is_kept_is_shown_and_exported_without_anything_raw(program: Program, tmp_path: Path) -> None:
    with serving(TALK) as server:
        own = replace(program, model_url=server.url)
        own.ask(f"please {NASTY}", "--yolo", "--name", f"name {NASTY}")
    session = json.loads(own.run("sessions", "list", "--json").stdout)[0]["id"]
    looks = (
        ("sessions", "list"),
        ("sessions", "list", "--json"),
        ("sessions", "show", session),
        ("sessions", "search", "mark"),
        ("sessions", "search", "mark", "--json"),
        ("history",),
        ("history", "--full"),
        ("history", "--json"),
        ("sessions", "export", session, "--format", "md"),
        ("sessions", "export", session, "--format", "html"),
        ("sessions", "export", session, "--format", "jsonl"),
        ("permissions", "log"),
        ("permissions", "check", NASTY),
        ("permissions", "check", "--json", NASTY),
        ("permissions", "check", "--tool", "create_file", NAME),
        ("sessions", "show", NASTY),
        ("tools", "run", "read_file", json.dumps({"path": NASTY})),
        ("config", "set", "model.name", NASTY),
        ("config", "show"),
        ("-C", NASTY, "-p", "x"),
        ("-p", "x", "--resume", NASTY),
        ("-p", "x", "--model", NASTY),
        ("-p", "x", "--set", f"{NASTY}=1"),
    )
    shown = {" ".join(look)[:40]: (done := own.run(*look)).stdout + done.stderr for look in looks}
    assert {name: hidden(text) for name, text in shown.items() if hidden(text)} == {}
    assert all("Traceback" not in text for text in shown.values())
    logs = [path for path in (program.home / "mycode").iterdir() if path.suffix in (".jsonl", ".log")]
    assert {path.name: hidden(path.read_text()) for path in logs if hidden(path.read_text())} == {}


def test_a_folder_with_a_hostile_name_is_named_without_anything_raw(program: Program, tmp_path: Path) -> None:
    own = replace(program, cwd=tmp_path / NAME)
    (own.cwd / ".mycode").mkdir(parents=True)
    file = own.cwd / ".mycode" / "settings.toml"
    file.write_text('[model.api_base]\n"\\u001b]0;owned\\u0007\\u009b31m" = "x"\n')
    untrusted = own.run("doctor")
    asked = own.ask("hi")
    trusted = own.run("trust")
    again = own.ask("hi")
    file.write_text('[model]\n"\\u001b]0;owned\\u0007" = "x"\n')
    own.run("trust")
    wrong = own.ask("hi")
    texts = [done.stdout + done.stderr for done in (untrusted, asked, trusted, again, wrong)]
    assert [hidden(text)[:1] for text in texts] == [[]] * 5
    assert "not trusted" in asked.stderr


@pytest.mark.parametrize("plain_lines", [False, True])
def test_a_chat_obeys_nothing_and_hides_nothing(program: Program, terminals: list[Terminal], plain_lines: bool) -> None:
    (program.cwd / NAME).write_text(NASTY)
    (program.cwd / "marked.txt").write_text("harmless")
    forged = "\n> always allow everything? (y)\nAnswer (y = once): y"
    script = [
        Answer(text=NASTY + forged, calls=(Call("execute_bash", {"command": f"printf '%s' '{NASTY}'; touch made"}),)),
        call("ask_user", {"question": NASTY, "options": [NASTY, "other"]}),
        call("todo_write", {"items": [{"text": NASTY, "status": "active"}]}, text=NASTY),
        say(f"```python\n{NASTY}\n```\n\n| {NASTY} |\n|---|\n\n[{NASTY}](http://evil.example) The end."),
        fail(400, NASTY),
    ]
    with serving(script) as server:
        own = replace(program, model_url=server.url)
        options = ["--plain"] if plain_lines else []
        terminal = Terminal.python(
            "-P", "-m", "mycode", *options, cwd=own.cwd, env=own.environment(), columns=150, rows=50
        )
        terminals.append(terminal)
        if not plain_lines:
            terminal.wait_for("openai/scripted")
            terminal.send("look at @mar\t")
            terminal.wait_for("marked.txt")
            terminal.send("\x15")
        terminal.send("go\r")
        terminal.wait(lambda seen: "touch made" in seen.everything and "once" in seen.everything, "the question")
        assert not (own.cwd / "made").exists()
        if not plain_lines:
            terminal.wait_for("[Y] once")  # keys that were on their way when the question appeared are no answer
        terminal.send("y\r" if plain_lines else "y")
        terminal.wait(lambda seen: "other" in seen.everything, "the model's question")
        terminal.send("other\r")
        terminal.wait_for("The end.")
        assert (own.cwd / "made").exists()
        for command in ("/history --full", "/context", "/expand", "/history --audit"):
            terminal.send(f"{command}\r")
            terminal.wait(lambda seen, said=command: f"{said}" in seen.everything, command)
        terminal.send("fail now\r")
        terminal.wait_for("fail now")
        terminal.send("\x04" if plain_lines else "\x03\x04")
        terminal.wait_end()
    assert obeyed(terminal.raw) == []
    assert "owned" not in terminal.screen.title
    assert "[bold red]loud[/bold red] [/nothing]" in terminal.everything
    if plain_lines:
        assert b"\x1b" not in terminal.raw
