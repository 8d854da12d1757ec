"""A loaded topic, persistent or not.

* `topic`: a persistent topic: it appends, answers producers once entries are durable, and wakes its subscriptions
* `subscription_set`, `subscription`: its subscriptions, each with a cursor and consumers
* `compaction_pointer`: what names the compacted ledger of a topic that brokers share
* `non_persistent`: a topic that stores nothing, with its subscriptions
* `topic_limits`, `subscribe_limits`, `backlog_quota`: what policies limit
* `topic_stats`, `subscription_stats`, `non_persistent_stats`: statistics in Pulsar's JSON, and the figures of metrics
"""
