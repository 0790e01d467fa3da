"""The family of errors: each is a sentence for the person that says what to do next, and knows its exit code.

MycodeError                 1   something failed after it was tried
├── UsageError              2   the command line is wrong
├── InputError             42   no prompt, unreadable file, bad transcript
├── ConfigError            52   a setting is wrong
├── SessionError            1   a session cannot be found, read or written
├── SandboxError           44   the sandbox was asked for and cannot start
├── CannotAsk              59   a question had to be put and nobody is there
└── ModelError              1   the model could not answer
    ├── AuthError          41   no key, or the provider refuses it
    ├── UnknownModel       41   404: no such model or endpoint
    ├── RateLimited        75   429 after all retries
    ├── Unavailable        75   overloaded, refused, silent or cut, after all retries
    ├── BadRequest          1   the provider rejects the request
    ├── BadResponse         1   the answer cannot be read, or is empty again and again
    └── ContextOverflow     1   the request is longer than the model's window
ToolError                   -   a sentence for the model, never for the exit code
"""


class MycodeError(Exception):
    """Base of all errors meant for the person: `str(error)` is one clear sentence or two."""

    exit_code = 1


class UsageError(MycodeError):
    exit_code = 2


class InputError(MycodeError):
    exit_code = 42


class ConfigError(MycodeError):
    exit_code = 52


class SessionError(MycodeError):
    pass


class SandboxError(MycodeError):
    exit_code = 44


class CannotAsk(MycodeError):
    exit_code = 59


class ModelError(MycodeError):
    """The model could not answer. `retryable` says whether trying again may help; `status` is the HTTP status if any.

    `retry_after` is in seconds, when the provider named it.
    """

    retryable = False

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class AuthError(ModelError):
    exit_code = 41


class UnknownModel(ModelError):
    exit_code = 41


class RateLimited(ModelError):
    exit_code = 75
    retryable = True


class Unavailable(ModelError):
    exit_code = 75
    retryable = True


class BadRequest(ModelError):
    pass


class BadResponse(ModelError):
    retryable = True


class ContextOverflow(ModelError):
    """The request did not fit. `limit` and `requested` are tokens, when the provider's text named them."""

    def __init__(
        self, message: str, *, status: int | None = None, limit: int | None = None, requested: int | None = None
    ) -> None:
        super().__init__(message, status=status)
        self.limit = limit
        self.requested = requested


class ToolError(Exception):
    """A tool's failure, as a sentence that tells the model what to do differently."""
