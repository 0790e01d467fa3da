"""What the person chose, and where each choice came from."""
