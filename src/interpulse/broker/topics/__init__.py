"""Topics as records: each module reads a view, asks a rule, and commits if nothing has changed meanwhile.

* `lifecycle` is that loop, `topic_reading` the view, with `partition_records` and `topic_counts` behind it.
* `expansion`, `deletion` and `inactivity` change topics; `topic_info` shows the record of one.
* `topic_policies`, `topic_clusters` and `topic_settings` are policies of topics, up to the values in force.
* `schemas` has the schemas, stored by `schema_store` or, in a cluster, by `ledger_schemas`.
* `lookup` finds the broker of a topic.
"""
