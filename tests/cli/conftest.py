"""A workplace in a folder of its own, with a scripted model or the one that the options name."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mycode.cli.options import RunOptions
from mycode.cli.run import Run
from mycode.cli.wiring import Workplace
from mycode.core.models import Model
from mycode.headless.approver import NobodyToAsk

Place = Callable[..., Workplace]


@pytest.fixture
def place(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.chdir(workspace)

    def opening(double: Model | None = None, /, **options: Any) -> Workplace:
        return Workplace(Run(RunOptions(**options), os.environ), NobodyToAsk(), model=double)

    return opening
