"""Keeps this process's memory and first environment, which hold keys, from the commands it starts."""

import sys

_PR_SET_DUMPABLE = 4


def seclude() -> bool:
    """On Linux, `/proc/PID/environ` and `/proc/PID/mem` of ours become unreadable for others of the same user.

    False where the system has no such thing. The administrator can always look.
    """
    if sys.platform != "linux":
        return False
    import ctypes

    try:
        return bool(ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False
