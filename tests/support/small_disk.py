"""A file system of a few megabytes, so that a disk can really be full; made in a namespace, without any rights."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.program import Program


class SmallDisk:
    """Mounted at `place` for the programs that are run `inside` it; `seen` is the same folder as we see it."""

    def __init__(self, place: Path, holder: int) -> None:
        self.place = place
        self.seen = Path(f"/proc/{holder}/root{place}")
        self._holder = holder

    def around(self, program: Program) -> Program:
        """The program, run where the small file system is."""
        enter = ("nsenter", "-t", str(self._holder), "-U", "-m", "--preserve-credentials")
        return replace(program, inside=(*enter, "sh", "-c", 'cd "$0" && exec "$@"', str(program.cwd)))

    def fill(self) -> None:
        """Leaves no room for a single byte."""
        with contextlib.suppress(OSError), (self.seen / "filler").open("ab", buffering=0) as file:
            size = 1 << 16
            while size:
                try:
                    while file.write(b"x" * size) == size:
                        pass
                except OSError:
                    size //= 16

    def empty(self) -> None:
        """Gives the room back."""
        (self.seen / "filler").unlink()


@contextlib.contextmanager
def small_disk(place: Path, size: str = "3m") -> Iterator[SmallDisk]:
    """Skips the test where the system allows nobody to make one."""
    place.mkdir(parents=True, exist_ok=True)
    script = 'mount -t tmpfs -o size="$1",mode=700 none "$0" && echo ready && exec cat'
    try:
        holder = subprocess.Popen(
            ["unshare", "-rm", "sh", "-c", script, str(place), size],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    except OSError:
        pytest.skip("there is no unshare here")
    with holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        if holder.stdout.readline() != "ready\n":
            pytest.skip("no file system can be mounted here, not even in a namespace")
        try:
            yield SmallDisk(place, holder.pid)
        finally:
            holder.stdin.close()
