"""Compaction of a topic, and reading a compacted one."""
