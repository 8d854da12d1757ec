"""Consumers of a subscription, and which of them gets which entry."""
