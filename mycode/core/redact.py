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
        *_shapes(text),
        *_headers(text),
        *_url_passwords(text),
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


# What vendors put in front of their keys, and what follows. A key stands alone: no letter, digit or dash before it.
_SHAPES = (
    ("anthropic-key", ("sk-ant-",), r"[A-Za-z0-9_-]{10,200}"),
    ("openrouter-key", ("sk-or-v1-",), r"[A-Za-z0-9]{20,100}"),
    ("openai-key", ("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-"), r"[A-Za-z0-9_-]{20,250}"),
    ("api-key", ("sk-",), r"(?=[A-Za-z]{0,60}[0-9])[A-Za-z0-9]{20,100}"),
    ("langsmith-key", ("lsv2_pt_", "lsv2_sk_"), r"[A-Za-z0-9_]{20,100}"),
    ("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"[A-Za-z0-9]{30,255}"),
    ("github-token", ("github_pat_",), r"[A-Za-z0-9_]{22,255}"),
    ("gitlab-token", ("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glsoat-"), r"[A-Za-z0-9_-]{20,64}"),
    (
        "aws-access-key",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        r"[A-Z2-7]{16}(?![A-Za-z0-9])",
    ),
    ("google-key", ("AIza",), r"[A-Za-z0-9_-]{35}(?![A-Za-z0-9])"),
    ("google-oauth", ("ya29.",), r"[A-Za-z0-9_-]{20,500}"),
    ("google-oauth", ("GOCSPX-",), r"[A-Za-z0-9_-]{28}"),
    (
        "slack-token",
        ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xapp-", "xoxe.xox"),
        r"[A-Za-z0-9.-]{10,200}",
    ),
    ("slack-webhook", ("hooks.slack.com/services/", "hooks.slack.com/workflows/"), r"[A-Za-z0-9/]{20,100}"),
    (
        "discord-webhook",
        ("discord.com/api/webhooks/", "discordapp.com/api/webhooks/"),
        r"\d{10,20}/[A-Za-z0-9_-]{40,100}",
    ),
    ("stripe-key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"), r"[A-Za-z0-9]{16,200}"),
    ("npm-token", ("npm_",), r"[A-Za-z0-9]{36}"),
    ("pypi-token", ("pypi-AgE",), r"[A-Za-z0-9_-]{40,300}"),
    ("huggingface-token", ("hf_", "api_org_"), r"[A-Za-z0-9]{30,50}(?![A-Za-z0-9_])"),
    ("sendgrid-key", ("SG.",), r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,60}"),
    ("twilio-key", ("SK", "AC"), r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("mailgun-key", ("key-",), r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("digitalocean-token", ("dop_v1_", "doo_v1_", "dor_v1_"), r"[a-f0-9]{64}"),
    ("shopify-token", ("shpat_", "shpca_", "shppa_", "shpss_"), r"[a-fA-F0-9]{32}"),
    ("square-token", ("sq0atp-", "sq0csp-", "EAAAE"), r"[A-Za-z0-9_-]{22,80}"),
    ("databricks-token", ("dapi",), r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("linear-key", ("lin_api_", "lin_oauth_"), r"[A-Za-z0-9]{32,80}"),
    ("notion-token", ("ntn_", "secret_"), r"(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{40,60}"),
    ("vault-token", ("hvs.", "hvb.", "hvr."), r"[A-Za-z0-9_-]{20,300}"),
    ("docker-token", ("dckr_pat_", "dckr_oat_"), r"[A-Za-z0-9_-]{20,60}"),
    ("groq-key", ("gsk_",), r"[A-Za-z0-9]{32,80}"),
    ("xai-key", ("xai-",), r"[A-Za-z0-9]{40,120}"),
    ("perplexity-key", ("pplx-",), r"[A-Za-z0-9]{32,80}"),
    ("replicate-token", ("r8_",), r"[A-Za-z0-9]{32,60}"),
    ("fireworks-key", ("fw_",), r"(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{20,40}(?![A-Za-z0-9_])"),
    ("tavily-key", ("tvly-",), r"[A-Za-z0-9_-]{20,80}"),
    ("postman-key", ("PMAK-",), r"[a-f0-9]{24}-[a-f0-9]{34}"),
    ("newrelic-key", ("NRAK-", "NRII-", "NRJS-"), r"[A-Za-z0-9-]{19,40}"),
    ("sentry-token", ("sntrys_", "sntryu_"), r"[A-Za-z0-9+/=_-]{30,300}"),
    ("grafana-token", ("glsa_", "glc_"), r"[A-Za-z0-9+/=_]{32,400}"),
    ("figma-token", ("figd_",), r"[A-Za-z0-9_-]{30,80}"),
    ("doppler-token", ("dp.pt.", "dp.st.", "dp.sa."), r"[A-Za-z0-9._-]{30,80}"),
    ("planetscale-token", ("pscale_tkn_", "pscale_pw_", "pscale_oauth_"), r"[A-Za-z0-9_.=-]{30,80}"),
    ("supabase-key", ("sbp_", "sb_secret_"), r"[A-Za-z0-9_-]{20,60}"),
    ("fly-token", ("fm2_", "fo1_"), r"[A-Za-z0-9+/=_-]{30,1000}"),
    ("pulumi-token", ("pul-",), r"[a-f0-9]{40}"),
    ("cloudflare-key", ("v1.0-",), r"[a-f0-9]{24}-[a-f0-9]{100,160}"),
    ("age-key", ("AGE-SECRET-KEY-1",), r"[A-Z0-9]{50,70}"),
    ("alibaba-key", ("LTAI",), r"[A-Za-z0-9]{16,24}(?![A-Za-z0-9])"),
    ("artifactory-token", ("AKCp",), r"[A-Za-z0-9]{60,80}"),
    ("jwt", ("eyJ",), r"[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,16000}\.[A-Za-z0-9_-]{16,2000}"),
    ("azure-key", ("AccountKey=", "SharedAccessKey="), r"[A-Za-z0-9+/]{30,100}={0,2}"),
)


def _known(text: str, known: Collection[str]) -> Iterator[Finding]:
    for value in sorted({value for value in known if len(value) >= KNOWN_LENGTH}, key=len, reverse=True):
        at = text.find(value)
        while at >= 0:
            yield Finding("known", at, at + len(value))
            at = text.find(value, at + len(value))


def _shapes(text: str) -> Iterator[Finding]:
    for kind, prefix, tail in _shape_patterns():
        at = text.find(prefix)
        while at >= 0:
            after = at + len(prefix)
            if not at or not (text[at - 1].isalnum() or text[at - 1] in "_-"):
                found = tail.match(text, after)
                if found:
                    yield Finding(kind, at, found.end())
                    after = found.end()
            at = text.find(prefix, after)
    for kind, mark, before, shape in _two_sided_patterns():
        at = text.find(mark)
        while at >= 0:
            start = at - before
            found = shape.match(text, max(start, 0))
            if found and start >= 0:
                yield Finding(kind, start, found.end())
            at = text.find(mark, at + len(mark))


@cache
def _shape_patterns() -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    return tuple((kind, prefix, pattern(tail)) for kind, prefixes, tail in _SHAPES for prefix in prefixes)


@cache
def _two_sided_patterns() -> tuple[tuple[str, str, int, re.Pattern[str]], ...]:
    """Keys whose only fixed letters stand in the middle: the mark, how far before it the key begins, the shape."""
    return (
        ("mailchimp-key", "-us", 32, pattern(r"[0-9a-f]{32}-us\d{1,2}(?!\w)")),
        ("telegram-token", ":AA", 10, pattern(r"\d{10}:AA[A-Za-z0-9_-]{33}(?!\w)")),
        ("telegram-token", ":AA", 9, pattern(r"\d{9}:AA[A-Za-z0-9_-]{33}(?!\w)")),
    )


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


def _headers(text: str) -> Iterator[Finding]:
    """Tokens that follow `Bearer`, `Basic` and `Token` in a header or a command line."""
    if "earer " not in text and "EARER " not in text and "asic " not in text and "Token " not in text:
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
    login = pattern(r"://[^\s/:@\"'<>{}\[\]`]{0,128}:(?P<value>[^\s/@\"'<>`]{1,256})@")
    while at >= 0:
        found = login.match(text, at)
        if found and not _is_placeholder(found["value"]):
            yield Finding("url-password", found.start("value"), found.end("value"))
        at = text.find("://", at + 3)


# Words in a name that say its value is secret; those of the second row are common in code, so the value must be random.
_NAMES = (
    "passw", "passphrase", "pwd", "secret", "api_key", "api-key", "apikey", "access_key", "access-key", "accesskey",
    "private_key", "private-key", "privatekey", "account_key", "accountkey", "encryption_key", "signing_key",
    "master_key", "token", "credential",
)  # fmt: skip
_WEAK_NAMES = ("key", "auth", "pass", "cred", "cookie", "session", "webhook", "dsn")
_PASSWORD_NAMES = ("passw", "passphrase", "pwd")


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


@cache
def _assignment_patterns() -> _AssignmentPatterns:
    """From the end of the word in the name to the end of the value; `--name value` counts as an assignment."""
    return _AssignmentPatterns(
        value=pattern(
            r"""(?P<name>(?:or?ds?|s)?(?:[_.-][A-Za-z0-9_.-]{0,32}|[A-Z0-9][A-Za-z0-9_]{0,32})?)"""
            r"""(?P<close>\\?["'])?\]?"""
            r"""(?P<sign>(?::\s?[A-Za-z_][\w\[\]| .]{0,24})?\s{0,8}(?:=>|:=|[:=](?!=))\s{0,8}|[ ])"""
            r"""(?P<open>[bru]?(?P<quote>\\?["']))?"""
            r"""(?:(?<=["'])(?P<quoted>[^"'\\\n]{4,512})(?=\\?["'])"""
            r"""|(?<!["'])(?P<bare>[^\s"'`,;(){}<>\[\]|&\\=]{4,200}={0,2})(?P<next>[(\[{]?))"""
        ),
        random=pattern(r"""[=:]\s{0,2}\\?["']?(?P<value>[A-Za-z0-9+/_-]{32,128}={0,2})(?![A-Za-z0-9+/_=.-])"""),
        harmless=pattern(
            r"""hash|sha\d|sha\b|md5|digest|integrity|checksum|etag|commit|rev|finger|data|image|src|public|cert|nonce|"""
            r"""path|file|url|uri|import|char|alphabet|letters|digits|base64|name|id\b|Id\b|_id|resolved""",
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
    if found["sign"] == " " and ("--" not in line or found["close"]):
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
