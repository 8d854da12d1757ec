"""The loaded topics, with their producers, subscriptions and cursors.

Sub-rooms, from the whole to the parts; each imports only those below it and the modules of this room:

* `registry`: which topics there are, and what is done with them again and again
* `topic`: a topic and its subscriptions, what policies hold back of them, what is shown of them
* `producing`: producers, what limits them, and what has been seen of each
* `dispatch`: consumers, and the consumer of each entry
* `compaction`: the newest message of every key, and how it is read

Their ground, in this room:

* what is stored of a topic: `topic_state`, `broker_entry_metadata`
* its log: `entry_metadata`, `timeline`, `shared_reads`, `read_buffer_limiter`
* acknowledgements: `cursor`, `backlog`
* what the front ends say to all this, and hear from it: `api`, `requests`, `settings`, `host`
* rates and figures: `rate_limits`, `measures`, `stats`
"""
