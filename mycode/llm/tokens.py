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
from collections.abc import Mapping
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

    plain, codes = _COLOURS.subn("", text)
    if codes:
        found["colours"] = codes
    pieces = Counter(_PIECES.findall(_LONG_RUN.sub(random, plain)))
    for piece, number in pieces.items():
        for name, amount in _kinds(piece):
            found[name] += amount * number
    if len(pieces) > _VARIED:
        found["once"] = _said_once(pieces)
    return found


def _said_once(pieces: Mapping[str, int]) -> int:
    """Words without a blank before them that a long text holds once: as in lists of names, seldom one token."""
    words: Counter[str] = Counter()
    for piece, number in pieces.items():
        if piece[-1].islower() and piece.isascii():
            words[(piece if piece[0].isalpha() else piece[1:]).lower()] += number
    bare = (piece for piece in pieces if len(piece) > 3 and piece[0].isalpha() and piece[-1].islower())
    return sum(1 for piece in bare if words[piece.lower()] == 1)


# --------------------------------------------------------------------------------------------------------- the pieces

_VARIED = 300  # different pieces from which on a word that comes once is a rare word
_COLOURS = pattern(r"\x1b\[[0-9;?]*[A-Za-z]")
_CLUSTER = pattern(r"[b-df-hj-np-tv-xz]{3,}")
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
    if size > 1 and lead != "spaced" and len(set(piece)) > 3 and (clusters := len(_CLUSTER.findall(piece))):
        more.append(("clusters", clusters))
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
        "accented": 2.267,
        "accented letters": 0.057,
        "arabic": 0.268,
        "bare 1": 1.250,
        "bare 2": 0.981,
        "bare 3": 1.047,
        "bare 4": 1.400,
        "bare 5": 1.215,
        "bare capitals 1": 1.834,
        "bare capitals 2": 2.561,
        "bare capitals 3": 1.489,
        "blanks": 0.707,
        "box": 0.382,
        "clusters": 0.338,
        "colours": 3.974,
        "cyrillic": 0.192,
        "digits": 1.099,
        "emoji": 1.538,
        "greek": 0.294,
        "han": 0.721,
        "hangul": 0.552,
        "hebrew": 0.292,
        "indic": 0.189,
        "kana": 0.860,
        "latin": 3.058,
        "letters": 0.625,
        "lines": 1.120,
        "long blanks": 0.000,
        "long lines": 0.764,
        "more capitals": 0.204,
        "more signs": 0.318,
        "once": 0.941,
        "random": 0.695,
        "rare": 0.295,
        "rule": 1.649,
        "rule signs": 0.046,
        "signed 1": 0.969,
        "signed 2": 1.351,
        "signed 3": 1.685,
        "signed 4": 1.923,
        "signed 5": 1.241,
        "signed capitals 1": 1.171,
        "signed capitals 2": 1.607,
        "signed capitals 3": 1.980,
        "signs 1": 1.078,
        "signs 2": 0.986,
        "signs 3": 1.266,
        "signs and line": 0.000,
        "spaced 1": 0.931,
        "spaced 2": 0.922,
        "spaced 3": 1.023,
        "spaced 4": 1.272,
        "spaced 5": 0.735,
        "spaced capitals 1": 1.130,
        "spaced capitals 2": 1.460,
        "spaced capitals 3": 0.000,
        "symbol": 1.266,
        "thai": 0.449,
        "typography": 0.328,
    },
    "cl100k_base": {
        "accented": 3.297,
        "accented letters": 0.099,
        "arabic": 0.755,
        "bare 1": 1.223,
        "bare 2": 0.998,
        "bare 3": 1.082,
        "bare 4": 1.396,
        "bare 5": 1.762,
        "bare capitals 1": 1.968,
        "bare capitals 2": 2.818,
        "bare capitals 3": 1.536,
        "blanks": 0.746,
        "box": 0.398,
        "clusters": 0.172,
        "colours": 2.978,
        "cyrillic": 0.443,
        "digits": 1.101,
        "emoji": 2.439,
        "greek": 0.930,
        "han": 1.111,
        "hangul": 0.942,
        "hebrew": 1.028,
        "indic": 1.125,
        "kana": 1.217,
        "latin": 3.419,
        "letters": 0.618,
        "lines": 1.074,
        "long blanks": 0.000,
        "long lines": 0.832,
        "more capitals": 0.000,
        "more signs": 0.327,
        "once": 1.003,
        "random": 0.728,
        "rare": 2.201,
        "rule": 1.375,
        "rule signs": 0.087,
        "signed 1": 1.036,
        "signed 2": 1.242,
        "signed 3": 1.594,
        "signed 4": 2.076,
        "signed 5": 1.346,
        "signed capitals 1": 1.043,
        "signed capitals 2": 1.526,
        "signed capitals 3": 1.952,
        "signs 1": 1.089,
        "signs 2": 0.947,
        "signs 3": 1.208,
        "signs and line": 0.006,
        "spaced 1": 0.952,
        "spaced 2": 0.933,
        "spaced 3": 1.055,
        "spaced 4": 1.304,
        "spaced 5": 0.287,
        "spaced capitals 1": 1.200,
        "spaced capitals 2": 1.403,
        "spaced capitals 3": 0.000,
        "symbol": 1.131,
        "thai": 0.890,
        "typography": 0.156,
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
