"""A command cannot read our keys out of the process that started it."""

import subprocess
import sys

_SCRIPT = """
import ctypes, sys
from mycode.tools.seclusion import seclude
get = lambda: ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) if sys.platform == "linux" else 0
before, hidden = get(), seclude()
print(hidden == (sys.platform == "linux"), get())
"""


def test_the_memory_of_the_program_is_closed_to_other_processes() -> None:
    done = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout == "True 0\n"
