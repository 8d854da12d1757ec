"""Control plane of replication, for the broker's admin API, the Spark jobs and operators' tools.

`inventory` and `cluster_reading` read namespaces of clusters, `adjust` makes a remote namespace equal by a plan
(PIP-433), and `change_forms` has the requests, commands and sentences of changes. `provision` creates a topic and its
schemas on the remote cluster; `connect` connects to a registered cluster; `copy` converts an entry of the source to the
entry on the target. `topic_doctor` finds and repairs topics whose records disagree.
"""
