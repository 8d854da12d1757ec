"""The consumers of a subscription, and the choice of the consumer for each entry.

* `consumer`: one consumer, its permits and its unacknowledged entries
* `dispatch_choice`: the dispatch of a subscription: `single_active` (Exclusive, Failover) or `shared`
* `consumer_selector`: the interface of `shared` to `round_robin_selector` (Shared) and `key_selector` (Key_Shared, with
`sticky_keys` and its `hash_ring`); `consumer_choice`: rules of both
* `entry_feed`: entries in the order of the log; `replays`, `replay_reads`: entries that are sent again;
`delayed_entries`: entries that wait for their time
* `dispatch_limits`: dispatch rates
"""
