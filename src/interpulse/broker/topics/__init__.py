"""Topics as records: each module reads a view, asks a rule, and commits if nothing has changed meanwhile.

* `lifecycle` is that loop, `topic_reading` the view, with `partition_records` and `topic_counts` behind it.
* `deletion` and `inactivity` delete topics; `topic_clusters` expands and replicates them on other clusters too.
* `topic_policies` and `topic_settings` are policies of topics, up to the values in force.
* `schemas` has the schemas, which a cluster stores by `ledger_schemas`.
* `lookup` finds the broker of a topic.
"""
