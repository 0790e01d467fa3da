"""Searches files for a regular expression, as a program of its own: one that takes for ever can be stopped.

Reads `{"pattern": ..., "files": [...], "largest": bytes, "shown": hits, "wide": letters}`. Writes `[file, line number,
text]` for each of the first hits, at most so many and so wide, and `[file, hits]` for each file with hits, one a line.
It needs nothing but Python itself.
"""

import json
import os
import re
import stat
import sys


def main() -> None:
    asked = json.load(sys.stdin)
    expression = re.compile(asked["pattern"])
    left = asked["shown"]
    for name in asked["files"]:
        data = _content(name, asked["largest"])
        if b"\0" in data[:8000]:
            continue
        hits = 0
        text = data.decode("utf-8", "replace").removeprefix("\ufeff").removesuffix("\n")
        for number, line in enumerate(text.split("\n") if data else (), 1):
            if expression.search(line):
                hits += 1
                if left > 0:
                    left -= 1
                    sys.stdout.write(json.dumps([name, number, line.rstrip("\r")[: asked["wide"]]]) + "\n")
        if hits:
            sys.stdout.write(json.dumps([name, hits]) + "\n")


def _content(name: str, largest: int) -> bytes:
    """The bytes of a regular file that is not too large, else none."""
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return b""
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        return file.read() if stat.S_ISREG(status.st_mode) and status.st_size <= largest else b""


if __name__ == "__main__":
    main()
