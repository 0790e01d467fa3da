"""What the model can look up again: words in the whole conversation, and the original behind a handle."""

from datetime import UTC, datetime
from typing import Annotated

from msgspec import Meta, Struct

from mycode.core.errors import SessionError, ToolError
from mycode.core.tools import Action, Recall, Report, TextDisplay, ToolOutput

_MOST = 10


class HistorySearchArgs(Struct, frozen=True, forbid_unknown_fields=True):
    query: Annotated[str, Meta(description='Words; "in quotes" they stand together')]


class HistorySearch:
    """Finds words in everything that was said, folded or not."""

    name = "history_search"
    description = "Find words in the whole conversation, also what was summarized away. Gives handles."
    Args = HistorySearchArgs

    def __init__(self, recall: Recall) -> None:
        self._recall = recall

    def plan(self, args: HistorySearchArgs) -> Action:
        return Action(self.name, "none", f"{self.name} {args.query}")

    async def run(self, args: HistorySearchArgs, report: Report) -> ToolOutput:  # noqa: ARG002 - done in a moment
        found = self._recall.search(args.query, _MOST)
        if not found:
            line = f"Nothing in the conversation holds {args.query!r}. Try fewer or other words."
            return ToolOutput(line, TextDisplay(line))
        lines = [f"{place.handle} {place.role} {_time(place.at)}: {place.text}" for place in found]
        noun = "place" if len(found) == 1 else "places"
        return ToolOutput("\n".join(lines), TextDisplay(f"{args.query} · {len(found)} {noun}", "\n".join(lines)))


class HistoryExpandArgs(Struct, frozen=True, forbid_unknown_fields=True):
    handle: str
    start_line: int | None = None
    end_line: int | None = None


class HistoryExpand:
    """Shows an original again."""

    name = "history_expand"
    description = "Show the original behind a handle (m12, m12-m30, s3 or t7), or some lines of it."
    Args = HistoryExpandArgs

    def __init__(self, recall: Recall) -> None:
        self._recall = recall

    def plan(self, args: HistoryExpandArgs) -> Action:
        return Action(self.name, "none", f"{self.name} {args.handle}")

    async def run(self, args: HistoryExpandArgs, report: Report) -> ToolOutput:  # noqa: ARG002 - done in a moment
        try:
            text = self._recall.expand(args.handle)
        except SessionError as error:
            raise ToolError(str(error)) from error
        lines = text.splitlines(keepends=True)
        if args.start_line is None and args.end_line is None:
            return ToolOutput(text, TextDisplay(f"{args.handle} · {len(lines)} lines"))
        first, last = max(1, args.start_line or 1), min(len(lines), args.end_line or len(lines))
        if first > last:
            message = (
                f"{args.handle} has {len(lines)} lines, so there are none from {first} to {args.end_line or last}."
            )
            raise ToolError(message)
        shown = f"lines {first}-{last} of {len(lines)}"
        return ToolOutput("".join(lines[first - 1 : last]), TextDisplay(f"{args.handle} · {shown}"))


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
