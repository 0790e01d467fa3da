"""What each permission mode says where no rule does."""

from __future__ import annotations

from mycode.core.tools import Decision, Mode


def by_mode(mode: Mode, *, contained: bool = False, edit: bool = False) -> tuple[Decision, str]:
    """What the mode says where no rule does: of something inside the box, or of an edit inside the workspace."""
    match mode:
        case "bypassPermissions":
            return "allow", "The mode bypassPermissions allows it."
        case "plan":
            return "deny", "The mode plan only reads; leave it with Shift-Tab or /permissions default to change things."
        case "acceptEdits" if edit:
            return "allow", "The mode acceptEdits allows edits in the project."
        case "auto" if contained:
            return "allow", "The mode auto allows what stays in the sandbox."
        case _:
            return "ask", ""
