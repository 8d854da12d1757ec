"""Geo-replication of the broker.

* `replication_clusters` and `comparison` enable replication of a namespace.
* `remote_topics` makes replicated topics exist on remote clusters, `replication_cursors` keeps what they still need.
* `replication_supervisor` runs the Spark job, `replication_status` tells the state of both.
"""
