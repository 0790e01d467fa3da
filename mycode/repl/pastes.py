"""Large pasted texts: small in the draft, whole in what is sent."""

from __future__ import annotations

_LINES, _CHARS = 8, 1500


class Pastes:
    """Keeps pasted texts by the sign that stands for them."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def shown(self, pasted: str) -> str:
        """What goes into the draft: the text itself, or a sign when it is large. Line ends become plain ones."""
        text = pasted.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.count("\n") + 1
        if lines <= _LINES and len(text) <= _CHARS:
            return text
        sign = f"[pasted text {len(self._texts) + 1}: {lines} lines, {len(text):,} characters]"
        self._texts[sign] = text
        return sign

    def expanded(self, draft: str) -> str:
        """The draft with each sign replaced by its text."""
        for sign, text in self._texts.items():
            draft = draft.replace(sign, text)
        return draft

    def clear(self) -> None:
        self._texts.clear()
