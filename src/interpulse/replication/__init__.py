"""The control side of replication, for the broker's admin API, the Spark jobs and operators' tools.

`inventory` and `cluster_reading` read namespaces of clusters, `adjust` makes a remote namespace equal by a plan
(PIP-433), and `change_forms` has the calls, commands and sentences of changes. `provision` creates a topic and its
schemas on the remote cluster; `connect` reaches a registered cluster; `copy` turns an entry of the source
into the entry on the target. `topic_doctor` finds and repairs topics whose records disagree.
"""
