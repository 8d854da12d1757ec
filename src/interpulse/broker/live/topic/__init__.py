"""A loaded topic, persistent or not.

* `topic`: a persistent topic: it appends, answers producers once entries are durable, and wakes its subscriptions
* `loading`: the load of a topic from its records
* `subscription_set`, `subscription`: its subscriptions, each with a cursor and consumers
* `non_persistent`: a topic that stores nothing, with its subscriptions
* `topic_clients`, `backlog_quota`: limits of the policies
* `topic_stats`: statistics in Pulsar's JSON, and metrics
"""
