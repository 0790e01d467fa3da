"""Every test runs in a home of its own, without keys, and may open sockets to this machine only."""

import asyncio
import os
import socket
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.terminal import Terminal

settings.register_profile(
    "mycode", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.register_profile("nightly", parent=settings.get_profile("mycode"), max_examples=2000)
settings.load_profile(os.environ.get("MYCODE_HYPOTHESIS", "mycode"))

_SECRET_ENDINGS = ("_API_KEY", "_TOKEN", "_SECRET")


@pytest.fixture(autouse=True)
def _own_world(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if (
            name.startswith(("MYCODE_", "XDG_"))
            or name.endswith(_SECRET_ENDINGS)
            or "_API_BASE" in name
            or "_BASE_URL" in name
        ):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MYCODE_HOME", str(home / "mycode"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("PROMPT_TOOLKIT_NO_CPR", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    work = home / "work"
    work.mkdir()
    monkeypatch.chdir(work)


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else None
        if host not in (None, "127.0.0.1", "::1", "localhost"):
            message = f"a test tried to reach {host}"
            raise OSError(message)
        connect(self, address)  # type: ignore[arg-type]  # the address type depends on the family

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty project folder."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    """Terminals that are put in here are closed at the end."""
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


@pytest.fixture(scope="session")
def _litellm() -> None:
    """The first calls of litellm import a good deal more: no watchdog of a test shall measure that."""
    from mycode.core.messages import UserMessage
    from mycode.core.models import ModelRequest
    from mycode.llm.catalog import describe
    from mycode.llm.litellm_model import LitellmModel, warm
    from tests.support.script import say
    from tests.support.scripted_server import ScriptedServer

    async def first_calls() -> None:
        async with ScriptedServer(lambda _: say("warm")) as server:
            for name, base in (("openai/scripted", server.url), ("anthropic/scripted", server.root)):
                model = LitellmModel(describe(name), api_base=base, api_key="key")
                async for _ in model.stream(ModelRequest("You are a test.", (UserMessage("hi"),))):
                    """Only that it comes matters."""
                await model.aclose()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warm("openai/scripted")
        asyncio.run(first_calls())


@pytest.fixture(params=["fast lane", "litellm", "litellm to anthropic"])
def lane(request: pytest.FixtureRequest) -> str:
    """Every way to a model, one after the other."""
    if request.param != "fast lane":
        request.getfixturevalue("_litellm")
    return str(request.param)
