"""The geo-replication job: `replication_job` is its control loop, `launch` its start from a command line.

`pipeline_config` reads its file, `selection` asks the source's policies for topics. One `pipeline` per remote cluster
is made of a `route` (names and files), its topics (`route_topics`, with `global_policies` and `target_presence`), its
streaming query (`route_query`), and its figures (`route_lag`, `route_rates`, `dispatch_rates`).
What it tells while it runs goes to `reports`; `verbs` are the commands that look at it from outside, by `inspection`.
"""
