"""The one count of tokens: the room there is, the room that is taken, and what providers taught us about counting."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mycode.context import budget
from mycode.context import policy as policies
from mycode.context.budget import Learned
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
        self._learned: dict[tuple[str, str], Learned] = {}
        self._accepted = 0
        self._anchor: budget.Anchor | None = None
        self._sent: tuple[int, int] | None = None

    @property
    def window(self) -> int:
        """Tokens in use: what a refusal showed counts only while the window is the one that was known then."""
        size, learned = policies.window(self._policy, self.info), self.learned
        return min(size, learned.window) if learned.window and learned.of == size else size

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
        return self.learned.multiplier

    @property
    def learned(self) -> Learned:
        """What was learned of the present provider and model."""
        return self._learned.get((self.info.provider, self.info.name), Learned())

    @property
    def calibrations(self) -> dict[tuple[str, str], Learned]:
        """What was learned so far, by provider and model."""
        return dict(self._learned)

    def recall(self, learned: Learned) -> None:
        """Starts from what an earlier session learned of this model; a guess is tried an eighth larger each time.

        A window in which there would be no room for a conversation is not believed a second time.
        """
        window = min(learned.window * 9 // 8, learned.of) if learned.guessed else learned.window
        window = window if window > 2 * self.fixed else 0
        self._learn(multiplier=learned.multiplier, window=window, of=learned.of, guessed=learned.guessed)

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
        self._learn(multiplier=budget.learn(self.calibration, counted, usage.input_tokens))
        self._accepted = max(self._accepted, usage.input_tokens)
        if 0 < self.learned.window < usage.input_tokens:
            self._learn(window=0, of=0, guessed=False)  # it was thought to be smaller than it is
        self._anchor = budget.Anchor(generation, counted, usage.input_tokens)

    def overflowed(self, error: ContextOverflow) -> None:
        """Learns from a refusal: the limit if it is named, the size if that is named, else that it was too much."""
        size, known = self.window, policies.window(self._policy, self.info)
        if error.limit and error.limit < size:
            self._learn(window=max(256, error.limit), of=known, guessed=False)
        elif error.requested and self._sent is not None and self._sent[1]:
            self._learn(multiplier=max(self.calibration * 1.1, error.requested / self._sent[1]))
        else:
            sent = min(size, round((self._sent[1] if self._sent is not None else size) * self.calibration))
            guess = max(1_000, sent * 4 // 5, min(self._accepted, sent * 19 // 20))
            self._learn(window=guess, of=known, guessed=True)
        self._anchor = None

    def switch(self, info: ModelInfo) -> None:
        """From now on it is another model; what was learned about counting for each is kept."""
        self.info = info
        self._accepted = 0
        self.forget()

    def _learn(self, **news: float) -> None:
        learned = replace(self.learned, **news)
        multiplier = min(2.0, max(0.5, learned.multiplier))
        self._learned[self.info.provider, self.info.name] = replace(learned, multiplier=multiplier)

    def forget(self) -> None:
        """The last request was one of another conversation or model: its size says nothing."""
        self._anchor = self._sent = None
