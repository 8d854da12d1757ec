"""The page for Prometheus: `metrics` is the call.

`metrics_topics` has the metrics of topics and their sums, `metrics_limits` those of policies, `metrics_buckets` their
histograms, `metrics_broker` those of the broker, `metrics_replication` those of replication as a whole.
"""
