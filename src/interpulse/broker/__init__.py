"""The broker: two front doors, the loops that decide and commit, and what is loaded right now."""
