"""Changes small files that several processes share: one at a time, each change whole or not at all."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Holds the lock of `file`, a file beside it. Waits for whoever has it; the system takes it back from the dead."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(file.with_name(f".{file.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def replace_text(file: Path, text: str) -> None:
    """`text` is what the private file holds from now on, also after a power cut; else `OSError`, nothing changed.

    To be called with the lock held: the name of the new file is always the same, so that one left behind by a process
    that was killed is used up by the next.
    """
    beside = file.with_name(f".{file.name}.new")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(file)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
