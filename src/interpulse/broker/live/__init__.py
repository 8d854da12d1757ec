"""What is loaded right now: topics with their producers, subscriptions and cursors.

Where things are, from the whole to the parts:

* which topics there are: `registry`, `name_work`, `topic_rounds`; what is done with one: `upkeep`, `retention`,
  `expiry`, `backlog_operations`
* a topic: `topic`, `non_persistent`; what it needs: `host`; what is stored of it: `topic_state`; its log: `log_places`,
  `timeline`, `stamps`; what is shown of it: `topic_stats`, `non_persistent_stats`, `subscription_stats`, `measures`,
  `stats`
* compaction: `compaction`, `compaction_choice`, `compaction_entries`, `compacted_reads`
* what policies hold back: `limits`, `publish_limits`, `subscribe_limits`, `dispatch_limits`, `rate_limits`,
  `backlog_quota`
* producing: `producer_set`, `producer`, `sequences`, `deduplication`
* consuming: `subscription_set`, `subscription`, `consumer`, `cursor`, `backlog`
* who gets which entry: `dispatch_choice`, `single_active`, `shared`, `dispatch`, `dealing`, `key_dealing`,
  `key_owners`, `delayed`
* reading for consumers: `feed`, `shared_reads`, `replays`, `replay_reads`, `read_room`, `entries`
* what the doors say to all this, and hear from it: `api`, `requests`, `settings`
"""
