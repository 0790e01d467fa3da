"""A coding agent for the terminal whose conversation never ends and never forgets."""

__version__ = "0.1.0"
