"""One client's connection: its socket, session, open producers and consumers, and its interface for handlers."""
