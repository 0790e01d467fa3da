"""Regular expressions that are compiled when they are first used, so that nobody waits for them at the start."""

import re
from typing import cast

_METHODS = ("search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn", "groups", "pattern", "flags")


class _Later:
    """Stands for a pattern; the first use compiles it, later uses go straight to the compiled one."""

    def __init__(self, source: str, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        if name not in _METHODS:
            raise AttributeError(name)
        compiled = re.compile(self._source, self._flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """A pattern to be called by its methods (`search`, `sub`, ...); a mistake in `source` shows at the first use."""
    return cast("re.Pattern[str]", _Later(source, flags))
