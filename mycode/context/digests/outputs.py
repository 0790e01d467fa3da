"""What a tool's output tells, whatever agent wrapped it: its text, its exit code, its first error, whether it ran."""

from __future__ import annotations

import re

import msgspec


def plain_output(text: str) -> str:
    """A result without the wrapping that agents put around it: return codes, labels, output tags, line numbers."""
    text = _unpacked(text)[0]
    text = _WRAPPING.sub("", text)
    text = _HEAD.sub("", text, count=1)
    text = _FOOT.sub("", text, count=1)
    numbered = _NUMBERED.findall(text[:2000])
    if len(numbered) >= 2 or (numbered and text.count("\n") < 2):
        text = _NUMBERED.sub("", text)
    return text.strip("\n")


def exit_code(text: str) -> int | None:
    """The exit code that a command's output names, by any agent's way of saying it.

    A line that says nothing else counts most, at the end before the beginning: what ran may print codes of its own.
    """
    text, code = _unpacked(text)
    if code is not None:
        return code
    head, tail = text[:400], text[-400:]
    for pattern in (_CODE_LINE, _CODE_WORDS):
        told = pattern.findall(tail)[-1:] or pattern.findall(head)[:1]
        if told:
            return int(told[0])
    return None


def first_error(text: str) -> str:
    """The first line that tells of an error, stripped; empty when none does.

    Of a traceback it is the line that names the exception, of a bare label (`Error:`) the label with the line below.
    """
    if not _ERROR_WORDS.search(text):
        return ""
    rows = text.split("\n")
    place = 0
    while place < len(rows):
        row = rows[place]
        if _TRACEBACK.match(row):
            place, raised = _raised(rows, place)
            if raised:
                return raised
        elif _ERROR_WORDS.search(row) and not _NO_ERRORS.search(row) and not _CODE_LINE.search(row):
            below = next((r.strip() for r in rows[place + 1 :] if r.strip()), "") if _BARE.fullmatch(row) else ""
            return f"{row.strip()} {below}".strip()
        place += 1
    return ""


def complaint(text: str) -> str:
    """The first line in which a program that only looks says itself that it could not: `cat: x: No such file`."""
    found = _COMPLAINT.search(text)
    return found.group().strip() if found else ""


def refusal(text: str) -> str:
    """What a tool says first of all when it did not do what it was asked for, though nothing marks it as an error."""
    if len(text) > _ANSWER:
        return ""
    found = _REFUSED.match(text)
    return text.strip().split("\n", 1)[0] if found else ""


def never_ran(text: str) -> bool:
    """Whether a failed call was never carried out: no such tool, arguments of no use, refused by a person or a rule."""
    return _NEVER_RAN.match(text) is not None


def _unpacked(text: str) -> tuple[str, int | None]:
    """The output inside a JSON envelope (`{"output": ..., "metadata": {"exit_code": 0}}`) and the code beside it."""
    if not _ENVELOPE.match(text):
        return text, None
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return text, None
    if not isinstance(value, dict):
        return text, None
    beside = value.get("metadata")
    codes = {**value, **beside} if isinstance(beside, dict) else value
    code = next((c for key in _CODE_KEYS if isinstance(c := codes.get(key), int) and not isinstance(c, bool)), None)
    parts = [part for key in ("output", "stdout", "stderr") if isinstance(part := value.get(key), str)]
    return ("\n".join(part for part in parts if part), code) if parts else (text, code)


def _raised(rows: list[str], start: int) -> tuple[int, str]:
    """The last line of a traceback and what it raised in the end: empty if the text is cut off before that."""
    margin = len(rows[start]) - len(rows[start].lstrip(" |+-"))
    place, raised = start, ""
    for place in range(start + 1, len(rows)):
        row = rows[place]
        row = row[margin:] if not row[:margin].strip(" |+-") else row.lstrip()
        if _CHAINED.match(row):
            raised = ""
        elif raised and row.strip() and not _TRACEBACK.match(row):
            return place - 1, raised
        elif not raised and _EXCEPTION.fullmatch(row):
            raised = row.strip()
    return place, raised


_ANSWER = 2000
_CODE_KEYS = ("exit_code", "exitCode", "returncode", "return_code", "code")
_ENVELOPE = re.compile(r"\s*\{\s*\"(?:output|stdout|stderr|metadata|exit_code|exitCode|returncode)\"\s*:")
_WRAPPING = re.compile(
    r"</?(?:output|returncode|stdout|stderr|system-reminder|tool_use_error)>(?:-?\d+</returncode>\n?)?\n?"
)
_HEAD = re.compile(
    r"\A(?:(?:Exit code: -?\d+|Chunk ID: \S+|Wall time: [\d.]+ \w+|Process exited with code -?\d+"
    r"|Process running with session ID \d+|Original token count: \d+|Total output lines: \d+)\n)+Output:(?:\n|\Z)"
    r"|\AHere's the result of running `cat -n` on [^\n]*:\n"
)
_FOOT = re.compile(
    r"(?:\n\[(?:The command (?:completed|finished)|Command finished|Current working directory:|Python interpreter:"
    r"|Jupyter current working directory:)[^\n]*\])+\s*\Z"
)
_NUMBERED = re.compile(r"^ *\d+(?:\t|→| \| ?)", re.MULTILINE)
_CODE_LINE = re.compile(
    r"^[ \t\[(<*]*(?:error: )?(?:(?:the )?(?:command|process|shell|script|program)\b[ \w]{0,20}?)?"
    r"(?:exit(?:ed)?(?: with)?[ _-]?(?:code|status)|return[ _-]?code|exit(?=[:=]))(?: of)?[ \t:=>]{1,3}(-?\d{1,3})"
    r"(?:</returncode>)?[ \t\])>.*]*$",
    re.MULTILINE | re.IGNORECASE,
)
_CODE_WORDS = re.compile(
    r"(?:\bexit(?:ed)?(?: with)? (?:code|status)|\bexited with|\breturn ?code|<returncode>)\W{0,3}(-?\d{1,3})\b",
    re.IGNORECASE,
)
_ERROR_WORDS = re.compile(
    r"error|failed|exception|traceback|fatal:|panic:|command not found|no such file", re.IGNORECASE
)
_NO_ERRORS = re.compile(
    r"\b(?:0|no) (?:errors?|failed|failures?)\b|\b(?:errors?|failed|failures?)[:=] ?(?:0\b|\(?(?:none|null|empty)\b)",
    re.IGNORECASE,
)
_TRACEBACK = re.compile(r"[\s|+-]*(?:Exception Group )?Traceback \(most recent call last\)")
_CHAINED = re.compile(r"During handling of the above exception|The above exception was the direct cause")
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?::.*)?\s*")
_BARE = re.compile(r"\W*(?:[Ee]rrors?|ERRORS?|[Ff]ailed|FAILED|[Ff]ailures?|FAILURES?|[Ee]xception|[Tt]raceback)\W*")
_COMPLAINT = re.compile(
    r"^(?:[\w./-]{1,40}: .{0,300}(?:No such file|not found|[Pp]ermission denied|[Ii]s a directory|[Nn]ot a directory"
    r"|[Ii]nvalid|[Uu]nrecognized|[Uu]nknown option|[Cc]annot|cannot)|fatal: |error: ).*$",
    re.MULTILINE,
)
_REFUSED = re.compile(
    r"\s*(?:<tool_use_error>|\[?error\b\]?[: ]|failed to |(?:tool |function |call |edit |write |patch )?failed[:.]"
    r"|no replacement was performed|search content not found|(?:the )?(?:file|path|directory) .{0,300}"
    r"(?:does not exist|not found|is a directory)|(?:file|path|directory|string|old_str\w*|old_string|text) "
    r"(?:was )?(?:does not exist|not found)|invalid |permission denied|patch (?:does not apply|failed)"
    r"|(?:could not|cannot|can't|unable to) )",
    re.IGNORECASE,
)
_NEVER_RAN = re.compile(
    r"\s*(?:<tool_use_error>\s*)?(?:error: )?(?:Not run: |There is no tool named |Not permitted: "
    r"|The person refused this call|The user doesn't want to (?:proceed with this tool use|take this action)"
    r"|No such tool available|InputValidationError|unsupported call|exec(?: command)? rejected by user"
    r"|rejected by user|failed to parse function arguments|\[Request interrupted by user for tool use\])",
    re.IGNORECASE,
)
