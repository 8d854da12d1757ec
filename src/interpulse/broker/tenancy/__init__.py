"""Tenants, namespaces and clusters: their records, and how remote clusters are reached.

* `tenants`, `namespaces` and `clusters` are the records.
* `cluster_setup` makes the records of a new cluster in ZooKeeper.
* `cluster_links` keeps the connections to remote clusters, and asks them for partition metadata.
"""
