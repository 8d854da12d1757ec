"""A loaded topic, persistent or not.

* `topic`: a persistent topic: it appends, answers producers once entries are durable, and wakes its subscriptions
* `subscription_set`, `subscription`: its subscriptions, each with a cursor and consumers
* `compaction_pointer`: the pointer to the compacted ledger of a topic that brokers share
* `non_persistent`: a topic that stores nothing, with its subscriptions
* `topic_limits`, `subscribe_limits`, `backlog_quota`: limits of the policies
* `topic_stats`, `subscription_stats`, `non_persistent_stats`: statistics in Pulsar's JSON, and metrics
"""
