"""Secrets in text, found by their shape, by the name they are given to, or by being known; then taken out (R114).

Used for everything that leaves the log: summaries, titles, exports, debug logs. Linear in the length of the text: each
shape is looked for by its literal beginning, and every pattern from there on is bounded.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cache

from msgspec import Struct

from mycode.core.patterns import pattern
from mycode.core.secret_shapes import form_patterns, shape_patterns, two_sided_patterns

KNOWN_LENGTH = 8
"""Known values shorter than this are not searched for: they would black out ordinary words."""


class Finding(Struct, frozen=True):
    """A secret: what it seems to be, and where it stands (`text[start:end]`)."""

    kind: str
    start: int
    end: int


def redact(text: str, *, known: Collection[str] = ()) -> str:
    """The text with every secret replaced by `[redacted:kind]`; doing it twice changes nothing more.

    `known` are values that are secret whatever they look like (keys from the environment, passwords from settings);
    those of fewer than eight characters are ignored.
    """
    found = findings(text, known=known)
    if not found:
        return text
    pieces: list[str] = []
    last = 0
    for finding in found:
        pieces += (text[last : finding.start], f"[redacted:{finding.kind}]")
        last = finding.end
    pieces.append(text[last:])
    return "".join(pieces)


def findings(text: str, *, known: Collection[str] = ()) -> tuple[Finding, ...]:
    """The secrets in the text, in order, none overlapping; of two claims the earlier, then longer one wins."""
    claims = [
        *_known(text, known),
        *_private_keys(text),
        *_other_private_keys(text),
        *_shapes(text),
        *_headers(text),
        *_url_passwords(text),
        *_other_forms(text),
        *_assignments(text),
    ]
    claims.sort(key=lambda claim: (claim.start, -claim.end))
    kept: list[Finding] = []
    for claim in claims:
        if kept and claim.start < kept[-1].end:
            if claim.end > kept[-1].end:
                kept[-1] = Finding(kept[-1].kind, kept[-1].start, claim.end)
            continue
        kept.append(claim)
    return tuple(kept)


def _known(text: str, known: Collection[str]) -> Iterator[Finding]:
    for value in sorted({value for value in known if len(value) >= KNOWN_LENGTH}, key=len, reverse=True):
        at = text.find(value)
        while at >= 0:
            yield Finding("known", at, at + len(value))
            at = text.find(value, at + len(value))


def _shapes(text: str) -> Iterator[Finding]:
    for kind, prefix, tail in shape_patterns():
        at = text.find(prefix)
        while at >= 0:
            after = at + len(prefix)
            if not at or not (text[at - 1].isalnum() or text[at - 1] in "_-"):
                found = tail.match(text, after)
                if found:
                    yield Finding(kind, at, found.end())
                    after = found.end()
            at = text.find(prefix, after)
    for kind, mark, before, shape in two_sided_patterns():
        at = text.find(mark)
        while at >= 0:
            start = at - before
            found = shape.match(text, max(start, 0))
            if found and start >= 0:
                yield Finding(kind, start, found.end())
            at = text.find(mark, at + len(mark))


_PEM_BEGIN = "-----BEGIN "
_PEM_END = "-----END "


def _private_keys(text: str) -> Iterator[Finding]:
    """Whole private keys from the BEGIN to the END line; where that was cut off, to the end of what looks like key."""
    at = text.find(_PEM_BEGIN)
    if at < 0:
        return
    header = pattern(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
    body = pattern(r"(?:\\[nr]|[\s\"'+,\\>|]|[A-Za-z0-9/=]|Proc-Type[^\n]{0,80}|[A-Z][A-Za-z-]{1,20}: [^\n]{0,80})*")
    end = 0
    while at >= 0:
        begin = header.match(text, at)
        after = at + len(_PEM_BEGIN)
        if begin:
            if 0 <= end < begin.end():
                end = text.find(_PEM_END, begin.end())
            following = text.find(_PEM_BEGIN, begin.end())
            if end >= 0 and (following < 0 or end < following):
                close = text.find("-----", end + len(_PEM_END), end + len(_PEM_END) + 64)
                stop = close + 5 if close >= 0 else end + len(_PEM_END)
            else:
                run = body.match(text, begin.end(), following if following >= 0 else len(text))
                stop = run.end() if run else begin.end()
                while stop > begin.end() and text[stop - 1].isspace():
                    stop -= 1
            if re.search(r"[A-Za-z0-9+/]{24}", text[begin.end() : min(stop, begin.end() + 4096)]):
                yield Finding("private-key", at, stop)
                after = stop
        at = text.find(_PEM_BEGIN, after)


def _other_private_keys(text: str) -> Iterator[Finding]:
    """Keys of PuTTY and in the form of RFC 4716, which is no PEM."""
    forms = (
        (
            "Private-Lines: ",
            pattern(r"Private-Lines: \d{1,4}\r?\n(?P<value>(?:[A-Za-z0-9+/=]{4,128}\r?(?:\n|\Z)){1,200})"),
        ),
        (
            "---- BEGIN SSH2 ",
            pattern(r"---- BEGIN SSH2 (?:[A-Z]{1,12} ){0,2}PRIVATE KEY ----(?P<value>[^-]{24,20000})"),
        ),
    )
    for mark, form in forms:
        if mark in text:
            for found in form.finditer(text):
                yield Finding("private-key", found.start("value"), found.end("value"))


def _headers(text: str) -> Iterator[Finding]:
    """Tokens that follow `Bearer`, `Basic` and `Token` in a header or a command line."""
    if not any(word in text for word in ("earer ", "EARER ", "asic ", "oken ")):
        return
    bearer = pattern(r"[Bb](?:earer|EARER) (?P<value>(?=[A-Za-z._~+/=-]{0,100}[0-9])[A-Za-z0-9._~+/-]{16,4096}={0,2})")
    basic = pattern(
        r"[Aa](?:uthorization|UTHORIZATION)[\"']?\s{0,2}[:=]\s{0,2}[\"']?"
        r"(?:[Bb]asic|[Tt]oken) (?P<value>[^\s\"']{8,4096})"
    )
    for found in (*bearer.finditer(text), *basic.finditer(text)):
        if not _is_placeholder(found["value"]):
            yield Finding("authorization", found.start("value"), found.end("value"))


def _url_passwords(text: str) -> Iterator[Finding]:
    at = text.find("://")
    if at < 0:
        return
    login = pattern(
        r"://(?:[^\s/:@\"'<>{}\[\]`]{0,128}:(?P<value>[^\s/@\"'<>`]{1,256})"
        r"|(?P<token>(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{20,128}))@"
    )
    while at >= 0:
        found = login.match(text, at)
        part = "token" if found and found["token"] else "value"
        if found and not _is_placeholder(found[part]) and (part == "value" or text.endswith(("http", "https"), 0, at)):
            yield Finding("url-password", found.start(part), found.end(part))
        at = text.find("://", at + 3)


def _other_forms(text: str) -> Iterator[Finding]:
    """Values without a sign of assignment before them: in pairs of name and value, tags, commands, Kubernetes."""
    for words, form in form_patterns():
        if not any(word in text for word in words):
            continue
        for found in form.finditer(text):
            value = found["value"]
            if not _is_placeholder(value) and not _BLANK.search(value) and not _LETTERS.fullmatch(value):
                yield Finding("password", found.start("value"), found.end("value"))
    at = text.find("kind: Secret")
    while at >= 0:
        begin = text.rfind("\n---", 0, at) + 1
        end = text.find("\n---", at)
        for block in pattern(r"^(?:data|stringData):[ ]*\n(?:[ \t]+[^\n]*(?:\n|\Z))+", re.MULTILINE).finditer(
            text, begin, end if end >= 0 else len(text)
        ):
            for found in pattern(r"^[ \t]+[\w.-]+: *[\"']?(?P<value>[^\s\"'|>][^\n\"']{3,})", re.MULTILINE).finditer(
                text, block.start(), block.end()
            ):
                if not _is_placeholder(found["value"]):
                    yield Finding("secret", found.start("value"), found.end("value"))
        at = text.find("kind: Secret", end) if end >= 0 else -1


# Words in a name that say its value is secret; those of the second row are common in code, so the value must be random.
_NAMES = (
    "passw", "passphrase", "pwd", "_pass", "dbpass", "psk", "secret", "api_key", "api-key", "apikey", "access_key",
    "access-key", "accesskey", "private_key", "private-key", "privatekey", "account_key", "accountkey",
    "encryption_key", "signing_key", "master_key", "token", "credential",
)  # fmt: skip
_WEAK_NAMES = ("key", "auth", "pass", "cred", "cookie", "session", "webhook", "dsn")
_PASSWORD_NAMES = ("passw", "passphrase", "pwd", "_pass", "dbpass", "psk")


def _assignments(text: str) -> Iterator[Finding]:
    """Values given to names that say they are secret, and values that look random whatever their name."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text.translate({code: code + 32 for code in range(ord("A"), ord("Z") + 1)})
    patterns = _assignment_patterns()
    for word in (*_NAMES, *_WEAK_NAMES):
        at = lowered.find(word)
        while at >= 0:
            after = at + len(word)
            found = patterns.value.match(text, after)
            if found:
                start, end = found.span("quoted") if found["quoted"] is not None else found.span("bare")
                if _is_secret(word, text[max(0, at - 48) : at], text[at : found.end("name")], found):
                    if text.startswith("&", end) and "?" not in text[max(0, at - 48) : at]:
                        rest = patterns.rest.match(text, end)  # no query of an address: the sign is part of it
                        end = rest.end() if rest else end
                    yield Finding("password" if word in _PASSWORD_NAMES else "secret", start, end)
            at = lowered.find(word, after)
    for found in patterns.random.finditer(text):
        name = text[max(0, found.start() - 48) : found.start()]
        if _is_random(found["value"], 4.3) and not patterns.harmless.search(name.rpartition("\n")[2]):
            yield Finding("high-entropy", found.start("value"), found.end("value"))


class _AssignmentPatterns(Struct, frozen=True):
    value: re.Pattern[str]
    random: re.Pattern[str]
    harmless: re.Pattern[str]
    rest: re.Pattern[str]


@cache
def _assignment_patterns() -> _AssignmentPatterns:
    """From the end of the word in the name to the end of the value; `--name value` counts as an assignment."""
    return _AssignmentPatterns(
        value=pattern(
            r"""(?P<name>(?:or?ds?|ds?|s)?(?:[_.-][A-Za-z0-9_.-]{0,32}|[A-Z0-9][A-Za-z0-9_]{0,32})?)"""
            r"""(?P<close>\\?["'])?\]?"""
            r"""(?P<sign>(?::\s?(?:&(?:'\w{1,12} )?)?[A-Za-z_][\w\[\]| .]{0,24})?"""
            r"""\s{0,8}(?:=>|:=|[:=](?!=))\s{0,8}|[ ])"""
            r"""(?P<open>[bru]?(?P<quote>\\?["'`]))?"""
            r"""(?:(?<=["'`])(?P<quoted>[^"'`\\\n]{4,512})(?=\\?["'`])"""
            r"""|(?<!["'`])(?P<bare>[^\s"'`,;(){}<>\[\]|&\\=]{4,200}={0,2})(?P<next>[(\[{]?))"""
        ),
        random=pattern(r"""[=:]\s{0,2}\\?["']?(?P<value>[A-Za-z0-9+/_-]{32,128}={0,2})(?![A-Za-z0-9+/_=.-])"""),
        rest=pattern(r"[^\s\"'`]{0,200}"),
        harmless=pattern(
            r"""hash|sha\d|sha\b|md5|digest|integrity|checksum|etag|commit|rev|finger|data|image|src|public|cert|nonce|"""
            r"""path|file|url|uri|import|char|alphabet|letters|digits|base64|name|id\b|Id\b|_id|resolved|\bh1$""",
            re.IGNORECASE,
        ),
    )


_OTHER_THINGS = pattern(
    r"(?i)(?:name|id|type|path|file|url|uri|ttl|expir\w*|length|len|count|limit|size|field|header|env|var|prefix|suffix|regex|pattern"
    r"|arn|ref|version|provider|class|hint|label|policy|manager|usage|index|store|error|message|title|placeholder|input"
    r"|format|algorithm|method|kind|scope|list|map)s?$"
)
_PLACEHOLDER = pattern(
    r"(?i)[$<{%(*.\[]|\\?\$|[x*.•-]+$|x{4}|your|my[-_]|an?[-_]|the[-_]|some|example|change|replace|insert|placeholder|dummy|fake|"
    r"test[-_]?|none$|null$|nil$|true$|false$|undefined$|env[.:]|os\.|process\.|self\.|this\.|config|settings\.|getenv|secrets\.|"
    r"(?:pass(?:word|wd|phrase|)?|pwd|pw|secret|token|key|api[-_]?key|user(?:name)?|string|str|value|credentials?)[-_]?\d{0,3}$"
)


# Values that are names of things in code: words, dotted names, names in snake case, paths, addresses, small numbers.
_CODE = pattern(
    r"[A-Za-z_]+|\d{1,7}|\w*(?:\.[A-Za-z_]\w*)+|[./~][\w./-]+|https?:.*|"
    r"_?[A-Za-z]+\d?[A-Za-z]*(?:[_-](?:\d?[A-Za-z]+\d{0,2}|[a-z]\d+[a-z]?|\d{1,2}))+"
)


def _is_secret(word: str, before: str, name: str, found: re.Match[str]) -> bool:
    quoted = found["quoted"] is not None
    value = found["quoted"] if quoted else found["bare"]
    shouted = name.isupper() and found["sign"] == "="
    digits = _DIGIT.search(value) is not None
    # The cheap questions first: most names that sound secret are given ordinary words.
    if not (digits or shouted or word in _PASSWORD_NAMES) or _is_placeholder(value) or value.startswith("redacted:"):
        return False
    if word in _PASSWORD_NAMES and not (shouted or digits or (quoted and not value.isalnum())):
        return False
    line = before.rpartition("\n")[2]
    if found["sign"] == " " and (found["close"] or not ("--" in line or (name.isupper() and _ENV.match(line)))):
        return False
    if word == "_pass" and name.lower() != word:  # passthrough, passed
        return False
    if (name.lower() != word and _OTHER_THINGS.search(name)) or _BLANK.search(value):
        return False
    if word in _WEAK_NAMES:
        return not _PUBLIC.search(line) and _is_random(value, 3.5)
    if shouted and not found["next"] and _OWN_LINE.fullmatch(line) and not found.string.startswith(",", found.end()):
        return not value.isdigit() or word in _PASSWORD_NAMES
    if found["next"] or _CODE.fullmatch(value):
        return False
    mixed = digits and _LETTER.search(value) is not None
    if word in _PASSWORD_NAMES:
        return len(value) >= 6 and (mixed or quoted)
    if word == "token" or not quoted:
        return mixed and len(value) >= 12 and _entropy(value) >= 2.9
    return mixed and len(value) >= 8


_DIGIT = pattern(r"[0-9]")
_LETTER = pattern(r"[A-Za-z]")
_BLANK = pattern(r"\s")
_LETTERS = pattern(r"[A-Za-z_]+")
_ENV = pattern(r"\s*ENV [A-Z0-9_]*$")
_PUBLIC = pattern(r"(?i)(?:public|foreign|primary|sort|cache)[_.-]?$")
_OWN_LINE = pattern(r"\s*(?:(?:export|set|ENV|-|#|\+)\s*)?[A-Z0-9_]*")


def _is_placeholder(value: str) -> bool:
    return _PLACEHOLDER.match(value) is not None or len(set(value)) < 3


def _is_random(value: str, bits: float) -> bool:
    """Whether it could come from a generator: long, letters and digits well mixed, not an identifier nor a UUID."""
    if len(value) < 20 or re.fullmatch(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", value):
        return False
    digits = sum(char.isdigit() for char in value)
    if digits < 3 or not any(char.isalpha() for char in value):
        return False
    if re.fullmatch(r"[0-9a-f]+|[0-9A-F]+", value):
        return bits < 4 and len(value) >= 32 and _entropy(value) >= 3
    if not (any(char.islower() for char in value) and any(char.isupper() for char in value)):
        return False
    return re.fullmatch(r"[A-Za-z0-9+/_=.~-]+", value) is not None and _entropy(value) >= bits


def _entropy(value: str) -> float:
    """Bits per character, by how often each occurs."""
    total = len(value)
    return -sum(count / total * math.log2(count / total) for count in Counter(value).values())
