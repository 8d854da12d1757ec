"""Producers: one partition, a partitioned topic, whole entries."""
