"""Blocking client for programs without an event loop.

``client``, ``admin_client`` and ``table_view`` have the names of the asynchronous modules, without ``await``. Import
from ``interpulse.sync``.
"""
