"""Geo-replication of the broker.

* `replication_clusters` enables replication of a namespace.
* `remote_topics` creates replicated topics on remote clusters, `replication_cursors` keeps the entries they still need.
* `replication_supervisor` runs the Spark job, `replication_status` reports the state of both.
"""
