"""History of clients during failovers, judged after it has ended.

``events`` and ``record`` hold the values, and ``judging`` names each property with its function. All of these are pure.
Source: docs/reference/failover-history.md#properties.
"""
