"""The door: parse what was typed, wire the parts, choose a front end."""
