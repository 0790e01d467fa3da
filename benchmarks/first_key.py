"""From launch to the first key echoed in a terminal, as a multiple of starting the bare interpreter.

    python -m benchmarks.first_key [--rounds N]

Both are wall time on the same machine in the same run, the least of several; the key is pressed as soon as a prompt
stands on the screen. The bar is 20 times.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import pexpect

BAR = 20.0


def bare() -> float:
    """Seconds to start and end the interpreter."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - started


def first_key() -> tuple[float, float]:
    """Seconds until the prompt stands there, and until a key pressed then is seen."""
    with tempfile.TemporaryDirectory() as home:
        world = {"HOME": home, "MYCODE_HOME": home, "OPENAI_API_KEY": "none", "TERM": "xterm-256color"}
        program = ["-m", "mycode", "--model", "openai/none", "--api-base", "http://127.0.0.1:9/v1"]
        started = time.perf_counter()
        child = pexpect.spawn(sys.executable, program, env={**os.environ, **world}, dimensions=(24, 80), timeout=30)
        child.delaybeforesend = None
        try:
            child.expect_exact(">")
            drawn = time.perf_counter() - started
            child.send("k")
            child.expect_exact("k")
            return drawn, time.perf_counter() - started
        finally:
            child.close(force=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    least = min(bare() for _ in range(rounds))
    drawn, echoed = (min(times) for times in zip(*(first_key() for _ in range(rounds)), strict=True))
    report = {
        "bare_s": round(least, 4),
        "prompt_s": round(drawn, 4),
        "first_key_s": round(echoed, 4),
        "ratio": round(echoed / least, 1),
        "bar": BAR,
    }
    sys.stdout.write(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
