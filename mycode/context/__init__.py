"""What the model sees: a view laid over the log, kept within the window, and every change of it recorded."""
