"""Acknowledgements that the replication job exchanges between the two clusters of a route.

Source: docs/reference/subscriptions.md#on-both-clusters.
"""
