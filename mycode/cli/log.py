"""Where the details of a surprise are kept for a bug report."""

import logging
import os
import traceback
from datetime import UTC, datetime

from mycode.config.folders import find_folders
from mycode.core.redact import redact
from mycode.core.visible import plain


def keep_traceback(error: BaseException) -> str:
    """Appends the traceback, secrets masked, to `errors.log` in the data folder (0600) and returns its path."""
    file = find_folders(os.environ).data / "errors.log"
    text = "".join(traceback.format_exception(error))
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as out:
            out.write(f"{datetime.now(UTC).isoformat()}\n{plain(redact(text))}\n")
    except OSError as problem:
        return f"they could not be kept ({problem})"
    return str(file)


class ErrorFile(logging.Handler):
    """Keeps what a part of the program logs as an error beside the surprises, and off the person's screen."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        keep_traceback(error or RuntimeError(record.getMessage()))


def keep_log() -> None:
    """From now on the program's own log lines go there; without this they would be written over the prompt."""
    log = logging.getLogger("mycode")
    if not log.handlers:
        log.addHandler(ErrorFile(logging.ERROR))
        log.propagate = False
