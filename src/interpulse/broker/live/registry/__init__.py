"""The loaded topics of a broker.

* `topic_registry`: each topic is loaded once, unloaded and deleted as a whole; `keyed_executor`: in which order
* `topic_tasks`: periodic tasks of all topics: `upkeep` with `retention`, compaction, quotas
* `expiry`, `backlog_operations`: what operators do with the entries of a subscription
"""
