"""What a screen asks of the loop behind it."""

from __future__ import annotations

from typing import Protocol

from rich.console import RenderableType


class Desk(Protocol):
    """The loop, as the screens see it."""

    hint: str

    @property
    def busy(self) -> bool: ...

    @property
    def queued(self) -> int: ...

    def submit(self, text: str) -> None: ...

    def interrupt(self) -> bool: ...

    def take_back(self) -> str: ...

    def next_mode(self) -> None: ...

    def expand_last(self) -> None: ...

    def help(self) -> None: ...

    def leave(self) -> None: ...

    def live(self) -> RenderableType | None: ...

    def status(self, width: int) -> list[tuple[str, str]]: ...
