"""The geo-replication job: `replication_job` is its control loop, `launch` its start from a command line.

`pipeline_config` reads its file, `selection` selects topics by the source's policies. One `pipeline` per remote cluster
consists of a `route` (names and files), its topics (`route_topics`, with `global_policies` and `target_presence`), its
streaming query (`route_query`), and its statistics (`route_lag`, `route_rates`, `dispatch_rates`). `reports` publish
what happens while it runs. `verbs` are commands that inspect it from outside, through `inspection`.
"""
