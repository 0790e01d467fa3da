"""What a conversation has established, message by message: files, commands, errors, tests, decisions, constraints."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from mycode.context.digests.calls import CallFacts, files_of_command, items_of, only_looks
from mycode.context.digests.outputs import exit_code, first_error, never_ran, plain_output, refusal
from mycode.context.names import Names
from mycode.context.passages import Passage
from mycode.core.messages import AssistantMessage, Message, ToolCall, ToolResult, UserMessage
from mycode.core.tools import TodoItem

FactKind = Literal["file_modified", "constraint", "open_error", "decision", "todo", "failed_test", "command"]


class Fact(Struct, frozen=True):
    """Something a summary must not lose: `text` as it should be found in it, `seq` of the message that told it."""

    kind: FactKind
    text: str
    seq: int


class FileFact(Struct, frozen=True, omit_defaults=True):
    """What was done with a file: line ranges read ((0, 0) is the whole file) and how often it was changed."""

    path: str
    ranges: tuple[tuple[int, int], ...] = ()
    changes: int = 0
    last_seq: int = 0

    @property
    def modified(self) -> bool:
        return self.changes > 0


class CommandFact(Struct, frozen=True, omit_defaults=True):
    """A command that ran; `exit_code` None when its output did not tell."""

    command: str
    exit_code: int | None
    seq: int


class ErrorFact(Struct, frozen=True, omit_defaults=True):
    """An error and what raised it (a command or `tool path`); resolved when the same thing passed later."""

    source: str
    text: str
    seq: int
    resolved_seq: int = 0

    @property
    def open(self) -> bool:
        return self.resolved_seq == 0


class Statement(Struct, frozen=True, omit_defaults=True):
    """A sentence that somebody said, word for word."""

    text: str
    seq: int


class TestFact(Struct, frozen=True, omit_defaults=True):
    """A test's last known result, and whether it has ever failed: passing then is work that was done."""

    name: str
    passed: bool
    seq: int
    once_failed: bool = False


class FactLedger(Struct, frozen=True):
    """Everything established so far: a value that grows by `add` and forgets nothing that still holds.

    Mappings keep the order of first mention. A later value takes the place of an earlier one (history is in the log).
    `names` is what was read of the messages; it grows with the newest ledger, of an older one `messages` of them count.
    """

    files: dict[str, FileFact] = {}
    commands: tuple[CommandFact, ...] = ()
    errors: tuple[ErrorFact, ...] = ()
    tests: dict[str, TestFact] = {}
    decisions: tuple[Statement, ...] = ()
    constraints: tuple[Statement, ...] = ()
    todo: tuple[TodoItem, ...] = ()
    versions: dict[str, str] = {}
    urls: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    named: tuple[Statement, ...] = ()
    last_seq: int = 0
    names: Names | None = None
    messages: int = 0

    def add(self, seq: int, message: Message, call: ToolCall | None = None) -> FactLedger:
        """The ledger with one more message; `call` is the one that a tool result answers. Work is O(this message)."""
        names = self.known_names() or Names()
        passage = names.read(seq, message, call)
        ledger = replace(self, last_seq=max(seq, self.last_seq), names=names, messages=len(names.passages))
        ledger = _with_references(ledger, passage)
        match message:
            case UserMessage(text=text):
                return _with_user_text(_with_names(ledger, passage, text), seq, text)
            case AssistantMessage(text=text):
                return _with_calls(_with_decisions(ledger, seq, text), passage.calls)
            case ToolResult():
                return _with_result(ledger, seq, passage.calls[0] if passage.calls else None, message)

    @property
    def files_modified(self) -> tuple[str, ...]:
        return tuple(path for path, fact in self.files.items() if fact.modified)

    @property
    def files_read(self) -> tuple[str, ...]:
        return tuple(path for path, fact in self.files.items() if fact.ranges)

    @property
    def open_errors(self) -> tuple[ErrorFact, ...]:
        return tuple(error for error in self.errors if error.open)

    @property
    def open_todo(self) -> tuple[TodoItem, ...]:
        return tuple(item for item in self.todo if item.status != "done")

    @property
    def passed_later(self) -> tuple[str, ...]:
        """Tests that failed once and pass now: finished work."""
        return tuple(test.name for test in self.tests.values() if test.passed and test.once_failed)

    def must_keep(self) -> tuple[Fact, ...]:
        """What every summary is checked for: files changed, constraints, open errors, decisions, todo, failed tests."""
        changed = [Fact("file_modified", fact.path, fact.last_seq) for fact in self.files.values() if fact.modified]
        laid_down = [Fact("constraint", said.text, said.seq) for said in self.constraints]
        errors = [Fact("open_error", error.text, error.seq) for error in self.open_errors]
        firm = [said for said in self.decisions if is_firm(said.text)]
        decided = [Fact("decision", said.text, said.seq) for said in firm[-5:]]
        todo = [Fact("todo", item.text, self.last_seq) for item in self.open_todo]
        failed = [Fact("failed_test", test.name, test.seq) for test in self.tests.values() if not test.passed]
        return (*changed, *laid_down, *errors, *decided, *todo, *failed)

    def known_names(self) -> Names | None:
        """The names in the messages that were added, None if there were none; to be read at once."""
        if self.names is None or len(self.names.passages) == self.messages:
            return self.names
        # A later ledger has gone on with them.
        return Names.of(self.names.passages[: self.messages], self.names.reader.branch())

    def passage(self, seq: int) -> Passage | None:
        """The kept reading of a message, None if it was never added."""
        if self.names is None:
            return None
        index = bisect_left(self.names.passages, seq, hi=self.messages, key=_seq)
        found = self.names.passages[index] if index < self.messages else None
        return found if found is not None and found.seq == seq else None


def decisions_in(text: str) -> list[str]:
    """Sentences that announce a decision (R106), each at most 300 characters."""
    return [s[:300] for s in _sentences(text) if _DECISION.search(s)] if _DECISION.search(text) else []


def is_firm(decision: str) -> bool:
    """Whether a sentence says that something was decided, not only that one thing stands in place of another."""
    return _FIRM.search(decision) is not None


def constraints_in(text: str) -> list[str]:
    """Sentences of the person that lay something down: never, always, must, do not, only, use X not Y."""
    if not _CONSTRAINT.search(text):
        return []
    return [s[:400] for s in _sentences(text) if len(s) <= 600 and _CONSTRAINT.search(s) and not s.endswith("?")]


_DECISION = re.compile(
    r"\b(?:decided (?:to|on|against)|chose to|choosing|will use|(?:I|we)'ll use|going with"
    r"|(?:I|we)(?:'ll| will) go with|opted (?:for|to)|settled on"
    r"|instead of|rather than)\b",
    re.IGNORECASE,
)  # fmt: skip
_FIRM = re.compile(r"\b(?:decided|chose|choosing|will use|'ll use|go(?:ing)? with|opted|settled on)\b", re.IGNORECASE)
_CONSTRAINT = re.compile(
    r"\b(?:never|always|must(?:n't)?|do not|don't|only|no longer|make sure|ensure|avoid|prefer|required?|keep|stick to"
    r"|use \S+(?: \S+){0,3},? (?:not|instead of|rather than))\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'])|\n+")
_VERSION = re.compile(
    r"\b([A-Za-z][\w.+-]{1,30})(?:\s+version)?(?:@|==|\s+v?|: ?\"?[\^~]?|/v?)"
    r"(\d+\.\d+(?:\.\d+)?(?:[-+.]?(?:rc|alpha|beta|dev|post)\.?\d+)?)\b"
)
_PORT = re.compile(
    r"(?:\blocalhost|\b127\.0\.0\.1|\b0\.0\.0\.0|--port[ =]?|\bport[ :=]{1,2})[: ]?(\d{2,5})\b", re.IGNORECASE
)
_TEST_RESULTS = (
    re.compile(r"^(?P<name>\S+::\S+) (?P<result>PASSED|FAILED|ERROR)", re.MULTILINE),
    re.compile(r"^(?P<result>FAILED|ERROR|PASSED) (?P<name>\S+::\S+)", re.MULTILINE),
    re.compile(r"^\s*--- (?P<result>PASS|FAIL): (?P<name>\S+)", re.MULTILINE),
    re.compile(r"^test (?P<name>\S+) \.\.\. (?P<result>ok|FAILED)", re.MULTILINE),
    re.compile(r"^\s*(?P<result>[✓✔✕✗×]) (?P<name>\S.{3,100}?)(?: \(\d+ ?ms\))?$", re.MULTILINE),
    re.compile(r"^\s*(?P<result>PASS|FAIL) (?P<name>\S+\.(?:test|spec)\.\w+)", re.MULTILINE),
    re.compile(r"^(?:\[ERROR\]\s+)?(?P<result>FAIL|ERROR): (?P<name>\w+ \([\w.]+\))", re.MULTILINE),
)
_PASSED = frozenset({"PASSED", "PASS", "ok", "✓", "✔"})


def _seq(passage: Passage) -> int:
    return passage.seq


def _sentences(text: str) -> list[str]:
    return [s for part in _SENTENCE.split(text) if (s := part.strip(" -*•\t>#"))]


def _with_references(ledger: FactLedger, passage: Passage) -> FactLedger:
    found = [mention.name.text for mention in passage.mentions if mention.name.kind == "url"]
    new = [url for url in dict.fromkeys(found) if url not in ledger.urls]
    if new:
        ledger = replace(ledger, urls=(*ledger.urls, *new)[-500:])
    return ledger


def _with_names(ledger: FactLedger, passage: Passage, text: str) -> FactLedger:
    """The ledger with what the person called by its name: a long paste names much that nobody speaks of."""
    spoken = [mention.name.text for mention in passage.mentions if mention.name.kind in _SPOKEN]
    found = [name for name in spoken if f"<{name}" not in text and f"</{name}" not in text][:_NAMES_OF_A_MESSAGE]
    known = {said.text for said in ledger.named}
    new = [Statement(name, passage.seq) for name in found if name not in known]
    return replace(ledger, named=(*ledger.named, *new)[-_MOST_NAMES:]) if new else ledger


_SPOKEN = frozenset({"symbol", "dotted", "flag", "error", "test_id", "path", "url"})
_NAMES_OF_A_MESSAGE = 12
_MOST_NAMES = 400


def _with_values(ledger: FactLedger, text: str) -> FactLedger:
    if len(text) > 20_000:
        text = text[:20_000]
    found = {name: version for name, version in _VERSION.findall(text) if name.lower() not in _NOT_PACKAGES}
    if found and any(ledger.versions.get(name) != version for name, version in found.items()):
        ledger = replace(ledger, versions={**ledger.versions, **found})
    ports = [port for port in dict.fromkeys(_PORT.findall(text)) if port not in ledger.ports]
    return replace(ledger, ports=(*ledger.ports, *ports)) if ports else ledger


_NOT_PACKAGES = frozenset(
    [
        "the",
        "in",
        "to",
        "of",
        "and",
        "is",
        "at",
        "for",
        "from",
        "than",
        "line",
        "lines",
        "about",
        "version",
        "took",
        "after",
        "before",
        "with",
        "by",
        "on",
        "up",
    ]
)


def _with_user_text(ledger: FactLedger, seq: int, text: str) -> FactLedger:
    ledger = _with_values(ledger, text)
    new = _unknown(constraints_in(text), ledger.constraints, seq)
    return replace(ledger, constraints=(*ledger.constraints, *new)) if new else ledger


def _with_decisions(ledger: FactLedger, seq: int, text: str) -> FactLedger:
    new = _unknown(decisions_in(text), ledger.decisions, seq)
    return replace(ledger, decisions=(*ledger.decisions, *new)) if new else ledger


def _unknown(found: Sequence[str], known: Sequence[Statement], seq: int) -> list[Statement]:
    """What was found and is not known yet, each once; most messages say nothing of the kind, and cost nothing then."""
    new = dict.fromkeys(found)
    for said in known if new else ():
        new.pop(said.text, None)
    return [Statement(text, seq) for text in new]


def _with_calls(ledger: FactLedger, calls: tuple[CallFacts, ...]) -> FactLedger:
    for call in calls:
        if call.family == "todo" and (items := _todo_items(call)):
            ledger = replace(ledger, todo=items)
    return ledger


def _todo_items(call: CallFacts) -> tuple[TodoItem, ...]:
    items = []
    for item in items_of(call.arguments):
        text = str(item.get("text") or item.get("content") or item.get("step") or item.get("title") or "")
        status = str(item.get("status", "pending"))
        if text and status in {"done", "completed", "complete"}:
            items.append(TodoItem(text, "done"))
        elif text:
            items.append(TodoItem(text, "active" if status in {"active", "in_progress"} else "pending"))
    return tuple(items)


def _with_result(ledger: FactLedger, seq: int, call: CallFacts | None, result: ToolResult) -> FactLedger:
    if call is None or ((result.is_error or len(result.text) < _SHORT) and never_ran(result.text)):
        return ledger
    if call.family == "bash":
        return _with_command(ledger, seq, call.command, result)
    source = f"{call.tool} {call.target}".strip()
    if result.is_error or (call.family in {"write", "edit"} and refusal(result.text)):
        return _with_error(ledger, seq, source, first_error(result.text) or result.text.strip().split("\n", 1)[0])
    ledger = _resolved(ledger, seq, source)
    if call.family == "read":
        span = (call.first_line, call.last_line) if call.first_line or call.last_line else (0, 0)
        for path in call.paths:
            ledger = _with_file(ledger, seq, path, span=span)
    elif call.family in {"write", "edit"}:
        for path in call.paths:
            ledger = _with_file(ledger, seq, path, changed=True)
    return ledger


_SHORT = 500


def _with_file(
    ledger: FactLedger, seq: int, path: str, *, span: tuple[int, int] | None = None, changed: bool = False
) -> FactLedger:
    old = ledger.files.get(path) or FileFact(path)
    ranges = old.ranges if span is None or span in old.ranges else (*old.ranges, span)[-20:]
    return replace(ledger, files={**ledger.files, path: FileFact(path, ranges, old.changes + changed, seq)})


def _with_command(ledger: FactLedger, seq: int, command: str, result: ToolResult) -> FactLedger:
    code = exit_code(result.text)
    text = plain_output(result.text)
    told = _without_documents(command)
    ledger = replace(ledger, commands=(*ledger.commands, CommandFact(told, code, seq)))
    reads, writes = files_of_command(command)
    if code in {0, None} and not result.is_error:
        for path in reads:
            ledger = _with_file(ledger, seq, path, span=(0, 0))
        for path in writes:
            ledger = _with_file(ledger, seq, path, changed=True)
    ledger = _with_tests(_with_values(ledger, text), seq, text)
    failed = code != 0 if code is not None else result.is_error
    if failed:
        return ledger if not writes and only_looks(command) else _with_error(ledger, seq, told, _reason(text))
    return _resolved(_tests_passed(ledger, seq, told) if code == 0 else ledger, seq, told)


def _without_documents(command: str) -> str:
    """The command on one line; of a document written into it only the first line, as it is a text, not a command."""

    def opening(match: re.Match[str]) -> str:
        first = match["body"].strip().partition("\n")[0]
        return f"{match['head']} {first[:60]} … "

    return " ".join(_DOCUMENT.sub(opening, command).split())[:500]


def _reason(text: str) -> str:
    """The line that says why a command failed: its first error, or the last line that is more than a label."""
    rows = [row.strip() for row in reversed(text.split("\n")) if row.strip() and not _LABEL.fullmatch(row.strip())]
    return first_error(text) or (rows[0] if rows else "failed")


_DOCUMENT = re.compile(
    r"(?P<head><<-?\s*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)[^\n]*)\n(?P<body>.*?)(?:\n[ \t]*(?P=end)(?=\n|$)|$)",
    re.DOTALL,
)
_LABEL = re.compile(r"[\w ]{0,30}:|[-=_*#~]+|\W*exit (?:code|status)\W+\d+\W*", re.IGNORECASE)


def _tests_passed(ledger: FactLedger, seq: int, source: str) -> FactLedger:
    """A command passed: so did the tests that had failed under it, whether it names them now or not."""
    before = {error.seq for error in ledger.errors if error.source == source}
    if not before:
        return ledger
    solved = {
        name: TestFact(name, True, seq, once_failed=True)
        for name, test in ledger.tests.items()
        if not test.passed and test.seq in before
    }
    return replace(ledger, tests={**ledger.tests, **solved}) if solved else ledger


def _with_tests(ledger: FactLedger, seq: int, text: str) -> FactLedger:
    found: dict[str, TestFact] = {}
    for pattern in _TEST_RESULTS:
        for match in pattern.finditer(text):
            name = match["name"].strip()
            passed = match["result"] in _PASSED
            known = found.get(name) or ledger.tests.get(name)
            failed = not passed or (known is not None and known.once_failed)
            found[name] = TestFact(name, passed, seq, failed)
    return replace(ledger, tests={**ledger.tests, **found}) if found else ledger


def _with_error(ledger: FactLedger, seq: int, source: str, text: str) -> FactLedger:
    ledger = _resolved(ledger, seq, source)  # the same thing failed again: the newer failure stands
    return replace(ledger, errors=(*ledger.errors, ErrorFact(source, text[:300], seq)))


def _resolved(ledger: FactLedger, seq: int, source: str) -> FactLedger:
    if not any(error.open and error.source == source for error in ledger.errors):
        return ledger
    return replace(
        ledger,
        errors=tuple(
            replace(error, resolved_seq=seq) if error.open and error.source == source else error
            for error in ledger.errors
        ),
    )
