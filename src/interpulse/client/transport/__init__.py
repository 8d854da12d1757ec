"""Connections: to brokers over TCP (``connection``, one per address in ``connection_pool``), to web services over HTTP
(``http_session``), and the retries of both (``backoff``).
"""
