"""Lookups: the broker of a topic, its partitions, its schema.

``binary_lookup`` and ``http_lookup`` are the two kinds of a ``lookup``; ``batch_lookup`` and ``http_batch_lookup`` find
the brokers of many topics with one question (PIP-35).
"""
