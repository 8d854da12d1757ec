"""Metrics for OpenTelemetry, under PIP-264's names; loaded only where they are on.

`topic_figures` and `broker_figures` say which figure has which name, `exported_figures` reads them in the event loop.
"""
