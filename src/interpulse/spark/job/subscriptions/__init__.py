"""Subscriptions of the source, carried to the target."""
