"""Payloads of JSON schemas, as Java's client reads and writes them."""
