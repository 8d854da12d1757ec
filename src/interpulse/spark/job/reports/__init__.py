"""What the job tells while it runs: `progress` is what Spark says, a `Report` takes what is to be told.

`json_lines` for programs, `live_screen` for people at a terminal, `job_metrics` for Prometheus.
"""
