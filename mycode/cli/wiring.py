"""The only place where the parts are put together; it decides nothing, it hands over."""

from __future__ import annotations

import time

from mycode.agent.environment import look_around, read_memory
from mycode.agent.loop import Agent
from mycode.agent.system_prompt import system_prompt
from mycode.cli.run import Run
from mycode.context.manager import ContextManager
from mycode.core.errors import SessionError
from mycode.core.models import Model
from mycode.core.redact import redact
from mycode.core.tools import Approver, Sandbox
from mycode.llm.tokens import Tokens
from mycode.permissions.gate import PermissionGate
from mycode.session.archive import SessionArchive
from mycode.session.session import Session
from mycode.session.store import new_id
from mycode.tools.registry import Registry
from mycode.tools.runner import Runner


class Workplace:
    """One session with everything around it: model, tools, permissions, context engine, agent."""

    def __init__(self, run: Run, approver: Approver, *, model: Model | None = None) -> None:
        self.run = run
        settings = run.settings
        self.model = model or run.open_model()
        self.store = run.open_store()
        session_id = self._choose_session()
        self.archive = SessionArchive(self.store, session_id)
        self.gate, self.sandbox = gate_of(run)
        self.registry = tools_of(run, approver=approver, sandbox=self.sandbox, archive=self.archive)
        self.counter = Tokens(self.model.info.name)
        environment = look_around(run.cwd, sandbox=self.sandbox.state if self.sandbox.active else "")
        system = system_prompt(environment, append=run.options.append_system_prompt)
        user_memory = run.folders.config / "AGENTS.md"
        self.context = ContextManager(
            policy=settings.context,
            counter=self.counter,
            info=self.model.info,
            system=system,
            tools=self.registry.specs(),
            summarizer=self._summarizers,
            memory=lambda: read_memory(run.cwd, user_file=user_memory).text,
            clock=time.time,
            new_id=new_id,
            redact=redact,
        )
        self.agent = Agent(
            model=self.model,
            context=self.context,
            runner=Runner(self.registry, self.gate, approver, self.archive, self._result_limit),
            approver=approver,
            system=system,
            tools=self.registry.specs(),
            limits=run.limits,
        )
        self.session = Session(
            store=self.store,
            session_id=session_id,
            context=self.context,
            run=self.agent.run_turn,
            clock=time.time,
            redact=redact,
            archive=self.archive,
        )
        if run.options.name:
            self.session.rename(run.options.name)

    def switch_model(self, name: str) -> None:
        """Goes on with another model; the context engine learns its window at once."""
        self.model = self.run.open_model(name)
        self.agent.model = self.model
        self.context.switch_model(self.model.info)
        self.session.set_model(self.model.info.name)

    async def aclose(self) -> None:
        """Writes what waits and gives back sessions, connections and background jobs."""
        self.session.close()
        await self.model.aclose()

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
        """Characters one tool result may have now: the setting, or half of what is free in the window."""
        free = self.context.usage().free
        return max(2_000, min(self.run.settings.tools.output_limit, free * 4 // 2))


def gate_of(run: Run) -> tuple[PermissionGate, Sandbox]:
    """What is allowed in this run, and the box for commands."""
    raise NotImplementedError


def tools_of(
    run: Run, *, approver: Approver | None = None, sandbox: Sandbox | None = None, archive: SessionArchive | None = None
) -> Registry:
    raise NotImplementedError


def runner_of(run: Run) -> Runner:
    raise NotImplementedError
