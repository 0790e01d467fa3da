"""What the REPL is given: its settings, the conversation it shows, and the few things that only the wiring can do."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from mycode.context.forecast import Forecast
from mycode.core.checkpoints import Rewinder
from mycode.core.entries import Entry
from mycode.core.events import ContextChanged, Event
from mycode.core.messages import Image
from mycode.core.models import ModelRequest
from mycode.core.summaries import ContextUsage, Strategy
from mycode.core.tools import Mode
from mycode.core.usage import Usage
from mycode.render.live import Notify
from mycode.render.theme import Look


class ReplSettings(Struct, frozen=True):
    """How the person wants the screen.

    `notice` is shown at the start; `notify` says how automatic summaries are told; `history_file` keeps typed lines
    (None: only for this run); `editor` beats $VISUAL and $EDITOR.
    """

    vi: bool = False
    plain: bool = False
    color: bool = True
    look: Look = "dark"
    editor: str | None = None
    history_file: Path | None = None
    notice: str = ""
    notify: Notify = "line"
    workspace: Path = Path()


class Conversation(Protocol):
    """The face of a session, as the REPL sees it: `session.session.Session` is one."""

    @property
    def id(self) -> str: ...

    @property
    def title(self) -> str: ...

    def prompt(self, text: str, images: tuple[Image, ...] = ()) -> AsyncGenerator[Event]: ...

    def summarize(
        self,
        focus: str = "",
        *,
        strategy: Strategy | None = None,
        preview: bool = False,
        first: int | None = None,
        last: int | None = None,
        keep: int | None = None,
        rebase: bool = False,
    ) -> AsyncGenerator[Event]: ...

    def undo(self) -> ContextChanged: ...

    def drop(self, seqs: Sequence[int], *, shrink: bool = False) -> ContextChanged: ...

    def restore(self, seqs: Sequence[int]) -> ContextChanged: ...

    def pin(self, what: str) -> ContextChanged: ...

    def unpin(self, what: str) -> ContextChanged: ...

    def pins(self) -> tuple[str, ...]: ...

    def usage(self) -> ContextUsage: ...

    def cost(self) -> Usage: ...

    def costs(self) -> dict[str, Usage]: ...

    def history(
        self,
        *,
        first: int | None = None,
        last: int | None = None,
        newest: int | None = None,
        grep: str = "",
        audit: bool = False,
    ) -> Iterator[Entry]: ...

    def summaries(self) -> tuple[Entry, ...]: ...

    def undone(self) -> frozenset[int]: ...

    def expand(self, handle: str) -> str: ...

    def rename(self, title: str) -> None: ...

    def clear(self) -> str: ...

    def resume(self, name: str) -> str: ...

    def check_rewind(self, seq: int) -> None: ...

    def rewind(self, seq: int) -> str: ...

    def checkpoint_before(self, seq: int) -> str | None: ...


class ModelChoice(Struct, frozen=True):
    """A model that `/model` offers; `note` says where it comes from or what it costs."""

    name: str
    note: str = ""


class SessionChoice(Struct, frozen=True):
    """An earlier session that `/resume` offers; `at` is Unix seconds of its last entry."""

    id: str
    title: str
    at: float
    messages: int


class Services(Protocol):
    """What commands need beyond the conversation. Whatever fails raises a `MycodeError` with a sentence."""

    @property
    def model_name(self) -> str: ...

    @property
    def mode(self) -> Mode: ...

    def set_mode(self, mode: Mode) -> None: ...

    def forecast(self) -> Forecast:
        """How long the room will last, and what the next requests cost."""
        ...

    def next_request(self) -> ModelRequest:
        """What the model would be sent now, whole."""
        ...

    def permissions(self) -> Sequence[str]:
        """The rules that hold now, one line each, as `/permissions` shows them."""
        ...

    def models(self) -> Sequence[ModelChoice]: ...

    async def switch_model(self, name: str) -> str:
        """The session goes on with another model; the one line that says so."""
        ...

    def settings(self) -> Sequence[tuple[str, str, str]]:
        """(name, value, origin) of each setting."""
        ...

    def sessions(self) -> Sequence[SessionChoice]: ...

    def export(self, path: str, form: str) -> str:
        """Writes the session as `md`, `html` or `jsonl`; gives back where to."""
        ...

    @property
    def rewinder(self) -> Rewinder | None:
        """Takes the files back to a checkpoint of the open session; None where none are kept."""
        ...

    def init_prompt(self) -> str:
        """The prompt of `/init`: look at the project and write AGENTS.md."""
        ...
