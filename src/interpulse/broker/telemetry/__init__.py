"""Metrics for OpenTelemetry, under the names of PIP-264. Loaded only if they are on.

`topic_figures` and `broker_figures` name the metrics, `exported_figures` reads their values in the event loop.
"""
