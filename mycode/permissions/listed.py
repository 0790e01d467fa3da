"""Long lists of programs, options and files, written as text: they read better so."""


def listed(text: str) -> tuple[str, ...]:
    """The names in a text, parted by blanks, in their order."""
    return tuple(text.split())
