"""The page for Prometheus: `metrics` is the call.

`metrics_topics` has the metrics of topics, their limits, histograms and sums, `metrics_broker` those of the broker, and
`metrics_replication` those of replication as a whole.
"""
