"""Consumers, readers and table views: one partition, several topics, whole entries."""
