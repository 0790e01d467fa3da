"""A process that appends to a session and says each seq on standard output once it is on disk.

`python appending.py FOLDER SESSION COUNT [BYTES]` goes on from where the session is; with BYTES the process may not
make any file larger than that, and when the disk refuses it says why, gets its room back, and goes on.
"""

import resource
import sys
from pathlib import Path

from mycode.core.entries import Entry
from mycode.core.errors import SessionError
from mycode.core.messages import UserMessage
from mycode.session.store import Store


def body(seq: int) -> UserMessage:
    return UserMessage(f"{seq} " * (seq * 37 % 900 + 1))


def main(folder: str, session: str, count: int, limit: int = 0) -> None:
    store = Store(Path(folder))
    store.claim(session)
    say("ready")
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    last = store.log(session).last_seq()
    for seq in range(last + 1, last + 1 + count):
        try:
            store.append(session, Entry(seq, f"e{seq}", 0.0, body(seq), seq))
        except SessionError as error:
            say(f"refused {seq} {error}")
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            store.append(session, Entry(seq, f"e{seq}", 0.0, body(seq), seq))
        say(str(seq))


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
