"""The loaded topics of a broker.

* `topic_registry`: topics are loaded once, unloaded and deleted as a whole; `keyed_executor`: the order per topic
* `topic_tasks`: periodic tasks of all topics: `upkeep` with `retention`, compaction, quotas
* `expiry`, `backlog_operations`: operations on the entries of a subscription
"""
