"""The sink: rows and entries written to topics, at least once or exactly once."""
