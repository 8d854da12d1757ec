"""Which broker serves a topic, and how many partitions it has: one by one or many at once."""
