"""A session as pages for people, in Markdown or HTML: nothing in them runs, hides or moves a cursor (pure)."""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

from mycode.core.entries import Entry, Purge, Purged
from mycode.core.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from mycode.core.summaries import SummaryRecord
from mycode.core.visible import one_line, plain
from mycode.session.catalogue import SessionInfo
from mycode.session.entries import text_of

Redact = Callable[[str], str]

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:54rem;margin:2rem auto;padding:0 1rem;color:#1c2128;background:#fff}
pre{font:13px/1.45 ui-monospace,monospace;background:#f4f5f7;padding:.7rem;overflow-x:auto;white-space:pre-wrap}
h2{font-size:1rem;margin:1.8rem 0 .4rem}h2 small{color:#6a737d;font-weight:400}
.user{border-left:3px solid #3b7ddd;padding-left:.8rem;white-space:pre-wrap}.assistant{white-space:pre-wrap}
.summary{border:1px solid #d8b4fe;border-radius:6px;padding:.6rem .8rem;white-space:pre-wrap}
.error pre{background:#fff1f0}summary{cursor:pointer;color:#57606a}
@media(prefers-color-scheme:dark){body{color:#d8dee4;background:#16191d}pre{background:#20252b}
.error pre{background:#3a2323}}
"""


_WHO = {"user": "You", "assistant": "mycode", "tool": "Result"}


def markdown(info: SessionInfo, entries: Iterable[Entry], redact: Redact) -> Iterator[str]:
    """The conversation as Markdown; code and outputs stand in fences that nothing in them can close."""

    def safe(text: str) -> str:
        return plain(redact(text))

    yield f"# {one_line(redact(info.title), 200) or 'A session'}\n\n"
    yield f"Session {info.id}, {_time(info.created)}, {info.messages} messages"
    yield f", in `{one_line(redact(info.cwd), 500)}`\n" if info.cwd else "\n"
    summaries = 0
    for entry in entries:
        match entry.body:
            case UserMessage(text=text):
                yield f"\n## You\n\n{_mark(entry)}\n\n{_quoted(safe(text))}\n"
            case AssistantMessage(text=text, tool_calls=calls):
                yield f"\n## mycode\n\n{_mark(entry)}\n"
                yield f"\n{safe(text)}\n" if text.strip() else ""
                for call in calls:
                    yield f"\n`{_code(safe(call.name))}`\n\n{_fenced(safe(call.arguments))}"
            case ToolResult(text=text, is_error=failed):
                yield f"\n{'Failed' if failed else 'Result'} · {_mark(entry)}\n\n{_fenced(safe(text))}"
            case SummaryRecord() as record:
                summaries += 1
                title = f"Summary s{summaries} of m{record.covers[0]}-m{record.covers[1]}"
                yield f"\n**{title}** · {_mark(entry)}\n\n{_quoted(safe(text_of(record)))}\n"
            case Purged(text=text) if entry.message is not None:
                yield f"\n## {_WHO[entry.body.role]}\n\n{_mark(entry)}\n\n*{text}*\n"
            case Purge(text=text):
                yield f"\n*{safe(text)}* · {_mark(entry)}\n"
            case _:
                pass


def html(info: SessionInfo, entries: Iterable[Entry], redact: Redact) -> Iterator[str]:
    """The conversation as one HTML file without scripts, links or anything loaded from elsewhere."""
    from html import escape

    def safe(text: str) -> str:
        return escape(plain(redact(text)))

    title = escape(one_line(redact(info.title), 200) or "A session")
    yield (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f'<meta name="viewport" content="width=device-width"><title>{title}</title><style>{_STYLE}</style>'
        "</head><body>\n"
        f"<h1>{title}</h1>\n<p>Session {escape(info.id)}, {_time(info.created)}, {info.messages} messages"
        f"{', in ' + safe(info.cwd) if info.cwd else ''}</p>\n"
    )
    summaries = 0
    for entry in entries:
        match entry.body:
            case UserMessage(text=text):
                yield f'{_heading("You", entry)}<div class="user">{safe(text)}</div>\n'
            case AssistantMessage(text=text, tool_calls=calls):
                yield f'{_heading("mycode", entry)}<div class="assistant">{safe(text)}</div>\n'
                yield "".join(_call(call, safe) for call in calls)
            case ToolResult(text=text, is_error=failed):
                label = "failed" if failed else f"result, {text.count(chr(10)) + 1} lines"
                yield (
                    f'<details id="m{entry.seq}"{" class=error open" if failed else ""}><summary>{label}</summary>'
                    f"<pre>{safe(text)}</pre></details>\n"
                )
            case SummaryRecord() as record:
                summaries += 1
                name = f"Summary s{summaries} of m{record.covers[0]}-m{record.covers[1]}"
                yield f'{_heading(name, entry)}<div class="summary">{safe(text_of(record))}</div>\n'
            case Purged(text=text) if entry.message is not None:
                yield f"{_heading(_WHO[entry.body.role], entry)}<p><em>{text}</em></p>\n"
            case Purge(text=text):
                yield f"<p><em>{safe(text)}</em> <small>{_mark(entry)}</small></p>\n"
            case _:
                pass
    yield "</body></html>\n"


def _heading(who: str, entry: Entry) -> str:
    return f'<h2 id="m{entry.seq}">{who} <small>{_mark(entry)}</small></h2>\n'


def _call(call: ToolCall, safe: Callable[[str], str]) -> str:
    return f"<details><summary>{safe(call.name)}</summary><pre>{safe(call.arguments)}</pre></details>\n"


def _mark(entry: Entry) -> str:
    return f"m{entry.seq} · {_time(entry.at)}"


def _time(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"


def _fenced(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}\n"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines()) or ">"


def _code(name: str) -> str:
    return name.replace("`", "'").replace("\n", " ")
