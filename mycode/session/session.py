"""One conversation, kept: the only thing a front end talks to. Whatever it shows was written down before."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mycode.core.entries import Checkpoint, Entry, Grant, Note, Purged
from mycode.core.errors import InputError, SessionError
from mycode.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    ContextChanged,
    Event,
    MessageAdded,
    Retrying,
    SummaryFinished,
    TextDelta,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    Warned,
)
from mycode.core.messages import AssistantMessage, Image, UserMessage
from mycode.core.summaries import ContextUsage, Strategy, Trigger
from mycode.core.tools import ApprovalRequest, Found
from mycode.core.usage import NO_USAGE, Usage
from mycode.session.archive import SessionArchive
from mycode.session.catalogue import SessionInfo
from mycode.session.opened import Opened
from mycode.session.originals import Originals
from mycode.session.parts import Checkpointer, Context, Redact, RunTurn
from mycode.session.reading import history
from mycode.session.store import Store, clean

if TYPE_CHECKING:
    from mycode.session.purging import Rule


class Session:
    """Owns which session is open, its title and its totals. Opening takes it; `SessionHeld` says that another has it.

    `run` runs one turn; `archive` is the one that the tools were given, so that it moves along to other sessions;
    `watch` is told every event just before a front end is; `purge` says which originals under summaries do not stay
    (None: all do); `notices` are sentences of other parts, each told with the next event of a turn and taken out.
    """

    def __init__(
        self,
        *,
        store: Store,
        session_id: str,
        context: Context,
        run: RunTurn,
        clock: Callable[[], float],
        redact: Redact,
        checkpointer: Checkpointer | None = None,
        notices: list[str] | None = None,
        archive: SessionArchive | None = None,
        watch: Callable[[Event], None] | None = None,
        purge: Rule | None = None,
    ) -> None:
        self._store = store
        self._notices = notices if notices is not None else []
        self._context = context
        self._run = run
        self._clock = clock
        self._redact = redact
        self._checkpointer = checkpointer
        self._archive = archive or SessionArchive(store, session_id)
        self._watch = watch
        self._originals = Originals(store, purge)
        self._busy = False
        self._before_turn = 0
        self._checkpointed = False
        self._opened = self._open(session_id)
        self._originals.opened(session_id)

    # -- talking ----------------------------------------------------------------------------------------------------

    async def prompt(self, text: str, images: tuple[Image, ...] = ()) -> AsyncGenerator[Event]:
        """One turn, from `TurnStarted` to `TurnEnded`. An event that carries an entry is on disk before it comes.

        Where the disk refuses, a `Warned` says so, the entry waits in memory and is written with the next one.
        """
        self._begin()
        turn = self._opened.totals.begin()
        asked: dict[str, ApprovalRequest] = {}
        said: list[str] = []
        ended = False
        try:
            message = UserMessage(clean(text), images)
            async with aclosing(self._run(message, turn)) as events:
                async for event in events:
                    match event:
                        case ApprovalAsked(request=request):
                            asked[request.call_id] = request
                        case ApprovalGiven(call_id=call_id) if call_id in asked and event.entry is None:
                            event = replace(event, entry=self._context.note(_grant(asked[call_id], event)))
                        case ToolStarted() if self._checkpointer is not None:
                            for told in await self._checkpoint(self._checkpointer, event, turn):
                                yield told
                        case TextDelta(text=piece):
                            said.append(piece)
                        case MessageAdded() | Retrying(discard=True):
                            said.clear()
                        case TurnEnded():
                            ended = True
                            for told in self._opened.save(self._context.note(self._opened.totals.closing(event, turn))):
                                yield told
                        case _:
                            pass
                    while self._notices and not isinstance(event, TurnStarted):
                        yield Warned(self._notices.pop(0))
                    for told in self._kept(event):
                        yield told
                    if isinstance(event, TurnStarted) and (text := self._originals.announcement()):
                        yield Warned(text)
        finally:
            if not ended and self._opened.writer.last != self._before_turn:
                # The consumer went away: what was said so far is kept, and the turn is told to have been interrupted.
                if partial := "".join(said).strip():
                    self._opened.save(self._context.append(AssistantMessage(clean(partial), finish="interrupted")))
                cut = TurnEnded("interrupted", self._opened.totals.this_turn, 0)
                self._opened.save(self._context.note(self._opened.totals.closing(cut, turn)))
            self._end()
            if self._checkpointer is not None and self._checkpointed:
                await self._checkpointer.settle()

    async def summarize(
        self,
        focus: str = "",
        *,
        strategy: Strategy | None = None,
        preview: bool = False,
        first: int | None = None,
        last: int | None = None,
        keep: int | None = None,
        rebase: bool = False,
    ) -> AsyncGenerator[Event]:
        """Folds the past by hand. With `preview` nothing is changed: the `SummaryFinished` holds what would be."""
        self._begin()
        try:
            if not preview and (text := self._originals.announcement()):
                yield Warned(text)
            usage = self._context.usage()
            trigger = self._context.due("manual") or Trigger("manual", usage.ratio, usage.tokens)
            stream = self._context.summarize(
                trigger,
                focus=focus,
                strategy=strategy,
                preview=preview,
                first=first,
                last=last,
                keep=keep,
                rebase=rebase,
            )
            async with aclosing(stream) as events:  # type: ignore[type-var]  # streams are generators
                async for event in events:
                    for told in self._kept(event):
                        yield told
        finally:
            self._end()

    # -- the view, changed by hand ----------------------------------------------------------------------------------

    def undo(self) -> ContextChanged:
        """Takes back the newest change of the view; raises when there is none."""
        changed = self._context.undo()
        if changed is None:
            message = "There is nothing to undo: no summary, masking or hand-made change is in force."
            raise SessionError(message)
        return self._changed(changed)

    def drop(self, seqs: Sequence[int], *, shrink: bool = False) -> ContextChanged:
        """Takes messages out of the view, with `shrink` leaving one line each."""
        return self._changed(self._context.shrink(seqs) if shrink else self._context.drop(seqs))

    def shrink(self, seqs: Sequence[int]) -> ContextChanged:
        return self.drop(seqs, shrink=True)

    def restore(self, seqs: Sequence[int]) -> ContextChanged:
        """Shows dropped, shrunk or masked messages whole again."""
        return self._changed(self._context.restore_items(seqs))

    def pin(self, what: str) -> ContextChanged:
        """Keeps a text, or a message by its handle (`m12`), word for word in every view."""
        wanted = _seq_or_text(what)
        found = self._opened.log.entry(wanted) if isinstance(wanted, int) else None
        if found is not None and isinstance(found.body, Purged):
            raise InputError(f"m{found.seq} cannot be pinned: it was {found.body.text}.")
        return self._changed(self._context.pin(wanted))

    def unpin(self, what: str) -> ContextChanged:
        """Lets go of a pin, by its number in the list of pins (from 1) or by its text."""
        pins = self._context.pins()
        number = int(what) if what.strip().isdecimal() else pins.index(what) + 1 if what in pins else 0
        return self._changed(self._context.unpin(number))

    def pins(self) -> tuple[str, ...]:
        """What is pinned, in the order in which `unpin` numbers it."""
        return self._context.pins()

    # -- looking ----------------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        return self._opened.id

    @property
    def title(self) -> str:
        return self._opened.title

    @property
    def info(self) -> SessionInfo:
        return self._store.info(self._opened.id)

    @property
    def messages_count(self) -> int:
        return self._opened.messages

    @property
    def unsaved(self) -> str:
        """Why entries wait in memory, as a sentence; empty when all are on disk."""
        return self._opened.trouble

    def usage(self) -> ContextUsage:
        return self._context.usage()

    def cost(self) -> Usage:
        """What all models used in this session, summed."""
        return sum(self.costs().values(), NO_USAGE)

    def costs(self) -> dict[str, Usage]:
        """What each model used in this session, in the order they were first asked."""
        return dict(self._opened.totals.models)

    def history(
        self,
        *,
        first: int | None = None,
        last: int | None = None,
        newest: int | None = None,
        grep: str = "",
        audit: bool = False,
    ) -> Iterator[Entry]:
        """Messages of the whole log, ascending, read as they are taken: those with first <= seq <= last.

        `newest` keeps only the last so many, `grep` those that hold the text in any case; `audit` gives every entry.
        """
        log, waiting = self._opened.log, self._opened.writer.waiting
        return history(log, waiting, first=first, last=last, newest=newest, grep=grep, audit=audit)

    def summaries(self) -> tuple[Entry, ...]:
        """Every summary ever made, oldest first, also those undone: the third one is `s3`."""
        return self._opened.summaries()

    def undone(self) -> frozenset[int]:
        """Seqs of the summaries and other changes of the view that were taken back."""
        return self._opened.undone()

    def expand(self, handle: str) -> str:
        """The original behind `m12`, `m12-m30`, `s3` or `t7`, byte for byte."""
        return self._archive.expand(handle)

    def search(self, query: str, limit: int = 8) -> tuple[Found, ...]:
        """Where words stand in this session, best first."""
        return self._archive.search(query, limit)

    def checkpoint_before(self, seq: int) -> str | None:
        """The checkpoint that holds the files as they were before message `seq`; None if nothing changed since."""
        return self._opened.checkpoint_before(seq)

    # -- which session ----------------------------------------------------------------------------------------------

    def rename(self, title: str) -> None:
        """Gives the session a name of the person's choice."""
        self._opened.title = self._store.rename(self._opened.id, title)

    def set_model(self, name: str) -> None:
        """Notes that the session goes on with another model."""
        self._store.set_model(self._opened.id, name)
        self._opened.save(self._context.note(Note("model_set", {"model": name})))

    def clear(self) -> str:
        """Starts a new session in the same place and returns its id; the old one can be resumed."""
        info = self._leave()
        return self._change(self._store.create(cwd=info.cwd, model=info.model))

    def resume(self, name: str) -> str:
        """Goes on with another session, found by id, beginning of an id, or title."""
        self._leave()
        return self._change(self._store.find(name).id)

    def fork(self, at_seq: int | None = None, *, title: str = "") -> str:
        """Goes on in a copy that shares the past up to and with `at_seq`; the original stays as it is."""
        self._leave()
        return self._change(self._store.fork(self._opened.id, at_seq, title=title))

    def rewind(self, seq: int) -> str:
        """Goes back to before message `seq`, in a copy: what came after can still be resumed under the old id."""
        return self.fork(seq - 1)

    def check_rewind(self, seq: int) -> None:
        """Raises `SessionError` where `rewind` would, before anything else is taken back."""
        self._store.check_fork(self._opened.id, seq - 1)

    def close(self) -> None:
        """Writes what still waits and lets go of the session."""
        self._opened.settle()
        if not self._opened.trouble:
            self._originals.left()
        self._store.release(self._opened.id)
        self._originals.closed()

    # -- helpers ----------------------------------------------------------------------------------------------------

    def _open(self, session_id: str) -> Opened:
        self._store.claim(session_id)
        opened = Opened(self._store, session_id, self._redact)
        self._context.restore(opened.log)
        self._archive.session_id = session_id
        if self._checkpointer is not None:
            self._checkpointer.opened(session_id)
        return opened

    def _change(self, session_id: str) -> str:
        """Goes on with another session, and lets go of the one that was open."""
        previous, self._opened = self._opened, self._open(session_id)
        if previous.id != session_id:
            self._originals.left()
            self._store.release(previous.id)
        self._originals.opened(session_id)
        return session_id

    def _leave(self) -> SessionInfo:
        """Makes sure that nothing of the open session would be lost by opening another."""
        if self._busy:
            raise SessionError(_BUSY)
        self._opened.settle()
        if self._opened.trouble:
            message = f"This session still has unsaved entries. {self._opened.trouble}"
            raise SessionError(message)
        return self._store.info(self._opened.id)

    def _begin(self) -> None:
        if self._busy:
            raise SessionError(_BUSY)
        self._busy = True
        self._before_turn = self._opened.writer.last
        self._checkpointed = False

    def _end(self) -> None:
        self._busy = False
        self._opened.settle()
        if not self._opened.trouble:
            self._purge()
        self._store.index_if_much()

    def _purge(self) -> None:
        """Between turns: what no undo of the newest summary needs goes, if the settings want that."""
        try:
            entry = self._originals.after_turn(self._context.note)
        except SessionError:
            # It is tried again when the session is left; what the context engine took for done was not.
            self._context.restore(self._opened.log)
            return
        if entry is not None:
            self._opened.writer.written(entry)

    def _kept(self, event: Event) -> Iterator[Event]:
        """The event once its entry is on disk, after a warning if it could not be put there."""
        entry: Entry | None = getattr(event, "entry", None)
        if entry is not None and entry.seq > 0:
            self._opened.totals.count(entry)
            yield from self._opened.save(entry)
        if self._watch is not None:
            self._watch(event)
        yield event
        if isinstance(event, SummaryFinished) and event.entry.seq > 0 and (text := self._originals.folded()):
            yield Warned(text)

    def _changed(self, changed: ContextChanged) -> ContextChanged:
        self._opened.save(changed.entry)
        return changed

    async def _checkpoint(self, checkpointer: Checkpointer, event: ToolStarted, turn: int) -> list[Event]:
        ref = await checkpointer.before(event.call, turn)
        if ref is None:
            return []
        self._checkpointed = True
        return self._opened.save(self._context.note(Checkpoint(ref, turn)))


_BUSY = "A turn is still running. Wait for it to end, or interrupt it with Esc."


def _grant(request: ApprovalRequest, event: ApprovalGiven) -> Grant:
    action, approval = request.action, event.approval
    return Grant(action.tool, action.title, approval.answer, approval.by, approval.rule)


def _seq_or_text(what: str) -> str | int:
    handle = what.strip()
    return int(handle[1:]) if handle[:1] in ("m", "M") and handle[1:].isdecimal() else what
