"""The geo-replication job: `replication_job` is its control loop, `launch` its start from a command line.

`pipeline_config` reads its file, `selection` selects topics by the source's policies. One `pipeline` per remote cluster
consists of a `route` (names and files), its topics (`route_topics`, with `route_policies`), its streaming query
(`route_query`), and its statistics (`route_lag`). `reports` publish what happens while it runs. `answers` and `cursors`
look at it from outside, through `inspection`, whether or not it runs and without Spark.
"""
