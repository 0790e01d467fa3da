"""What a tool is to the rest of the house, and what it means to allow one to run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, Protocol, TypeVar

from msgspec import Struct

from mycode.core.messages import Image

Effect = Literal["none", "read", "write", "execute", "network"]
Decision = Literal["allow", "ask", "deny"]
Mode = Literal["default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"]


class DiffDisplay(Struct, frozen=True, tag_field="kind", tag="diff"):
    """A change to one file as a unified diff (without file header); `created`, `deleted`: whole files."""

    path: str
    diff: str
    added: int
    removed: int
    created: bool = False
    deleted: bool = False


class CommandDisplay(Struct, frozen=True, tag_field="kind", tag="command"):
    """A shell command and how it ended; `exit_code` None means it still runs or was killed (`note` says which)."""

    command: str
    output: str
    exit_code: int | None
    seconds: float
    note: str = ""


class TextDisplay(Struct, frozen=True, tag_field="kind", tag="text"):
    """One line for the person, e.g. `mycode/app.py · 120 lines`, and optionally more below it."""

    line: str
    body: str = ""


class TodoItem(Struct, frozen=True):
    text: str
    status: Literal["pending", "active", "done"] = "pending"


class TodoDisplay(Struct, frozen=True, tag_field="kind", tag="todo"):
    items: tuple[TodoItem, ...]


Display = DiffDisplay | CommandDisplay | TextDisplay | TodoDisplay


class Action(Struct, frozen=True):
    """What a call would do, said before it does it: this is what permissions judge and what the person is shown.

    `title` is one line (`edit_file mycode/app.py`); paths are absolute and resolved as far as they exist; `command` is
    the shell text; `displays` hold the whole diff or text to show. Foreign text is raw: whoever shows it escapes it.
    `fails` is the sentence with which `run` would refuse, when that is known already: it may quote what `reads` names.
    """

    tool: str
    effect: Effect
    title: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    command: str | None = None
    url: str | None = None
    displays: tuple[Display, ...] = ()
    fails: str = ""


class ToolOutput(Struct, frozen=True):
    """What a tool gives back: `text` for the model (whole; the runner clips it), `display` for the person."""

    text: str
    display: Display | None = None
    images: tuple[Image, ...] = ()


ArgsT = TypeVar("ArgsT", bound=Struct)
Report = Callable[[str], None]


class Tool(Protocol[ArgsT]):
    """Something the model may do. One file, one class, one line in the registry.

    `Args` is a frozen msgspec Struct with `forbid_unknown_fields`: the JSON Schema the model reads is made from it and
    the runner validates against it. A failure is `raise ToolError("a sentence for the model")`.
    """

    name: str
    description: str
    Args: type[ArgsT]

    def plan(self, args: ArgsT) -> Action:
        """What `run` would do with these arguments; reads the file system at most, changes nothing."""
        ...

    async def run(self, args: ArgsT, report: Report) -> ToolOutput:
        """Does it. `report` shows progress text to the person; cancellation leaves nothing half done."""
        ...


class Verdict(Struct, frozen=True):
    """What permissions say of an action: the decision, why, by which rule, and part by part for shell commands.

    `offer` is the narrowest rule that would allow this again (shown as "always"); None when none should be offered.
    """

    decision: Decision
    reason: str
    rule: str | None = None
    parts: tuple[VerdictPart, ...] = ()
    offer: str | None = None


class VerdictPart(Struct, frozen=True):
    text: str
    decision: Decision
    reason: str
    rule: str | None = None


class Gate(Protocol):
    """Judges actions. It never asks anybody: asking is the `Approver`'s."""

    def judge(self, action: Action) -> Verdict: ...

    def remember(self, rule: str) -> None:
        """Adds an allow rule for the rest of the session (kept outside the conversation)."""
        ...


class Veil(Protocol):
    """Tells a tool that goes through many files which of them it passes over; the folder itself was judged before."""

    def __call__(self, action: Action, names: Iterable[str], *, content: bool) -> frozenset[str]:
        """Those of `names`, relative to what `action` reads first, not to be listed (or, with `content`, not read)."""
        ...


class ApprovalRequest(Struct, frozen=True):
    call_id: str
    action: Action
    verdict: Verdict


class Approval(Struct, frozen=True):
    """The person's answer: `always` also remembers `rule`; a comment goes to the model word for word."""

    answer: Literal["once", "always", "no"]
    comment: str = ""
    rule: str | None = None
    by: str = "person"


class Question(Struct, frozen=True):
    text: str
    options: tuple[str, ...] = ()


class Approver(Protocol):
    """Whoever can be asked. `CannotAsk` is raised where nobody can be (no terminal, no reader)."""

    async def decide(self, request: ApprovalRequest) -> Approval: ...

    async def answer(self, question: Question) -> str: ...


class Sandbox(Protocol):
    """Puts a shell command into a box, or says plainly that there is none."""

    @property
    def state(self) -> str:
        """One line for the person: `bubblewrap, workspace writable, no network` or `off: ...`."""
        ...

    @property
    def active(self) -> bool: ...

    def wrap(self, argv: tuple[str, ...], cwd: str) -> tuple[str, ...]:
        """What to run instead of `argv`; when it has ended, or could not be started, `ended` is called once."""
        ...

    def ended(self) -> None:
        """Takes away what was put up for a wrapped command."""
        ...


class Archive(Protocol):
    """Keeps whole texts that are shown clipped, and finds them again by handle (`t12`)."""

    def keep(self, text: str) -> str:
        """Stores `text` durably and returns its handle."""
        ...


class Found(Struct, frozen=True):
    """A place where looked-for words stand: its handle (`m12`, `s3`, `t7`), who said it, a passage, Unix seconds.

    `session_id` is set where other sessions were searched too.
    """

    handle: str
    role: str
    text: str
    at: float
    session_id: str = ""


class Recall(Protocol):
    """Looks up what was said earlier, also what no view shows any more. A wrong handle raises a `SessionError`."""

    def search(self, query: str, limit: int = 8) -> tuple[Found, ...]:
        """Where all the words stand, best first; where none has all of them, those that have some."""
        ...

    def expand(self, handle: str) -> str:
        """The original behind `m12`, `m12-m30`, `s3` or `t7`, byte for byte."""
        ...
