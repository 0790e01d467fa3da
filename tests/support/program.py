"""The real program in a process of its own, with its own home, as a script would run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Program:
    """Runs `mycode` in `cwd`; `model_url` is the model server it talks to, if any.

    `inside` is a command that runs another one somewhere else, in a namespace for example.
    """

    cwd: Path
    home: Path
    model_url: str = ""
    env: dict[str, str] = field(default_factory=dict)
    inside: tuple[str, ...] = ()

    def run(
        self, *arguments: str, stdin: str | bytes | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """One run to its end. `stdin` None is an empty pipe, as in CI."""
        data = stdin.encode() if isinstance(stdin, str) else stdin or b""
        done = subprocess.run(
            [*self.inside, sys.executable, "-P", "-m", "mycode", *arguments],
            cwd=self.cwd,
            env=self.environment(),
            input=data,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
        )

    def ask(self, prompt: str, *more: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """A one-shot prompt."""
        return self.run("-p", prompt, *more, **options)

    def environment(self) -> dict[str, str]:
        """The environment of the program: nothing of this machine's but PATH."""
        env = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.home),
            "MYCODE_HOME": str(self.home / "mycode"),
            "NO_COLOR": "1",
            "LANG": "C.UTF-8",
            "PYTHONWARNINGS": "error",
            **self.env,
        }
        if self.model_url:
            env |= {"MYCODE_MODEL": "openai/scripted", "MYCODE_API_BASE": self.model_url, "OPENAI_API_KEY": "test-key"}
        return env


def json_lines(text: str) -> list[dict[str, Any]]:
    """JSON Lines as objects."""
    return [json.loads(line) for line in text.splitlines()]
