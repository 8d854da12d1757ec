"""Connections: ``connection`` to brokers over TCP, pooled in ``connection_pool``, and ``http_session`` to web services.

``backoff`` has the retries of both.
"""
