"""Metrics for OpenTelemetry, under the names of PIP-264. Loaded only if they are on."""
