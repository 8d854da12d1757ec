"""Reports of the running job: `progress` reads Spark's events, a `Report` publishes them.

`JsonLines` are for programs, `live_screen` for people at a terminal, `job_metrics` for Prometheus.
"""
