"""A fold over events into what is on the screen: lines that are settled, and the few that still change.

`fold` gives back what is settled (for the scrollback, once each); `live` is what is to be drawn below it now. No clock:
whoever draws asks for the elapsed time itself.
"""

from __future__ import annotations

from typing import Literal

from rich.console import Group, RenderableType
from rich.text import Text

from mycode.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    ContextChanged,
    ContextMasked,
    Event,
    MessageAdded,
    QuestionAsked,
    ReasoningDelta,
    Retrying,
    SummaryFinished,
    SummaryStarted,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    Warned,
)
from mycode.core.messages import AssistantMessage, UserMessage
from mycode.core.summaries import SummaryRecord
from mycode.core.tools import TodoDisplay, TodoItem
from mycode.core.visible import one_line, plain
from mycode.render import transcript
from mycode.render.blocks import Block, MarkdownStream
from mycode.render.panels.summary import summary_panel
from mycode.render.screen import Canvas
from mycode.render.theme import code_theme

Notify = Literal["off", "line", "panel"]
"""How an automatic summary is told."""

_PROGRESS_LINES = 4
_PROGRESS_KEPT = 4000
_THOUGHT_KEPT = 1000


class Live:
    """The state of the screen during a conversation. `label` says what is being waited for (empty: nothing).

    `typed`, where it is set, is shown instead of the next user message: the part of it that the person typed.
    """

    def __init__(self, canvas: Canvas, notify: Notify = "line") -> None:
        self.canvas = canvas
        self._notify = notify
        self.label = ""
        self.typed: str | None = None
        self.last_tool: tuple[ToolFinished, str] | None = None
        self.todo: tuple[TodoItem, ...] = ()
        self._stream = MarkdownStream()
        self._said: list[str] = []
        self._thought = ""
        self._running: dict[str, tuple[str, str]] = {}
        self._spoken = False

    def fold(self, event: Event) -> list[RenderableType]:
        """What this event settles, top to bottom."""
        flat = self.canvas.plain
        match event:
            case TurnStarted():
                self.label = "Thinking"
            case TextDelta(text=text):
                self.label = "Writing"
                return self._answer(self._feed(text))
            case ReasoningDelta(text=text):
                self.label = "Thinking"
                self._thought = (self._thought + text)[-_THOUGHT_KEPT:]
            case MessageAdded(entry=entry):
                if isinstance(entry.body, UserMessage):
                    text, self.typed = entry.body.text if self.typed is None else self.typed, None
                    return [Text(), transcript.user(text, plain_text=flat)]
                if isinstance(entry.body, AssistantMessage):
                    return self._message(entry.body)
            case ToolStarted(call=call, title=title):
                self._running[call.id] = (title or call.name, "")
                self.label = self._at_work()
            case ToolProgress(call_id=call_id, text=text):
                if call_id in self._running:
                    title, seen = self._running[call_id]
                    self._running[call_id] = (title, (seen + text)[-_PROGRESS_KEPT:])
            case ToolFinished():
                title, _ = self._running.pop(event.call.id, (event.call.name, ""))
                self.last_tool = (event, title)
                if isinstance(event.display, TodoDisplay):
                    self.todo = event.display.items
                self.label = self._at_work()
                return [*self._cut(), Text(), transcript.tool(event, title, plain_text=flat)]
            case ApprovalAsked() | QuestionAsked():
                self.label = "Waiting for you"
                return self._cut()
            case ApprovalGiven():
                self.label = self._at_work()
            case ContextMasked():
                return [transcript.masked(event, plain_text=flat)]
            case SummaryStarted():
                self.label = "Summarizing"
                if self._notify == "off" and event.trigger.reason != "manual":
                    return self._cut()
                return [*self._cut(), transcript.summary_started(event, plain_text=flat)]
            case SummaryFinished(entry=entry):
                self.label = "Thinking"
                record = entry.body
                if not isinstance(record, SummaryRecord) or record.trigger == "manual" or self._notify == "off":
                    # Whoever asked for it is shown the whole panel by the command.
                    return []
                if self._notify == "panel":
                    return [summary_panel(record, plain_text=flat)]
                return [transcript.summary_finished(event, plain_text=flat)]
            case ContextChanged(text=text):
                return [transcript.notice(text, plain_text=flat)]
            case Retrying():
                self.label = f"Waiting to try again ({event.attempt} of {event.attempts})"
                lines = self._cut()
                if event.discard:
                    self._said.clear()
                return [*lines, transcript.retrying(event, plain_text=flat)]
            case Warned(text=text):
                if self.label == "Summarizing":
                    self.label = "Thinking"  # what is told while one is written is how it ends without one
                return [transcript.warning(text, plain_text=flat)]
            case TurnEnded():
                lines = self.stop()
                ending = transcript.turn_ended(event, plain_text=flat)
                return [*lines, ending] if ending is not None else lines
        return []

    def stop(self) -> list[RenderableType]:
        """Settles what was open, e.g. after an interruption; nothing is waited for any more."""
        lines = self._cut()
        for title, _ in self._running.values():
            what = f"{one_line(title, transcript.TITLE_WIDTH)}: interrupted, may have had effects"
            lines.append(transcript.warning(what, plain_text=self.canvas.plain))
        self._running.clear()
        self._said.clear()
        self.label = ""
        return lines

    def live(self) -> RenderableType | None:
        """What still changes: the end of a thought, the open block, the tools at work with the end of their output."""
        if self.canvas.plain:
            return None
        parts: list[RenderableType] = []
        if self._thought.strip():
            end = " ".join(plain(self._thought).split())
            room = max(10, 2 * self.canvas.width - 4)
            parts.append(Text("… " + end[-room:].lstrip(), style="muted"))
        if self._stream.open.strip() and (answer := self._open_block()) is not None:
            # Where it will stand once it is settled, so that nothing jumps then.
            parts += [Text(), answer] if self._stream.gap or not self._spoken else [answer]
        for title, seen in self._running.values():
            if not parts:
                parts.append(Text())
            line = Text("○ ", style="accent")
            line.append(one_line(title, transcript.TITLE_WIDTH), "tool")
            parts.append(line)
            if seen.strip():
                last = plain(seen).rstrip("\n").split("\n")[-_PROGRESS_LINES:]
                below = "\n".join("  " + text for text in last)
                parts.append(Text(below, style="muted", no_wrap=True, overflow="ellipsis"))
        return Group(*parts) if parts else None

    def _at_work(self) -> str:
        """What is waited for: the tool that was started last, or the model."""
        titles = [title for title, _ in self._running.values()]
        return f"Running {one_line(titles[-1], 60)}" if titles else "Thinking"

    def _open_block(self) -> RenderableType | None:
        from mycode.render.markdown import open_block  # not before there is an answer: it loads the parser

        return open_block(self._stream)

    def _feed(self, text: str) -> list[Block]:
        self._said.append(text)
        self._thought = ""
        return self._stream.feed(text)

    def _message(self, message: AssistantMessage) -> list[RenderableType]:
        """The message is whole now: what was not streamed of it is added; if it is another text, it is shown whole."""
        said, text = "".join(self._said), message.text
        self._said.clear()
        lines: list[RenderableType] = []
        if text.rstrip() != said.rstrip():
            if not text.startswith(said):
                lines, said = self._cut(), ""
            lines += self._answer(self._stream.feed(text[len(said) :]))
        return lines + self._cut()

    def _cut(self) -> list[RenderableType]:
        self._thought = ""
        lines = self._answer(self._stream.finish())
        self._spoken = False
        return lines

    def _answer(self, pieces: list[Block]) -> list[RenderableType]:
        from mycode.render.markdown import block

        shown: list[RenderableType] = []
        for piece in pieces:
            if not self._spoken:
                self._spoken = True
                shown.append(Text("mycode:") if self.canvas.plain else Text())
            elif piece.gap:
                shown.append(Text())
            if self.canvas.plain:
                shown.append(Text(piece.source))
            else:
                shown.append(block(piece, code_theme=code_theme(self.canvas.look), highlight=self.canvas.color))
        return shown
