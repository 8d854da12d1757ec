"""The client for programs without an event loop: ``client``, ``admin_client`` and ``table_view`` have the names of the
asynchronous ones, without ``await``. Programs import them from ``interpulse.sync``.
"""
