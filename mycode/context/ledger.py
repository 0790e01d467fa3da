"""The one count of tokens: the room there is, the room that is taken, and what providers taught us about counting."""

from __future__ import annotations

from collections.abc import Sequence

from mycode.context import budget
from mycode.context import policy as policies
from mycode.context.policy import Policy
from mycode.core.errors import ContextOverflow
from mycode.core.models import ModelInfo, TokenCounter, ToolSpec
from mycode.core.usage import Usage


class TokenLedger:
    """Owns the model's window, the size of system prompt and tools, the calibration, and the last real size.

    *Counted* tokens are ours; *real* ones are the provider's, as far as they can be known.
    """

    def __init__(
        self, policy: Policy, counter: TokenCounter, info: ModelInfo, system: str, tools: Sequence[ToolSpec]
    ) -> None:
        self._policy = policy
        self._counter = counter
        self.info = info
        self.system_tokens = counter.count(system) + budget.MESSAGE_OVERHEAD
        self.tools_tokens = budget.tools_tokens(tools, counter.count)
        self._calibrations: dict[tuple[str, str], float] = {}
        self._anchor: budget.Anchor | None = None
        self._sent: tuple[int, int] | None = None
        self._learned_window = 0

    @property
    def window(self) -> int:
        size = policies.window(self._policy, self.info)
        return min(size, self._learned_window) if self._learned_window else size

    @property
    def reserve(self) -> int:
        return min(policies.reserve(self._policy, self.info), self.window // 2)

    @property
    def budget(self) -> int:
        """Real tokens that a request may hold."""
        return self.window - self.reserve

    @property
    def fixed(self) -> int:
        """Counted tokens that every request holds beside its messages."""
        return self.system_tokens + self.tools_tokens

    @property
    def calibration(self) -> float:
        """Real tokens per counted token, learned for the present provider and model."""
        return self._calibrations.get((self.info.provider, self.info.name), 1.0)

    @calibration.setter
    def calibration(self, value: float) -> None:
        self._calibrations[self.info.provider, self.info.name] = min(2.0, max(0.5, value))

    @property
    def calibrations(self) -> dict[tuple[str, str], float]:
        """What was learned so far, by provider and model."""
        return dict(self._calibrations)

    def room(self, max_tokens: int | None = None) -> int:
        """Counted tokens that messages may hold in a request of `max_tokens` real ones (None: the whole budget)."""
        limit = max_tokens if max_tokens is not None else self.budget
        margin = self._policy.window.safety_margin * (1 if self._counter.exact else 2)
        return max(64, int(limit * (1 - margin) / self.calibration) - self.fixed)

    def real(self, counted: int, generation: int) -> int:
        """The best guess of the real size of a request of so many counted tokens, fixed ones included."""
        return budget.calibrated(counted, self.calibration, self._anchor, generation)

    def is_cached(self, generation: int) -> bool:
        """Whether the provider has read the present beginning of the view before."""
        return self._anchor is not None and self._anchor.epoch == generation

    def sent(self, counted: int, generation: int) -> None:
        """Notes the size of the request that goes out now."""
        self._sent = (generation, counted)

    def observe(self, usage: Usage) -> None:
        """Learns from the real size of the request that went out last."""
        if self._sent is None or usage.input_tokens <= 0:
            return
        generation, counted = self._sent
        self.calibration = budget.learn(self.calibration, counted, usage.input_tokens)
        self._anchor = budget.Anchor(generation, counted, usage.input_tokens)

    def overflowed(self, error: ContextOverflow) -> None:
        """Learns from a refusal: the limit if it is named, the size if that is named, else that it was too much."""
        size = self.window
        if error.limit and error.limit < size:
            self._learned_window = error.limit
        elif error.requested and self._sent is not None and self._sent[1]:
            self.calibration = max(self.calibration * 1.1, error.requested / self._sent[1])
        else:
            sent = round((self._sent[1] if self._sent is not None else size) * self.calibration)
            self._learned_window = max(1_000, min(size, sent) * 4 // 5)
        self._anchor = None

    def switch(self, info: ModelInfo) -> None:
        """From now on it is another model; what was learned about counting for each is kept."""
        self.info = info
        self._learned_window = 0
        self.forget()

    def forget(self) -> None:
        """The last request was one of another conversation or model: its size says nothing."""
        self._anchor = self._sent = None
