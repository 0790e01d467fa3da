"""Ends the commands that still run when the program itself was killed and could not do it."""

from __future__ import annotations

import os
import weakref

# Reads which process groups begin and end. When the other side of the pipe is gone, those left are killed, and on
# systems with /proc whoever left its group but still carries the session's mark; again, since one that was just being
# killed may have started another.
_SCRIPT = """
trap "" HUP INT TERM
live=" "
while read -r sign group; do
    case $sign in
        +) live="$live$group " ;;
        -) live="${live%% "$group" *} ${live#* "$group" }" ;;
    esac
done
exec 2>/dev/null
for group in $live; do kill -KILL -- "-$group"; done
tries=50
while files=$(grep -lszF "$1" /proc/[0-9]*/environ); [ -n "$files" ] && [ "$tries" -gt 0 ]; do
    for file in $files; do
        file=${file%/environ}
        kill -KILL "${file#/proc/}"
    done
    tries=$((tries - 1))
    sleep 0.1
done
"""


class Watchdog:
    """A small process that outlives ours by a moment. It starts with `ready` and ends with `close`."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._pipe: int | None = None
        self._end: weakref.finalize[[int, int], Watchdog] | None = None

    def ready(self) -> None:
        """Before a command starts: from here on somebody is there to end it."""
        if self._end is None:
            self._start()

    def began(self, group: int) -> None:
        self._tell(f"+ {group}\n")

    def ended(self, group: int) -> None:
        self._tell(f"- {group}\n")

    def close(self) -> None:
        """Ends the watch; what is still known to run is killed."""
        if self._end is not None:
            self._end()
        self._pipe = self._end = None

    def _start(self) -> None:
        reading, writing = os.pipe()
        try:
            pid = os.posix_spawn(
                "/bin/sh",
                ("sh", "-c", _SCRIPT, "sh", self._mark),
                {"PATH": os.defpath},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, reading, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
                setpgroup=0,
                setsigmask=(),
            )
        except OSError:
            os.close(writing)
            return  # without it, a kill -9 leaves commands behind; everything else works
        finally:
            os.close(reading)
        self._pipe = writing
        self._end = weakref.finalize(self, _close, writing, pid)

    def _tell(self, line: str) -> None:
        if self._pipe is not None:
            try:
                os.write(self._pipe, line.encode())
            except OSError:
                pass  # it was killed by somebody


def _close(pipe: int, pid: int) -> None:
    os.close(pipe)
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass
