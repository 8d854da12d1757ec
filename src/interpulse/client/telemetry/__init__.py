"""Spans (PIP-446) and metrics of a client by OpenTelemetry; loaded by the first session that has one of them on.

`conventions` has the names, `sending` follows messages that are sent, `processing` those that are received.
"""
