"""What the commands of a chat need beyond the conversation: models, settings, sessions, files."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mycode.cli.options import RunOptions
from mycode.cli.run import Run
from mycode.cli.wiring import Workplace
from mycode.config.describe import toml
from mycode.context.folds import MayFold
from mycode.context.forecast import Forecast
from mycode.core.checkpoints import Rewinder
from mycode.core.errors import InputError
from mycode.core.messages import AssistantMessage, UserMessage
from mycode.core.models import ModelRequest
from mycode.core.redact import redact
from mycode.core.summaries import Trigger
from mycode.core.tools import Mode, Question
from mycode.core.visible import one_line
from mycode.repl.approval import TerminalApprover
from mycode.repl.grace import Grace
from mycode.repl.loop import run as run_repl
from mycode.repl.opening import Opening
from mycode.repl.services import ModelChoice, ReplSettings, SessionChoice
from mycode.session.catalogue import SessionInfo
from mycode.session.export import Form, export_text
from mycode.session.session import Session

_SUMMARIZE = "Summarize now"
_FORMS: dict[str, Form] = {"md": "md", "html": "html", "jsonl": "jsonl"}
_INIT_PROMPT = """\
Look at this project: its layout, its README, how it is built, tested and run, and the conventions its code follows. \
Then write AGENTS.md in its root for coding agents that will work here: the commands that matter (build, lint, one \
test), the architecture in a few sentences, and rules that are not obvious. At most 60 lines. If there is one already, \
improve it and keep what is still true."""


async def talk(options: RunOptions, opening: Opening | None) -> int:
    """Wires a session, hands it to the screen, and gives everything back at the end."""
    run = Run(options, os.environ)
    try:
        approver = TerminalApprover()
        place = Workplace(run, approver, checkpoints=True)
        table = run.settings.repl
        settings = ReplSettings(
            vi=table.vi,
            plain=table.plain,
            color="NO_COLOR" not in os.environ and table.theme != "mono",
            look="light" if table.theme == "light" else "dark",
            editor=table.editor,
            history_file=run.folders.data / "prompts",
            notice="\n".join([*run.warnings, *_resumed(place)]),
            notify=run.settings.context.auto.notify,
            workspace=run.cwd,
        )
        services = ChatServices(place)
        # Where nobody sits, nobody could press the key.
        grace = Grace(run.settings.context.auto.grace_seconds if sys.stdin.isatty() else 0.0)
        place.context.ask_before(grace.may_fold, _asking(approver) if sys.stdin.isatty() else None)
        try:
            code = await run_repl(
                place.session,
                settings=settings,
                services=services,
                approver=approver,
                opening=opening,
                warm=place.warm,
                first_prompt=options.prompt or "",
                grace=grace,
            )
            if code == 0 and run.settings.session.persist:
                _say_goodbye(place.session)
            return code
        finally:
            await place.aclose()
    finally:
        run.close()


def _asking(approver: TerminalApprover) -> MayFold:
    """Puts the question when the context is full and summaries do not happen by themselves."""

    async def when_full(trigger: Trigger) -> bool:
        text = f"The context is full ({trigger.ratio:.0%}), and automatic summaries are off. Summarize now?"
        return await approver.answer(Question(text, (_SUMMARIZE, "Not now: requests are cut to fit"))) == _SUMMARIZE

    return when_full


class ChatServices:
    """The `Services` of the REPL over one workplace."""

    def __init__(self, place: Workplace) -> None:
        self._place = place

    @property
    def model_name(self) -> str:
        return self._place.model.info.name

    def forecast(self) -> Forecast:
        return self._place.context.forecast()

    def next_request(self) -> ModelRequest:
        place = self._place
        return ModelRequest(system=place.system, messages=place.context.fit(), tools=place.registry.specs())

    @property
    def mode(self) -> Mode:
        return self._place.gate.mode

    def set_mode(self, mode: Mode) -> None:
        self._place.gate.mode = mode

    def permissions(self) -> Sequence[str]:
        table = self._place.run.settings.permissions
        lines = [f"mode: {self.mode}", f"sandbox: {self._place.sandbox.state}"]
        for word in ("deny", "ask", "allow"):
            lines += [f"{word}: {rule}" for rule in getattr(table, word)]
        return [*lines, *(f"allow (this session): {rule}" for rule in self._place.gate.remembered)]

    def models(self) -> Sequence[ModelChoice]:
        current = ModelChoice(self.model_name, "in use")
        return [
            current,
            *(ModelChoice(name, why) for name, why in self._place.run.known_models() if name != current.name),
        ]

    async def switch_model(self, name: str) -> str:
        before = self._place.model
        self._place.switch_model(name)
        await before.aclose()
        info = self._place.model.info
        guess = "" if info.window_known else ", a guess"
        return f"Now talking to {info.name} (window {info.window:,} tokens{guess}).{_too_full(self._place)}"

    def settings(self) -> Sequence[tuple[str, str, str]]:
        loaded = self._place.run.loaded
        return [(key, toml(value), origin) for key, value, origin in loaded.values()]

    def sessions(self) -> Sequence[SessionChoice]:
        return [_choice(info) for info in self._place.store.sessions(limit=50) if info.id != self._place.session.id]

    def export(self, path: str, form: str) -> str:
        session = self._place.session
        name = path or f"{_file_name(session.title) or session.id}.{form}"
        file = self._place.run.cwd / Path(name).expanduser()
        if os.path.lexists(file):  # a link to what is not there yet would lead the text elsewhere
            raise InputError(f"{file} exists already; name another file.")
        if form not in _FORMS:
            raise InputError(f"There is no format {form}; choose one of {', '.join(_FORMS)}.")
        text = export_text(self._place.store, session.id, _FORMS[form], redact=redact)
        try:
            with file.open("x", encoding="utf-8") as out:
                out.write(text)
        except OSError as error:
            raise InputError(f"{file} cannot be written: {error.strerror or error}.") from error
        return str(file)

    @property
    def rewinder(self) -> Rewinder | None:
        return self._place.checkpoints

    def init_prompt(self) -> str:
        return _INIT_PROMPT


def _say_goodbye(session: Session) -> None:
    """How to come back, where there is something to come back to; on standard error, which nobody parses."""
    if session.messages_count:
        sys.stderr.write(f"“{one_line(session.title, 60)}” is kept: mycode -r {session.id}\n")


def _too_full(place: Workplace) -> str:
    """What will happen before the next request, where the conversation is too large for the model's window."""
    trigger = place.context.due()
    if trigger is None:
        return ""
    return f" The conversation fills {trigger.ratio:.0%} of its window; it is made to fit before the next request."


def _resumed(place: Workplace) -> list[str]:
    """Where a resumed conversation stands: its title, its size, what was said last, and whether it still fits."""
    session = place.session
    if not session.messages_count:
        return []
    said = [entry.message for entry in session.history(newest=8)]
    asked = next((message.text for message in reversed(said) if isinstance(message, UserMessage)), "")
    told = next((m.text for m in reversed(said) if isinstance(m, AssistantMessage) and m.text), "")
    lines = [f"Going on with “{one_line(session.title, 60)}” ({session.messages_count} messages; /history shows them)."]
    lines += [f"  You said last: {one_line(asked, 100)}"] if asked else []
    lines += [f"  The answer:    {one_line(told, 100)}"] if told else []
    lines += [f"{place.model.info.name}:{full}"] if (full := _too_full(place)) else []
    return lines


def _choice(info: SessionInfo) -> SessionChoice:
    return SessionChoice(info.id, info.title, info.updated, info.messages)


def _file_name(title: str) -> str:
    words = "".join(letter if letter.isalnum() else " " for letter in title.lower()).split()
    return "-".join(words[:6])
