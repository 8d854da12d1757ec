"""History of clients during failovers, judged after it has ended.

``events`` and ``record`` hold the values, and ``judging`` names each property with its function: these are pure.
``recorder`` and ``recorded_clients`` write the events of a real run, and ``reading`` reads both sites at its end.
Source: docs/reference/failover-history.md#properties.
"""
