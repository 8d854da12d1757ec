"""The producers of a topic: their names and access modes, their limits, and de-duplication of their messages."""
