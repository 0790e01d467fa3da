"""The only place where the parts are put together; it decides nothing, it hands over."""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mycode.agent.environment import look_around, read_memory
from mycode.agent.loop import Agent
from mycode.agent.system_prompt import system_prompt
from mycode.cli.run import Run
from mycode.context.manager import ContextManager
from mycode.core.errors import SessionError
from mycode.core.events import Event
from mycode.core.models import Model
from mycode.core.redact import redact
from mycode.core.tools import Action, Approver, Mode, Recall, Sandbox, Verdict
from mycode.headless.approver import NobodyToAsk
from mycode.llm.tokens import Tokens
from mycode.permissions.audit import AuditRecord
from mycode.permissions.gate import PermissionGate
from mycode.permissions.paths import find_places
from mycode.permissions.sandbox import detect
from mycode.session.archive import SessionArchive
from mycode.session.calibrations import Calibrations
from mycode.session.session import Session
from mycode.session.store import new_id
from mycode.tools.processes import Processes
from mycode.tools.registry import Registry, builtin_tools
from mycode.tools.runner import Runner
from mycode.tools.todo import TodoList
from mycode.tools.walking import find_program
from mycode.tools.workspace import Workspace

if TYPE_CHECKING:
    from mycode.config.settings import PermissionSettings
    from mycode.permissions.rules import Rules
    from mycode.session.checkpoints import Checkpoints
    from mycode.session.purging import Rule


CHANGING = frozenset({"create_file", "edit_file", "apply_patch", "execute_bash", "shell_job"})


class Workplace:
    """One session with everything around it: model, tools, permissions, context engine, agent."""

    def __init__(self, run: Run, approver: Approver, *, model: Model | None = None, checkpoints: bool = False) -> None:
        self.run = run
        settings = run.settings
        self.model = model or run.open_model()
        self.store = run.open_store()
        session_id = self._choose_session()
        self.archive = SessionArchive(self.store, session_id)
        self.notices: list[str] = []
        self._noticed: set[str] = set()
        self.gate, self.sandbox = gate_of(run, session_id, self._notice)
        self.processes = Processes(run.cwd, run.env, self.sandbox.wrap, self.sandbox.ended)
        self.registry = tools_of(
            run,
            approver=approver,
            processes=self.processes,
            recall=self.archive,
            limit=self._result_limit,
            gate=self.gate,
        )
        self.counter = Tokens(self.model.info.name)
        environment = look_around(run.cwd, sandbox=self.sandbox.state if self.sandbox.active else "")
        system = system_prompt(environment, append=run.options.append_system_prompt)
        self.system = system
        user_memory = run.folders.config / "AGENTS.md"
        specs = self.registry.specs()
        self.context = ContextManager(
            policy=settings.context,
            counter=self.counter,
            info=self.model.info,
            system=system,
            tools=specs,
            summarizer=self._summarizers,
            memory=lambda: read_memory(run.cwd, user_file=user_memory).text,
            clock=time.time,
            new_id=new_id,
            redact=redact,
        )
        # A session that is not kept leaves nothing behind, and learns from nobody.
        self._calibrations = Calibrations(run.folders.data / "calibrations.json") if settings.session.persist else None
        self._recall_calibration()
        self.agent = Agent(
            model=self.model,
            context=self.context,
            runner=Runner(self.registry, self.gate, approver, self.archive, self._result_limit),
            approver=approver,
            system=system,
            tools=specs,
            limits=run.limits,
        )
        self.checkpoints = self._checkpoints(session_id) if checkpoints else None
        self.session = Session(
            store=self.store,
            session_id=session_id,
            context=self.context,
            run=self.agent.run_turn,
            clock=time.time,
            redact=redact,
            watch=self._debug_log(),
            archive=self.archive,
            checkpointer=self.checkpoints,
            notices=self.notices,
            purge=self._purge_rule(),
        )
        if run.options.name:
            self.session.rename(run.options.name)
        # Everything is loaded: from here on garbage is looked for, but not among what was loaded.
        gc.freeze()
        gc.enable()

    def switch_model(self, name: str) -> None:
        """Goes on with another model; the context engine learns its window at once."""
        self.model = self.run.open_model(name)
        self.agent.model = self.model
        self.context.switch_model(self.model.info)
        self._recall_calibration()
        self.session.set_model(self.model.info.name)

    async def aclose(self) -> None:
        """Writes what waits and gives back sessions, connections and background jobs, each whatever the others do."""
        async with contextlib.AsyncExitStack() as leaving:
            leaving.push_async_callback(self.model.aclose)
            leaving.callback(self.session.close)
            leaving.callback(self._keep_calibrations)
            leaving.callback(self.processes.stop_all)
            leaving.callback(self.context.cancel_precompute)

    def warm(self) -> None:
        """Loads, on a thread of the caller's, what the first request would wait for: tokenizer, litellm if needed."""
        self.counter.load()
        self.run.warm(self.model)

    @property
    def tool_names(self) -> tuple[str, ...]:
        return self.registry.names()

    def _keep_calibrations(self) -> None:
        if self._calibrations is not None and (learned := self.context.calibrations):
            self._calibrations.keep(learned)

    def _notice(self, sentence: str) -> None:
        """Something that the person should hear of with the next event; once each."""
        if sentence not in self._noticed:
            self._noticed.add(sentence)
            self.notices.append(sentence)

    def _recall_calibration(self) -> None:
        """Starts from what earlier sessions learned about this model, if this one has learned nothing of it yet."""
        info = self.model.info
        if self._calibrations is None or (info.provider, info.name) in self.context.calibrations:
            return
        if (kept := self._calibrations.get(info.provider, info.name)) is not None:
            self.context.recall(kept)

    def _checkpoints(self, session_id: str) -> Checkpoints:
        """Keeps the files from before each turn that may change them."""
        import hashlib

        from mycode.session.checkpoints import Checkpoints

        # Forks share the states of their common past; those of another workspace are never applied to this one.
        workspace = hashlib.sha256(os.fsencode(self.run.root)).hexdigest()[:16]

        def folder(of: str) -> Path:
            return self.run.folders.data / "checkpoints" / self.store.origin(of) / workspace

        looks = set(self.registry.names()) - CHANGING
        return Checkpoints(
            self.run.root,
            folder(session_id),
            folder_of=folder,
            env=self.run.env,
            changes=lambda call: call.name not in looks,
            warn=self._notice,
        )

    def _purge_rule(self) -> Rule | None:
        """Which originals under summaries do not stay."""
        settings = self.run.settings
        if settings.context.originals.policy == "keep" or not settings.session.persist:
            return None
        from mycode.session.purging import rule_of

        return rule_of(settings.context)

    def _debug_log(self) -> Callable[[Event], None] | None:
        """Where the work on the context is told, if that was asked for."""
        if not self.run.settings.session.debug_log:
            return None
        from mycode.cli.debug_log import DebugLog

        return DebugLog(self.run.folders.data / "debug.log", session=lambda: self.session.id)

    def _choose_session(self) -> str:
        options, cwd = self.run.options, str(self.run.cwd)
        found = None
        if options.resume is not None:
            found = self.store.find(options.resume) if options.resume else self.store.latest()
        elif options.continue_last:
            found = self.store.latest(cwd)
        if found is None:
            if options.resume is not None or options.continue_last:
                raise SessionError("There is no session to go on with here. Start one with `mycode`.")
            return self.store.create(cwd=cwd, model=self.model.info.name)
        return self.store.fork(found.id) if options.fork else found.id

    def _summarizers(self) -> tuple[Model, ...]:
        preferred = self.run.settings.context.llm.summarizer_model_preference
        return tuple(self.run.open_model(name) for name in preferred) or (self.model,)

    def _result_limit(self) -> int:
        """Characters one tool result may have now: the setting, or one for each free token (dense text needs that)."""
        return max(2_000, min(self.run.settings.tools.output_limit, self.context.usage().free))


def gate_of(
    run: Run, session_id: str = "", warn: Callable[[str], None] = lambda _: None
) -> tuple[PermissionGate, Sandbox]:
    """What is allowed in this run, and the box for commands; what goes beyond a look is written to the audit log.

    Where that cannot be written (a full disk), `warn` is told and the verdict holds all the same.
    """
    table = run.settings.permissions
    own = (run.folders.config, run.folders.data)
    sandbox = detect(table.sandbox, _boxed_root(run), network=table.network, hidden=own)
    audit = run.audit_log()

    def keep(action: Action, verdict: Verdict, mode: Mode) -> None:
        if action.effect in ("none", "read") and verdict.decision == "allow":
            return
        record = AuditRecord(
            at=time.time(),
            event="verdict",
            session=session_id,
            mode=mode,
            tool=action.tool,
            title=action.title,
            decision=verdict.decision,
            reason=verdict.reason,
            rule=verdict.rule,
        )
        try:
            audit.append(record)
        except SessionError as error:
            warn(f"{error} What is decided meanwhile is not in it.")

    gate = PermissionGate(
        table.mode,
        _rules(table),
        find_places(run.cwd, private=own),
        sandbox_active=sandbox.active,
        network=table.network,
        on_verdict=keep,
    )
    return gate, sandbox


def _boxed_root(run: Run) -> Path:
    """The repository around the start folder; only the start folder where that would open the person's home."""
    home = Path(os.path.realpath(Path.home()))
    return run.cwd if home.is_relative_to(Path(os.path.realpath(run.root))) else run.root


def _rules(table: PermissionSettings) -> Rules | None:
    """The person's rules, read now so that a bad one is told at once; None where there are none to read."""
    if not (table.allow or table.ask or table.deny):
        return None
    from mycode.permissions.rules import make_rules

    return make_rules(allow=table.allow, ask=table.ask, deny=table.deny)


def tools_of(
    run: Run,
    *,
    approver: Approver,
    processes: Processes,
    recall: Recall,
    limit: Callable[[], int],
    gate: PermissionGate,
) -> Registry:
    """The tools of this run, as the model is offered them."""
    registry = builtin_tools(
        Workspace(run.cwd),
        approver=approver,
        processes=processes,
        recall=recall,
        todo=TodoList(),
        limit=limit,
        timeout=run.settings.tools.bash_timeout,
        ripgrep=find_program("rg", run.env.get("PATH", os.defpath), run.root),
        veil=gate.hidden,
    )
    table = run.settings.tools
    useless = ("fetch",) if gate.offline else ()
    offered = [name for name in registry.names() if name not in (*table.disallowed, *useless)]
    if table.allowed:
        offered = [name for name in offered if name in table.allowed]
    return Registry(tool for name in offered if (tool := registry.get(name)) is not None)


class Toolbox:
    """Tools and runner without a conversation, for `mycode tools`; whole outputs are kept in a session of their own."""

    def __init__(self, run: Run) -> None:
        store = run.open_store()
        archive = SessionArchive(store, store.create(cwd=str(run.cwd)))
        gate, sandbox = gate_of(run)
        approver = NobodyToAsk()
        self.processes = Processes(run.cwd, run.env, sandbox.wrap, sandbox.ended)
        self.registry = tools_of(
            run,
            approver=approver,
            processes=self.processes,
            recall=archive,
            limit=lambda: run.settings.tools.output_limit,
            gate=gate,
        )
        self.runner = Runner(self.registry, gate, approver, archive, lambda: run.settings.tools.output_limit)
