"""Metrics for OpenTelemetry, under the names of PIP-264. Loaded only if they are on.

`topic_metrics` and `broker_metrics` name the metrics, `exported_metrics` reads their values in the event loop.
"""
