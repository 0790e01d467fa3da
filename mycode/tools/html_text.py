"""Turns a web page into text that can be read: headings, lists, links and code stay, the rest of the markup goes."""

from __future__ import annotations

import html
import re
from collections import Counter
from urllib.parse import urljoin

from mycode.core.patterns import pattern

_UNSEEN = frozenset({"noscript", "template", "svg", "head", "iframe", "object", "select", "button"})
_RAW = frozenset({"script", "style", "textarea", "title", "xmp"})  # no tags in them but their own end
_PARAGRAPHS = frozenset({"p", "pre", "table", "ul", "ol", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6"})
_BLOCKS = _PARAGRAPHS | {
    *("div", "section", "article", "header", "footer", "nav", "aside", "main", "tr", "form", "figure"),
    *("dl", "dt", "dd", "hr", "br", "li"),
}
_TAG = pattern(r"</?([a-zA-Z][a-zA-Z0-9]*)")
_LINK = pattern(r"\shref\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)


def html_to_text(page: str, base: str) -> str:
    """The text of a page; addresses of links are made whole by `base`. Never fails; its time grows as the page does."""
    reader = _Reader(base)
    at = 0
    while at < len(page):
        start = page.find("<", at)
        reader.take(page[at : start if start >= 0 else len(page)])
        if start < 0:
            break
        tag = _TAG.match(page, start)
        if tag is None and page[start + 1 : start + 2] not in {"!", "?", "/"}:
            reader.take("<")
            at = start + 1
            continue
        closing = "-->" if page.startswith("<!--", start) else ">"
        end = page.find(closing, start)
        if end < 0:
            break
        at = end + len(closing)
        if tag is not None:
            name = tag[1].lower()
            opens = page[start + 1] != "/"
            reader.tag(name, page[tag.end() : end], opens=opens)
            if opens and name in _RAW:
                stop = re.compile(f"</{name}", re.IGNORECASE).search(page, at)
                if name == "title":
                    reader.title(page[at : stop.start() if stop else at])
                at = stop.start() if stop else len(page)
    return reader.text()


class _Reader:
    """Gathers the text of a page as its tags go by."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._out: list[str] = []
        self._unseen: list[str] = []  # open elements of which nothing is shown, outermost first
        self._open_unseen = Counter[str]()
        self._title = ""
        self._pre = 0
        self._links: list[str] = []

    def take(self, data: str) -> None:
        if data and not self._unseen:
            data = _unescaped(data)
            self._out.append(data if self._pre else re.sub(r"\s+", " ", data))

    def title(self, data: str) -> None:
        self._title = self._title or " ".join(_unescaped(data).split())

    def tag(self, name: str, attributes: str, *, opens: bool) -> None:
        if name == "body":
            self._unseen.clear()  # a head that nobody closed
            self._open_unseen.clear()
        if opens and name in _UNSEEN and not attributes.endswith("/"):
            self._unseen.append(name)
            self._open_unseen[name] += 1
        elif not opens and self._open_unseen[name]:
            while self._open_unseen[name]:  # what was opened inside it ends with it
                self._open_unseen[self._unseen.pop()] -= 1
        elif not self._unseen:
            self._open(name, attributes) if opens else self._close(name)

    def text(self) -> str:
        lines = (line.rstrip() for line in "".join(self._out).split("\n"))
        body = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
        return f"{self._title}\n\n{body}".strip()

    def _open(self, name: str, attributes: str) -> None:
        self._out.append("\n" * ((name in _BLOCKS) + (name in _PARAGRAPHS)))
        if name[0] == "h" and name[1:].isdigit():
            self._out.append("#" * min(int(name[1:]), 6) + " ")
        elif name == "li":
            self._out.append("- ")
        elif name in {"td", "th"}:
            self._out.append(" | ")
        elif name == "pre":
            self._pre += 1
            self._out.append("```\n")
        elif name == "code" and not self._pre:
            self._out.append("`")
        elif name == "a":
            found = _LINK.search(attributes)
            self._links.append(_whole(self._base, _unescaped(next(filter(None, found.groups()), ""))) if found else "")
            self._out.append("[" if self._links[-1] else "")

    def _close(self, name: str) -> None:
        if name == "pre" and self._pre:
            self._pre -= 1
            self._out.append("\n```")
        elif name == "code" and not self._pre:
            self._out.append("`")
        elif name == "a" and self._links:
            address = self._links.pop()
            self._out.append(f"]({address})" if address else "")
        self._out.append("\n" * ((name in _BLOCKS) + (name in _PARAGRAPHS)))


def _unescaped(text: str) -> str:
    """The text without character references; numbers too long to be a letter stay as they are."""
    try:
        return html.unescape(text)
    except ValueError:
        return html.unescape(re.sub(r"&(?=#\d{10})", "&amp;", text))


def _whole(base: str, link: str) -> str:
    """The address of a link to another page; nothing for links within the page and those that are no addresses."""
    try:
        whole = urljoin(base, link.strip()) if link and not link.startswith("#") else ""
    except ValueError:
        return ""
    return whole if whole.startswith(("http://", "https://")) else ""
