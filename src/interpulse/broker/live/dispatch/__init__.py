"""The consumers of a subscription, and the choice of the consumer for each entry.

* `consumer`: one consumer, its permits and its unacknowledged entries, and the choice by permits
* `dispatch`: the dispatch of a subscription: to one active consumer (Exclusive, Failover), or `shared`
* `consumer_selector` (Shared) and `key_selector` (Key_Shared, with `sticky_keys`): the consumer of each entry
* `entry_feed`: entries in the order of the log, and those that are sent again
* `delayed_entries`: entries that wait for their time; `dispatch_limits`: rates
"""
