"""The consumers of a subscription, and the choice of the consumer for each entry.

* `consumer`: one consumer, its permits and its unacknowledged entries, and the choice by permits
* `dispatch_choice`: the dispatch of a subscription: `single_active` (Exclusive, Failover) or `shared`
* `consumer_selector`: selections of `round_robin_selector` (Shared) and `key_selector` (Key_Shared, with `sticky_keys`)
* `entry_feed`: entries in the order of the log; `replay_reads`: entries that are sent again;
`delayed_entries`: entries that wait for their time
* `dispatch_limits`: rates
"""
