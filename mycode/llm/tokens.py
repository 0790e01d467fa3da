"""Counts tokens: exactly with tiktoken once it is loaded, before that by a fitted estimate.

The only door to tiktoken. Its vocabularies are those that ship inside litellm's wheel: found without importing it, read
without a network. The estimate cuts a text into the pieces that a tokenizer would start from and weighs them by kind
and length; the weights are fitted by `tests/benchmarks/tokens.py`, which also measures them.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from mycode.core.patterns import pattern

if TYPE_CHECKING:
    import tiktoken

_PIECE_CHARACTERS = 20_000  # longer runs of blanks overflow the tokenizer's stack; cutting moves a count by 0.02 %
_CLAUDE_FACTOR = 1.15  # the newest tokenizer is not public; where the calibration starts
_CL100K = pattern(r"gpt-4(?!o|\.[15])|gpt-3\.5|llama-?3|qwen|text-embedding-3")
_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"


class Tokens:
    """The token counter for one model (`provider/model`; empty: the usual vocabulary).

    For models whose tokenizer is not public it is the nearest one that is, times a factor: the ledger's calibration
    from real usage does the rest.
    """

    def __init__(self, model: str = "") -> None:
        name = model.lower()
        self._name = "cl100k_base" if _CL100K.search(name) else "o200k_base"
        self._factor = _CLAUDE_FACTOR if "claude" in name else 1.0
        self._encoding: tiktoken.Encoding | None = None

    @property
    def exact(self) -> bool:
        """Whether a tokenizer counts, rather than the estimate."""
        return self._encoding is not None

    def count(self, text: str) -> int:
        encoding = self._encoding
        if encoding is None:
            tokens = estimate(text, self._name)
        else:
            starts = range(0, len(text), _PIECE_CHARACTERS)
            tokens = sum(len(encoding.encode_ordinary(text[at : at + _PIECE_CHARACTERS])) for at in starts)
        return round(tokens * self._factor)

    def load(self) -> None:
        """Loads the vocabulary (half a second of work): for a background thread. Without one the estimate stays."""
        if self._encoding is None:
            self._encoding = _load(self._name)


def estimate(text: str, encoding: str = "o200k_base") -> int:
    """Tokens of `text` without a tokenizer; on a whole session within 5 % of either vocabulary."""
    if not text:
        return 0
    weights = WEIGHTS[encoding]
    return max(1, round(sum(weights.get(name, 1.0) * number for name, number in features(text).items())))


def features(text: str) -> Counter[str]:
    """How much of which kind of piece a text holds: the names of `WEIGHTS`."""
    found: Counter[str] = Counter()

    def random(run: re.Match[str]) -> str:
        if not _looks_random(run[0]):
            return run[0]
        found["random"] += len(run[0])
        return ""

    for piece, number in Counter(_PIECES.findall(_LONG_RUN.sub(random, text))).items():
        for name, amount in _kinds(piece):
            found[name] += amount * number
    return found


# --------------------------------------------------------------------------------------------------------- the pieces

_LONG_RUN = pattern(r"[A-Za-z0-9+/]{24,}={0,2}")
_SIGN = r"!-/:-@\[-`{-~"
_PIECES = pattern(
    rf"[ {_SIGN}]?[A-Za-z]*[\u00c0-\u024f][A-Za-z\u00c0-\u024f]*"
    rf"|[ {_SIGN}]?(?:[A-Z]*[a-z]+|[A-Z]+)"
    r"|[0-9]{1,3}"
    rf"| ?[{_SIGN}]+[\r\n]*"
    r"|\s*[\r\n]+"
    r"|[ \t]+(?![^ \t])"
    r"|[ \t]+(?=[ \t])"
    r"|[\u2500-\u259f]+"
    r"|[^\x00-\x7f]"
    r"|[\x00-\x1f\x7f ]"
)
_SCRIPTS = (
    (0x0370, "latin"),
    (0x0400, "greek"),
    (0x0530, "cyrillic"),
    (0x0590, "rare"),
    (0x0600, "hebrew"),
    (0x0700, "arabic"),
    (0x0900, "rare"),
    (0x0E00, "indic"),
    (0x0E80, "thai"),
    (0x1E00, "rare"),
    (0x2000, "latin"),
    (0x2070, "typography"),
    (0x2500, "symbol"),
    (0x2E80, "symbol"),
    (0x3040, "han"),
    (0x3100, "kana"),
    (0x3400, "rare"),
    (0xA000, "han"),
    (0xAC00, "rare"),
    (0xD7B0, "hangul"),
    (0xFF00, "rare"),
    (0x10000, "han"),
    (0x1F000, "rare"),
    (0x20000, "emoji"),
)


def _kinds(piece: str) -> list[tuple[str, int]]:
    first, last = piece[0], piece[-1]
    if not piece.isascii():
        code = ord(first)
        if 0x2500 <= code < 0x25A0:
            return [("rule", 1), ("rule signs", len(piece))] if len(set(piece)) == 1 else [("box", len(piece))]
        if len(piece) > 1:
            return [("accented", 1), ("accented letters", len(piece) - 1)]
        return [(next((name for end, name in _SCRIPTS if code < end), "rare"), 1)]
    if last.isalpha():
        return _word(piece, first)
    if last.isdigit():
        return [("digits", 1)]
    if not piece.strip():
        if "\n" in piece or "\r" in piece:
            return [("lines", 1), ("long lines", len(piece) // 17)]
        return [("blanks", 1), ("long blanks", len(piece) // 17)]
    signs = piece.strip()
    if len(signs) > 3 and len(set(signs)) == 1:
        return [("rule", 1), ("rule signs", len(signs))]
    lines = [("signs and line", 1)] if last in "\r\n" else []
    if len(signs) <= 2:
        return [(f"signs {len(signs)}", 1), *lines]
    return [("signs 3", 1), ("more signs", len(signs) - 3), *lines]


def _word(piece: str, first: str) -> list[tuple[str, int]]:
    lead = "spaced" if first == " " else "bare" if first.isalpha() else "signed"
    letters = len(piece) - (lead != "bare")
    if letters > 2 and piece[-1].isupper():
        size = 1 if letters <= 4 else 2 if letters <= 8 else 3
        more = [("more capitals", letters - 8)] if size == 3 else []
        return [(f"{lead} capitals {size}", 1), *more]
    size = 1 if letters <= 2 else 2 if letters <= 5 else 3 if letters <= 8 else 4 if letters <= 12 else 5
    more = [("letters", letters - 12)] if size == 5 else []
    return [(f"{lead} {size}", 1), *more]


def _looks_random(run: str) -> bool:
    """Base64 and the like: letters of both cases and digits, changing all the time."""
    if not (any(c.isdigit() for c in run) and any(c.isupper() for c in run) and any(c.islower() for c in run)):
        return False
    changes = sum(1 for a, b in pairwise(run) if _class(a) != _class(b))
    return changes > len(run) * 0.3


def _class(sign: str) -> int:
    return 0 if sign.islower() else 1 if sign.isupper() else 2


# -------------------------------------------------------------------------------------------------------- the weights

WEIGHTS: dict[str, dict[str, float]] = {
    "o200k_base": {
        "accented": 2.401,
        "accented letters": 0.045,
        "arabic": 0.264,
        "bare 1": 1.014,
        "bare 2": 1.018,
        "bare 3": 0.885,
        "bare 4": 1.132,
        "bare 5": 0.638,
        "bare capitals 1": 1.684,
        "bare capitals 2": 2.260,
        "bare capitals 3": 0.984,
        "blanks": 0.719,
        "box": 0.374,
        "cyrillic": 0.192,
        "digits": 1.114,
        "emoji": 2.223,
        "greek": 0.293,
        "han": 0.725,
        "hangul": 0.555,
        "hebrew": 0.288,
        "indic": 0.182,
        "kana": 0.856,
        "latin": 0.000,
        "letters": 0.764,
        "lines": 1.320,
        "long blanks": 0.000,
        "long lines": 0.000,
        "more capitals": 0.000,
        "more signs": 0.582,
        "random": 0.686,
        "rare": 0.311,
        "rule": 0.000,
        "rule signs": 0.081,
        "signed 1": 1.232,
        "signed 2": 1.302,
        "signed 3": 1.592,
        "signed 4": 2.018,
        "signed 5": 1.106,
        "signed capitals 1": 1.833,
        "signed capitals 2": 1.552,
        "signed capitals 3": 2.928,
        "signs 1": 1.148,
        "signs 2": 1.128,
        "signs 3": 1.202,
        "signs and line": 0.000,
        "spaced 1": 0.994,
        "spaced 2": 0.810,
        "spaced 3": 1.044,
        "spaced 4": 1.425,
        "spaced 5": 1.000,
        "spaced capitals 1": 0.926,
        "spaced capitals 2": 1.099,
        "spaced capitals 3": 0.807,
        "symbol": 1.187,
        "thai": 0.448,
        "typography": 0.311,
    },
    "cl100k_base": {
        "accented": 3.259,
        "accented letters": 0.137,
        "arabic": 0.755,
        "bare 1": 0.938,
        "bare 2": 1.021,
        "bare 3": 0.922,
        "bare 4": 1.154,
        "bare 5": 0.456,
        "bare capitals 1": 1.714,
        "bare capitals 2": 2.362,
        "bare capitals 3": 0.270,
        "blanks": 0.740,
        "box": 0.344,
        "cyrillic": 0.447,
        "digits": 1.111,
        "emoji": 3.206,
        "greek": 0.930,
        "han": 1.105,
        "hangul": 0.961,
        "hebrew": 1.028,
        "indic": 1.120,
        "kana": 1.222,
        "latin": 0.000,
        "letters": 0.897,
        "lines": 1.284,
        "long blanks": 0.000,
        "long lines": 0.000,
        "more capitals": 0.000,
        "more signs": 0.591,
        "random": 0.721,
        "rare": 2.166,
        "rule": 0.215,
        "rule signs": 0.138,
        "signed 1": 1.298,
        "signed 2": 1.219,
        "signed 3": 1.540,
        "signed 4": 1.967,
        "signed 5": 1.320,
        "signed capitals 1": 1.712,
        "signed capitals 2": 1.555,
        "signed capitals 3": 2.201,
        "signs 1": 1.124,
        "signs 2": 1.119,
        "signs 3": 1.123,
        "signs and line": 0.032,
        "spaced 1": 1.004,
        "spaced 2": 0.835,
        "spaced 3": 1.057,
        "spaced 4": 1.422,
        "spaced 5": 0.599,
        "spaced capitals 1": 1.017,
        "spaced capitals 2": 0.977,
        "spaced capitals 3": 0.709,
        "symbol": 1.087,
        "thai": 0.890,
        "typography": 0.233,
    },
}


# ------------------------------------------------------------------------------------------------------ the tokenizer


def _load(name: str) -> tiktoken.Encoding | None:
    folder = _vocabularies(name)
    if folder is None:
        return None
    import tiktoken

    variable = "TIKTOKEN_CACHE_DIR"
    before = os.environ.get(variable)
    os.environ[variable] = str(folder)
    try:
        return tiktoken.get_encoding(name)
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before


def _vocabularies(name: str) -> Path | None:
    """The folder that holds the vocabulary; None without it: tiktoken would go to the network."""
    from importlib.util import find_spec

    spec = find_spec("litellm")
    if spec is None or not spec.origin:
        return None
    folder = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
    file = hashlib.sha1(_URL.format(name).encode(), usedforsecurity=False).hexdigest()
    return folder if (folder / file).is_file() else None
