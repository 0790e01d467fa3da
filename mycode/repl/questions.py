"""A question that waits for a key or a line, and what counts as an answer to it."""

from __future__ import annotations

import asyncio

HASTE = 0.7
"""Seconds: whoever typed as recently as that was typing something else when the question appeared."""
PAUSE = 0.5
"""Seconds for which keys are no answer then."""


class Question:
    """One open question: what is shown of it, its keys (none: it wants a line), and what Esc means."""

    def __init__(self, shown: str, keys: tuple[str, ...], escape: str, not_before: float = 0.0) -> None:
        self.shown = shown
        self.keys = keys
        self.escape = escape
        self.not_before = not_before
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def settle(self, answer: str) -> None:
        """The first answer counts."""
        if not self.answer.done():
            self.answer.set_result(answer)


class Questions:
    """Holds the open question, if any; at most one at a time."""

    def __init__(self) -> None:
        self.open: Question | None = None
        self.typed_at = float("-inf")

    @property
    def choosing(self) -> bool:
        """Whether a key is waited for."""
        return self.open is not None and bool(self.open.keys)

    @property
    def reading(self) -> bool:
        """Whether a line is waited for."""
        return self.open is not None and not self.open.keys

    @property
    def shown(self) -> str:
        """The question's line; only a sign of it while keys are still no answer."""
        if self.open is None:
            return ""
        return self.open.shown if _now() >= self.open.not_before else "…"

    def ask_key(self, choices: dict[str, str], escape: str) -> Question:
        """Opens a choice of keys. Keys that were on their way when it appeared are no answer."""
        now = _now()
        not_before = now + PAUSE if now - self.typed_at < HASTE else now
        shown = "  ".join(f"[{key.capitalize()}] {label}" for key, label in choices.items())
        self.open = Question(shown, tuple(choices), escape, not_before)
        return self.open

    def ask_line(self, label: str) -> Question:
        """Opens a question that is answered in words."""
        self.open = Question(f"{label} (Enter sends, Esc: nothing)", (), "")
        return self.open

    def key(self, key: str) -> None:
        """A key was pressed; one that is no answer is ignored."""
        question = self.open
        if question is not None and len(key) == 1 and key.lower() in question.keys and _now() >= question.not_before:
            question.settle(key.lower())

    def escape(self) -> None:
        if self.open is not None:
            self.open.settle(self.open.escape)

    def typed(self) -> None:
        """Something was typed into the draft just now."""
        self.typed_at = _now()


def _now() -> float:
    return asyncio.get_running_loop().time()
