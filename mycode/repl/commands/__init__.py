"""The slash commands, one small module a subject."""
