"""Blocking client for programs without an event loop.

``client`` and ``admin_client`` have the names of the asynchronous modules, without ``await``. Import from
``interpulse.sync``.
"""
