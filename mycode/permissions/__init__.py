"""What is allowed: rules, modes and protected places, decided before anything runs."""
