"""The gate that every tool call passes: it holds the mode, the rules and what was remembered in this session."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from mycode.core.tools import Action, Mode, Verdict
from mycode.permissions.paths import look
from mycode.permissions.places import Look, Places

if TYPE_CHECKING:
    from mycode.permissions.rules import Rules


class PermissionGate:
    """Judges actions; owns the mode (which the person may change at any time) and the rules of this session.

    Rules that are remembered live here, outside the conversation, and end with the session. `on_verdict` is told of
    every verdict, for the audit log. Rules and parsers are loaded when there is a rule to read or an action to judge.
    """

    def __init__(
        self,
        mode: Mode,
        rules: Rules | None,
        places: Places,
        *,
        sandbox_active: bool = False,
        network: bool = False,
        look: Look = look,
        on_verdict: Callable[[Action, Verdict, Mode], None] | None = None,
    ) -> None:
        self.mode: Mode = mode
        self.places = places
        self._rules = rules
        self._remembered: dict[str, Rules] = {}
        self._boxed = sandbox_active
        self._network = network
        self._look = look
        self._on_verdict = on_verdict

    @property
    def offline(self) -> bool:
        """Whether nothing may go out: commands run in a box without a network, and tools are no way around it."""
        return self._boxed and not self._network

    @property
    def remembered(self) -> tuple[str, ...]:
        """Allow rules added since the start, as written."""
        return tuple(self._remembered)

    @property
    def rules(self) -> Rules:
        """All rules in force, those of the session last."""
        from mycode.permissions.rules import Rules

        return sum(self._remembered.values(), start=self._rules or Rules())

    def judge(self, action: Action) -> Verdict:
        from mycode.permissions.decide import decide
        from mycode.permissions.survey import on_disk

        verdict = decide(
            action,
            mode=self.mode,
            rules=self.rules,
            places=self.places,
            look=self._look,
            ground=on_disk(),
            boxed=self._boxed,
            network=self._network,
        )
        if self._on_verdict is not None:
            self._on_verdict(action, verdict, self.mode)
        return verdict

    def hidden(self, action: Action, names: Iterable[str], *, content: bool) -> frozenset[str]:
        """What a search that `action` describes passes over (`core.tools.Veil`)."""
        from mycode.permissions.veil import hidden

        return hidden(action, names, content=content, mode=self.mode, rules=self.rules, places=self.places)

    def remember(self, rule: str) -> None:
        """Adds an allow rule for the rest of the session; `ConfigError` when it cannot be read."""
        from mycode.permissions.rules import make_rules

        self._remembered[rule] = make_rules(allow=[rule])
