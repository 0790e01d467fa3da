"""A workplace gives everything back."""

import os
from pathlib import Path

import pytest

from mycode.cli.options import RunOptions
from mycode.cli.run import Run
from mycode.cli.wiring import Workplace
from mycode.core.errors import SessionError
from mycode.headless.approver import NobodyToAsk
from tests.support.context_doubles import Script


class Closing(Script):
    """Tells whether it was closed."""

    closed = False

    async def aclose(self) -> None:
        self.closed = True


async def test_the_model_is_closed_even_if_the_session_cannot_be(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    run = Run(RunOptions(), os.environ)
    model = Closing("never")
    place = Workplace(run, NobodyToAsk(), model=model)
    place.store.database.close()

    with pytest.raises(SessionError):
        await place.aclose()

    assert model.closed
    with pytest.raises(SessionError):
        run.close()
