"""The loaded topics, with their producers, subscriptions and cursors.

Sub-rooms, from the whole to the parts; each imports only those below it and the modules of this room:

* `registry`: the loaded topics, and the periodic work on them
* `topic`: a topic and its subscriptions, their limits and statistics
* `producing`: producers, their limits, and the sequence ids of each
* `dispatch`: consumers, and the consumer of each entry
* `compaction`: the newest message of every key, and reads of them

Modules of this room:

* stored state of a topic: `topic_state`
* its log: `entry_metadata`, `log_search`, `shared_reads`
* acknowledgements: `cursor`, `entry_numbers`
* the interface to the front ends and to the registry: `api`
* `metrics`: counters and rates
"""
