"""A person at a terminal: reads what they type, shows what happens, asks when asked to."""
