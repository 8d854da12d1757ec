"""One client's connection: its socket, its session, what it has open, and what handlers of commands see of it."""
