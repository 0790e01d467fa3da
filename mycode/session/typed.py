"""The lines typed in chats, kept for the up key in one file for all sessions: what is removed goes from there, too."""

import os
from collections.abc import Collection, Container
from contextlib import suppress
from pathlib import Path

from mycode.core.errors import SessionError


def forget(file: Path, prompts: Collection[str]) -> None:
    """Overwrites lines that were one of these prompts, in place, so that other chats may go on writing to the file.

    A prompt is stored as lines that begin with `+`; one that begins otherwise is passed over by whoever reads them.
    Raises `SessionError` if the file is there and cannot be written.
    """
    try:
        with suppress(FileNotFoundError):
            _overwrite(file, {prompt.strip() for prompt in prompts})
    except OSError as error:
        message = f"The lines typed before, {file}, cannot be changed: {error.strerror or error}. Nothing was removed."
        raise SessionError(message) from error


def _overwrite(file: Path, wanted: Container[str]) -> None:
    with file.open("r+b") as opened:
        place = 0
        block: list[tuple[int, bytes]] = []
        for line in [*opened.readlines(), b""]:
            if line.startswith(b"+"):
                block.append((place, line))
            elif block:
                said = b"".join(part[1:] for _, part in block).decode("utf-8", "replace").strip()
                if said in wanted:
                    for start, part in block:
                        os.pwrite(opened.fileno(), b"#" * (len(part) - 1) + b"\n", start)
                block = []
            place += len(line)
        os.fsync(opened.fileno())
