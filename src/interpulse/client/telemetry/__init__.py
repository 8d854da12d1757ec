"""OpenTelemetry spans (PIP-446) and metrics of a client. The first session that needs them imports this package.

`conventions` has the names, `sending` follows messages that are sent, `processing` those that are received.
"""
