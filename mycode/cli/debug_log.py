"""What the context engine does, told to a file for whoever tunes or mends it: one line a summary (R86, R94)."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from mycode.core.events import ContextMasked, Event, SummaryFinished, SummaryStarted, TurnEnded, Warned
from mycode.core.redact import redact
from mycode.core.summaries import MaskEpoch, SummaryRecord
from mycode.core.visible import one_line

MOST_BYTES = 1_000_000
_LONGEST = 1_000


class DebugLog:
    """Writes lines of `name=value` about summaries, masking and warnings; only the owner may read them (0600).

    A file that has grown beyond a megabyte becomes `debug.log.1`, in place of the one before. Secrets are masked, and
    nothing in a line moves a terminal's cursor. A disk that refuses is no reason to complain.
    """

    def __init__(self, file: Path, *, session: Callable[[], str], clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._session = session
        self._clock = clock
        self._open: SummaryStarted | None = None
        self._begun = self._made = 0
        self._seconds = 0.0

    def __call__(self, event: Event) -> None:
        """Takes in one event; what does not concern the context is passed over."""
        match event:
            case SummaryStarted(trigger=trigger, messages=messages):
                self.settle()
                self._open, self._begun = event, self._begun + 1
                self._write(f"summary begun trigger={trigger.reason} compressed={messages} ratio={trigger.ratio:.3f}")
            case SummaryFinished(entry=entry, seconds=seconds) if isinstance(entry.body, SummaryRecord):
                self._made, self._seconds = self._made + 1, self._seconds + seconds
                self._finished(entry.body, seconds, preview=entry.seq == 0)
                self._open = None
            case ContextMasked(entry=entry, tokens_before=before, tokens_after=after):
                epoch = entry.body
                number, why = (len(epoch.stubs), epoch.trigger) if isinstance(epoch, MaskEpoch) else (0, None)
                self._write(f"masked trigger={why} results={number} tokens_before={before} estimate_after={after}")
            case Warned(text=text):
                self._write(f"warning {text}")
            case TurnEnded():
                self.settle()
            case _:
                pass

    def settle(self) -> None:
        """A summary that was begun and of which nothing more is heard was not made: put off, refused or failed."""
        if self._open is not None:
            self._write(f"summary not made trigger={self._open.trigger.reason} {self._rate}")
            self._open = None

    @property
    def _rate(self) -> str:
        return f"success={self._made}/{self._begun}"

    def _finished(self, record: SummaryRecord, seconds: float, *, preview: bool) -> None:
        begun = self._open
        ratio = f"{begun.trigger.ratio:.3f}" if begun is not None else "unknown"
        compressed = begun.messages if begun is not None else len(record.message_ids)
        score = f"{record.verification.score:.3f}" if record.verification is not None else "none"
        self._write(
            f"summary {'preview' if preview else 'made'} id={record.id} trigger={record.trigger} "
            f"strategy={record.strategy} model={record.model or 'none'} depth={record.depth} compressed={compressed} "
            f"ratio_before={ratio} tokens_before={record.tokens_before} estimate_after={record.tokens_after} "
            f"score={score} seconds={seconds:.3f} {self._rate} mean_seconds={self._seconds / self._made:.3f}"
        )

    def _write(self, text: str) -> None:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._clock()))
        line = f"{at} session={self._session()} {one_line(redact(text), _LONGEST)}\n"
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(self._file, flags, 0o600), "ab") as out:
                os.fchmod(out.fileno(), 0o600)
                out.write(line.encode("utf-8", "replace"))
                full = out.tell() > MOST_BYTES
            if full:
                self._file.replace(self._file.with_name(f"{self._file.name}.1"))
