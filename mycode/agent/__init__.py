"""One turn: from what the person said until control returns to them."""
