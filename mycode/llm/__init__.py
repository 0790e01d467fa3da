"""The model: which one, how it is reached, and what it costs."""
