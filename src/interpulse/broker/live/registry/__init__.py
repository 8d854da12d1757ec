"""The loaded topics of a broker.

* `topic_registry`: topics are loaded once, unloaded and deleted as a whole; `executors`: the order of this work
* `topic_tasks`: work on all topics: upkeep, compaction, quotas, settings, cursors
* `cursor_changes`: the order in which subscriptions changed, for tools that carry acknowledgements
* `backlog_operations`: operations on the entries of a topic
"""
