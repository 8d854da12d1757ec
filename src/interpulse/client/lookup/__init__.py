"""Lookups of topics: their broker, partitions and schema.

``binary_lookup`` and ``http_lookup`` implement ``lookup``. ``batch_lookup`` finds the brokers of many topics with one
request (PIP-35).
"""
